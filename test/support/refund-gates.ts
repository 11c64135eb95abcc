// A run that stands at a gate, as most tests of decisions need it: one refund, asked for before it is made.
import type { CountersignClient } from '../../src/countersign-client.ts';
import type { Spec } from '../../src/core/spec/spec.ts';
import { openGate, startSpec, type SeenGate } from './gates.ts';
import type { Ledger, LedgerLine } from './ledger.ts';
import type { TestTemporal } from './temporal.ts';

export const refundSpec: Spec = {
  version: 1,
  name: 'refund',
  steps: [
    {
      id: 'refund',
      tool: 'payments.refund',
      with: { order: '${{ input.order }}', amount: '10.00' },
      before: { approve: {} },
    },
  ],
};

/** Ends with its decision: nothing happens after it. */
export const questionSpec: Spec = {
  version: 1,
  name: 'question',
  steps: [{ id: 'ask', approval: { title: 'Shall we?' } }],
};

/** Starts a run whose order is named as the run, and waits for its gate. Needs a worker. */
export async function startGate(
  temporal: Pick<TestTemporal, 'id'>,
  countersign: CountersignClient,
  name: string,
  spec = refundSpec,
): Promise<SeenGate> {
  const runId = temporal.id(name);
  await startSpec(countersign, runId, spec, { order: runId });
  return openGate(countersign, runId);
}

/** What reached the ledger for that order. */
export async function linesOf(ledger: Ledger, order: string): Promise<LedgerLine[]> {
  return (await ledger.lines()).filter(({ body }) => (body as { order?: string }).order === order);
}
