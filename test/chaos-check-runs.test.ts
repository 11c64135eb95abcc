// The checks of the chaos harness, proven: runs that stand, trails that tell something else, and empty proofs.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { addTallies, tallyOf, tallyProblems } from './chaos/check/n7.ts';
import { readStories } from './chaos/check/story.ts';
import { callOf, changed, runWith, approveAnn, testsThatCatch } from './support/chaos-bad.ts';
import { bobId, call, ledgerLine, refund, seen } from './support/chaos-evidence.ts';
import { approved, goodEvidence as good } from './support/chaos-good.ts';
import { completed, done, performs, task } from './support/chaos-history.ts';

testsThatCatch([
  {
    what: 'a run that neither ends nor waits',
    evidence: changed(good.approved, (evidence) => Object.assign(evidence.runs[0]!, { status: 'running' })),
    caught: 'N5',
    words: /is "running" and waits for no named approval/,
  },
  {
    what: 'a parent that goes on running although its child has ended',
    evidence: changed(good.waitingChild, ({ runs }) => {
      for (const run of runs) if (run.kind === 'child') run.status = 'completed';
    }),
    caught: 'N5',
    words: /is "running" and waits for no named approval/,
  },
  {
    what: 'a workflow task that fails again and again',
    evidence: changed(good.inDoubt, (evidence) =>
      Object.assign(evidence.runs[0]!, { pendingTaskFailures: 4 }),
    ),
    caught: 'N5',
    words: /workflow task failed 4 times/,
  },
  {
    what: 'a workflow task that failed with non-determinism',
    evidence: () => {
      const cause = 'WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR';
      const failure = { workflowTaskFailed: { cause, failure: { message: 'TMPRL1100' } } };
      return runWith([...approveAnn, performs(refund), failure, done(9, refund), task, completed({})], {
        ledger: [ledgerLine(refund)],
      });
    },
    caught: 'N5',
    words: /NON_DETERMINISTIC_ERROR\): TMPRL1100/,
  },
  {
    what: 'runs that took over a minute to settle',
    evidence: changed(good.approved, (evidence) => (evidence.settledAt = evidence.lastFaultAt + 60_001)),
    caught: 'N5',
    words: /settled 60001 ms after the last fault/,
  },
  {
    what: 'an effect that never ends',
    evidence: () => runWith([...approveAnn, performs(refund)], {}, 'running'),
    caught: 'N5',
    words: /has neither ended nor become a question/,
  },
  {
    what: 'an approval that nothing follows',
    evidence: () => runWith(approveAnn, {}, 'running'),
    caught: 'N5',
    words: /was approved, and its effect did not start/,
  },
  {
    what: 'a history that does not replay',
    evidence: changed(
      good.approved,
      (evidence) => (evidence.replay = [{ run: 'run-1', failed: 'TMPRL1100' }]),
    ),
    caught: 'N6',
    words: /does not replay: TMPRL1100/,
  },
  {
    what: 'a history that was not replayed',
    evidence: changed(good.approved, (evidence) => (evidence.replay = [])),
    caught: 'N6',
    words: /was not replayed/,
  },
  {
    what: 'a trail that leaves out how a gate ended',
    evidence: changed(good.refused, ({ runs }) => {
      for (const run of runs) run.trail = run.trail.filter(({ type }) => type !== 'approval_expired');
    }),
    caught: 'N6',
    words: /does not tell "\S+ expired"/,
  },
  {
    what: 'a trail that tells of another winner',
    evidence: changed(good.approved, ({ runs }) => {
      for (const fact of runs[0]!.trail)
        if (fact.type === 'approval_granted') fact.decision.decisionId = 'd-other';
    }),
    caught: 'N6',
    words: /tells "\S+ approved d-other"/,
  },
  {
    what: 'a trail that leaves out an effect',
    evidence: changed(good.approved, ({ runs }) => {
      for (const run of runs) run.trail = run.trail.filter(({ type }) => type !== 'tool_result');
    }),
    caught: 'N6',
    words: /does not tell "\S+:refund done"/,
  },
  {
    what: 'a trail with another key for an effect',
    evidence: changed(good.approved, ({ runs }) => {
      for (const fact of runs[0]!.trail) if (fact.type === 'tool_result') fact.idempotencyKey = 'random';
    }),
    caught: 'N6',
    words: /tells "random done"/,
  },
  {
    what: 'a trail whose numbers have a hole',
    evidence: changed(good.approved, ({ runs }) => (runs[0]!.trail[2]!.seq = 9)),
    caught: 'N6',
    words: /fact 3 of its trail has seq 9/,
  },
  {
    what: 'a refused decision that the trail does not tell',
    evidence: changed(good.approved, ({ runs }) => {
      for (const run of runs) run.trail = run.trail.filter(({ type }) => type !== 'decision_refused');
    }),
    caught: 'N6',
    words: new RegExp(`does not tell of decision ${bobId}`),
  },
  {
    what: 'a run that does not show what it waits for',
    evidence: changed(good.inDoubt, ({ runs }) =>
      Object.assign(runs[0]!.view as object, { pendingApprovals: [] }),
    ),
    caught: 'N6',
    words: /shows as pending \[\]/,
  },
  {
    what: 'a run that is said to wait, and has ended',
    evidence: changed(good.approved, ({ runs }) => Object.assign(runs[0]!, { status: 'awaiting_approval' })),
    caught: 'N6',
    words: /its history has ended \(completed\)/,
  },
  {
    what: 'a planned fault that did not fire',
    evidence: changed(good.approved, ({ faults }) => Object.assign(faults[0]!, { fired: 0 })),
    caught: 'N7',
    words: /kill-worker was planned 1 times and fired 0 times/,
  },
  {
    what: 'operations that mostly failed',
    evidence: changed(good.approved, ({ calls }) => {
      for (let count = 0; count < 3; count += 1) {
        calls.push(call('read', 'dan', [350, 380], undefined, { shouldSucceed: true }));
        for (const one of [350, 360]) {
          calls.push(call('read', 'cat', [one, 380], seen('pending'), { shouldSucceed: true }));
        }
      }
    }),
    caught: 'N7',
    words: /7 of 10 operations succeeded/,
  },
]);

describe('what a campaign adds up', () => {
  test('N7: one run with few operations is no verdict, many of them are', () => {
    const evidence = approved();
    callOf(evidence, 'ann').answer = { status: 503, body: { code: 'temporal_unavailable' } };
    const tally = tallyOf(evidence, readStories(evidence));
    assert.deepEqual({ expected: tally.expected, succeeded: tally.succeeded }, { expected: 1, succeeded: 0 });
    assert.deepEqual(tallyProblems(tally), []);
    const [problem] = tallyProblems(addTallies(Array.from({ length: 10 }, () => tally)));
    assert.match(problem?.what ?? '', /0 of 10 operations succeeded/);
  });

  test('N7: what somebody else decided first is no failure, and 202 is no success', () => {
    const evidence = approved();
    Object.assign(callOf(evidence, 'bob', 'reject'), { shouldSucceed: true });
    assert.equal(tallyOf(evidence, readStories(evidence)).expected, 1);
    callOf(evidence, 'ann').answer = { status: 202, body: {} };
    assert.equal(tallyOf(evidence, readStories(evidence)).succeeded, 0);
  });
});
