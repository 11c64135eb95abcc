// countersign.config.ts: what the worker and the API load.
import { refund } from './tools.ts';

export const config = { tools: [refund], workflows: './workflows.ts' };
