// What may change the world. The key goes downstream, so the target can tell a repeated call from a second one.
import { defineTool, ToolRefusedError, type ToolContext } from 'countersign';
import { z } from 'zod';

/** The ledger of examples/refund, or your own target that takes `Idempotency-Key`. */
const ledger = process.env['LEDGER_URL'] ?? 'http://127.0.0.1:4100';

export const tools = [
  defineTool({
    name: 'payments.refund',
    arguments: z.strictObject({ order: z.string(), amount: z.string(), currency: z.string().default('EUR') }),
    idempotency: 'key',
    requiresApproval: true,
    run: post,
  }),
  defineTool({
    name: 'warehouse.expect',
    arguments: z.strictObject({ order: z.string() }),
    idempotency: 'key',
    run: post,
  }),
];

async function post({ idempotencyKey, signal }: ToolContext, body: unknown): Promise<unknown> {
  const answer = await fetch(`${ledger}/refunds`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': idempotencyKey },
    body: JSON.stringify(body),
    signal,
  });
  if (answer.status === 422) throw new ToolRefusedError(await answer.text()); // it did not happen: no retry
  if (!answer.ok) throw new Error(`the target answered ${answer.status}`); // unclear: again, with the same key
  return answer.json();
}
