// The tool of the refund example: pays money back through the ledger. The key that countersign hands over
// goes downstream, so however often this runs, the ledger pays once.
import { defineTool, ToolRefusedError } from 'countersign';
import { z } from 'zod';

/** Answers that mean "not now" rather than "no": the request may be sent again under the same key. */
const passing = new Set([408, 409, 425, 429]);

const refundArguments = z.strictObject({
  order: z.string().min(1),
  amount: z
    .string()
    .regex(/^(?:0|[1-9][0-9]*)(?:\.[0-9]{1,2})?$/, 'must be a decimal string such as "12.50"'),
  currency: z.string().length(3).default('EUR'),
});

export const refund = defineTool({
  name: 'payments.refund',
  description: 'Pays money back for an order.',
  arguments: refundArguments,
  idempotency: 'key',
  requiresApproval: true,
  async run({ idempotencyKey, signal }, args) {
    const ledger = process.env['LEDGER_URL'];
    if (!ledger)
      throw new Error('LEDGER_URL is not set: it names the payments target, such as http://127.0.0.1:4100');
    const response = await fetch(`${ledger}/refunds`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': idempotencyKey },
      body: JSON.stringify(args),
      signal,
    });
    const text = await response.text();
    if (response.ok) return JSON.parse(text) as { refund: string };
    const message = `the ledger answered ${String(response.status)}: ${text}`;
    const refused = response.status >= 400 && response.status < 500 && !passing.has(response.status);
    throw refused ? new ToolRefusedError(message) : new Error(message);
  },
});
