// What the API of the bench loads. No effect runs in an API.
import { refundTool } from './tool.ts';

export const config = { tools: [refundTool(async () => null)] };
