// The tools that test workers have. Each one's effect is one request to the ledger, with its arguments as
// the body, so that the ledger shows what ran, how often and under which key.
import { z } from 'zod';
import { ToolRefusedError, type Tool, type ToolContext } from '../../src/tool.ts';

/** Answers that mean "not now": everything else from 400 to 499 is a refusal. */
const passing = new Set([408, 409, 425, 429]);

const refundArguments = z.strictObject({
  order: z.string().min(1),
  amount: z.string().regex(/^[0-9]+(?:\.[0-9]{1,2})?$/, 'must be a decimal string such as "12.50"'),
  currency: z.string().length(3).default('EUR'),
});

export function testTools(ledgerUrl: string): Tool[] {
  const keyed = ({ idempotencyKey, signal }: ToolContext, args: unknown): Promise<unknown> =>
    send(`${ledgerUrl}/refunds`, args, signal, { 'idempotency-key': idempotencyKey });

  return [
    {
      name: 'payments.refund',
      arguments: refundArguments,
      idempotency: 'key',
      requiresApproval: true,
      run: keyed,
    },
    {
      // A default, a coercion and a transform: what is frozen is what they make of the proposal.
      name: 'payments.transfer',
      arguments: z.strictObject({
        to: z.string().transform((iban) => iban.replaceAll(' ', '').toUpperCase()),
        amount: z.coerce.number(),
        currency: z.string().default('EUR'),
      }),
      idempotency: 'key',
      requiresApproval: true,
      run: keyed,
    },
    {
      // The target takes no key: one attempt, and an unclear end is in doubt.
      name: 'payments.plain',
      arguments: refundArguments,
      idempotency: 'none',
      requiresApproval: true,
      run: ({ signal }, args) => send(`${ledgerUrl}/plain`, args, signal),
    },
    {
      // Takes an argument of any size, to come near the limits of a payload.
      name: 'payments.gift',
      arguments: z.strictObject({ order: z.string(), note: z.string() }),
      idempotency: 'key',
      requiresApproval: true,
      run: keyed,
    },
    {
      // Needs nobody's approval; also stands in for a model, whose answer must not be asked for again.
      name: 'notify.send',
      arguments: z.looseObject({}),
      idempotency: 'key',
      run: keyed,
    },
  ];
}

async function send(
  url: string,
  body: unknown,
  signal: AbortSignal,
  headers: Record<string, string> = {},
): Promise<unknown> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
    signal,
  });
  const text = await response.text();
  if (response.ok) return JSON.parse(text) as unknown;
  const message = `the ledger answered ${response.status}: ${text}`;
  const refused = response.status >= 400 && response.status < 500 && !passing.has(response.status);
  throw refused ? new ToolRefusedError(message) : new Error(message);
}
