// P6: a run that ends by its own code or from outside while something still waits leaves no decision untold.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decisionAt, freeze, signal, started, task, trailOf, type Body } from './support/trail-events.ts';

test('P6: what waits at a gate, or was not seen, when its run ends is told: the gate is cancelled, the decision came too late', () => {
  const queued = decisionAt('refund', 'd-queued');
  const unseen = decisionAt('refund', 'd-unseen', { decision: 'reject' });
  for (const end of [
    { type: 'run_cancelled' },
    { type: 'run_terminated', reason: 'by hand' },
    { type: 'run_completed', result: null },
  ] as Body[]) {
    const facts = trailOf([
      started('mine'),
      task,
      freeze('refund'),
      signal(queued),
      task,
      signal(unseen),
      end,
    ]);
    assert.deepEqual(
      facts.slice(2, 5).map(({ type }) => type),
      ['approval_cancelled', 'decision_refused', 'decision_refused'],
    );
    const refusals = facts.flatMap((fact) => (fact.type === 'decision_refused' ? [fact] : []));
    assert.deepEqual(
      refusals.map(({ code, decision }) => [code, decision?.decisionId]),
      [
        ['already_resolved', 'd-queued'],
        ['already_resolved', 'd-unseen'],
      ],
    );
    assert.equal(facts.length, 6);
  }
  // a reset terminates what it cuts: there the gate goes on
  const cut = [
    started('mine'),
    task,
    freeze('refund'),
    task,
    { type: 'run_terminated', reason: 'reset' },
  ] as Body[];
  assert.ok(!trailOf(cut, { cutAfter: 3 }).some(({ type }) => type === 'approval_cancelled'));
});
