// tools.ts: what may change the world.
import { defineTool, ToolRefusedError } from 'countersign';
import { z } from 'zod';

export const refund = defineTool({
  name: 'payments.refund',
  arguments: z.strictObject({ order: z.string(), amount: z.string(), currency: z.string().default('EUR') }),
  idempotency: 'key', // or 'lookup' or 'none'; no default, since a wrong guess pays twice
  requiresApproval: true, // never runs without a grant, whoever schedules it
  async run({ idempotencyKey, signal }, args) {
    const answer = await fetch('https://payments.example.com/refunds', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': idempotencyKey },
      body: JSON.stringify(args),
      signal,
    });
    if (answer.status === 422) throw new ToolRefusedError(await answer.text()); // it did not happen: no retry
    if (!answer.ok) throw new Error(`payments answered ${answer.status}`); // unclear: again, with the same key
    return answer.json();
  },
});
