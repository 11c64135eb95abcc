// P8: what a run remembers of refused decisions is bounded, however many are sent to it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Decision } from '../src/core/decision.ts';
import { keepReceipt, type Run } from '../src/workflows/run.ts';

const run: Run = {
  workflowId: 'refund-1',
  root: '019d2b1a-7f3e-7c11-9d55-046acc729732',
  gates: new Map(),
  receipts: new Map(),
  names: new Map(),
  resumed: new Map(),
};

function refuse(decisionId: string): void {
  const key = 'refund-1.refund.046acc729732';
  const decision: Decision = {
    v: 1,
    key,
    root: run.root,
    decision: 'reject',
    decisionId,
    by: { id: 'ann' },
    via: 'signal',
  };
  keepReceipt(run, decision, undefined, { verdict: 'refused', code: 'not_open' });
}

test('P8: a run remembers the answers to its last 1,000 decisions, and no more', () => {
  for (let index = 0; index < 1_000; index += 1) refuse(`d-${index}`);
  refuse('d-0'); // sent again: the newest now
  for (let index = 1_000; index < 1_500; index += 1) refuse(`d-${index}`);
  assert.equal(run.receipts.size, 1_000);
  assert.ok(!run.receipts.has('d-500'));
  for (const kept of ['d-0', 'd-501', 'd-1499']) assert.ok(run.receipts.has(kept), kept);
});
