// The tool of the gated side. What it does is the caller's: nothing in the API, which only freezes, and the same
// as the hand-written side's activity in the worker.
import { z } from 'zod';
import { defineTool, type Tool } from '../src/tool.ts';

export function refundTool(run: () => Promise<unknown>): Tool {
  return defineTool({
    name: 'payments.refund',
    arguments: z.strictObject({ order: z.string(), amount: z.string(), currency: z.string().default('EUR') }),
    idempotency: 'key',
    requiresApproval: true,
    run,
  });
}
