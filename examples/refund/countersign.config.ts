// What the worker and the API of this example load.
import { refund } from './tools.ts';

export const config = { tools: [refund], specs: './specs' };
