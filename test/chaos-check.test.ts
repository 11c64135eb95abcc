// The checks of the chaos harness, proven: evidence of good runs passes, and each thing that can be wrong in it is
// caught under its own number.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Evidence, Violation } from './chaos/evidence.ts';
import { check } from './chaos/check/check.ts';
import { addTallies, tallyOf, tallyProblems } from './chaos/check/n7.ts';
import {
  annId,
  approved,
  bobId,
  byAnn,
  byBob,
  call,
  evidenceOf,
  goodEvidence,
  ledgerLine,
  lost,
  refund,
  runOf,
  seen,
  won,
} from './support/chaos-evidence.ts';
import {
  approves,
  asks,
  caseOf,
  completed,
  decisionOn,
  done,
  epoch,
  history,
  memo,
  performs,
  place,
  signal,
  task,
  verdictOn,
  type EventBody,
} from './support/chaos-history.ts';

interface Bad {
  what: string;
  evidence: () => Evidence;
  caught: Violation['invariant'];
  words: RegExp;
}

const good = goodEvidence;

/** The good one with one thing changed. */
function changed(from: () => Evidence, change: (evidence: Evidence) => void): () => Evidence {
  return () => {
    const evidence = structuredClone(from());
    change(evidence);
    return evidence;
  };
}

function callOf(evidence: Evidence, person: string, op = 'approve') {
  const found = evidence.calls.find((one) => one.person === person && one.op === op);
  assert.ok(found !== undefined);
  return found;
}

/** One run of one gate, with the events that follow the asking. */
function runWith(bodies: readonly EventBody[], more: Partial<Evidence> = {}, status = 'completed'): Evidence {
  const raw = history(place, [task, ...asks(refund), ...bodies]);
  return evidenceOf({ runs: [runOf(raw, status)], ...more });
}

function withoutSignal(evidence: Evidence, index: number): void {
  const [run] = evidence.runs;
  const { events } = run?.histories[0] as { events: Record<string, unknown>[] };
  const signals = events.filter((event) => 'workflowExecutionSignaledEventAttributes' in event);
  events.splice(events.indexOf(signals[index] ?? {}), 1);
}

const paid = [performs(refund), done(9, refund), task, completed({ status: 'completed' })];
const approveAnn = [signal(byAnn), task, ...approves(refund, byAnn)];
const otherRun = { ...place, workflowId: 'run-2', root: '019d2b1a-7f3e-7c11-9d55-0000000000ff' };

const bad: Bad[] = [
  {
    what: 'an answer 200 whose signal is in no history',
    evidence: changed(good.approved, (evidence) => withoutSignal(evidence, 0)),
    caught: 'N1',
    words: /no history has a signal/,
  },
  {
    what: 'an answer 202 whose signal is in no history',
    evidence: changed(good.carried, (evidence) => {
      const { run, key = '' } = callOf(evidence, 'ann');
      const answer = { status: 202, body: { decisionId: 'd-lost', verdict: 'pending', state: 'pending' } };
      evidence.calls.push(call('reject', 'dan', [400, 500], answer, { run, key }));
    }),
    caught: 'N1',
    words: /no history has a signal with decision d-lost/,
  },
  {
    what: 'an answer that came before Temporal had the signal',
    evidence: changed(good.approved, (evidence) => {
      Object.assign(callOf(evidence, 'ann'), { begun: epoch + 50, ended: epoch + 60 });
    }),
    caught: 'N1',
    words: /340 ms before Temporal had its signal/,
  },
  {
    what: 'a loser that was told it had won',
    evidence: changed(good.approved, (evidence) => {
      callOf(evidence, 'bob', 'reject').answer = won(bobId, 'rejected')!;
    }),
    caught: 'N1',
    words: /as accepted, and no history says so/,
  },
  {
    what: 'a comment that was told accepted and is not recorded so',
    evidence: changed(good.approved, (evidence) => {
      evidence.calls.push(call('comment', 'bob', [390, 900], won(bobId, 'approved')));
    }),
    caught: 'N1',
    words: /as accepted, and no history says so/,
  },
  {
    what: 'a start that was confirmed and left no run',
    evidence: changed(good.approved, (evidence) => {
      evidence.calls.push(
        call('start', 'eve', [0, 40], { status: 201, body: { id: 'gone' } }, { run: 'gone' }),
      );
    }),
    caught: 'N1',
    words: /no history of the run/,
  },
  {
    what: 'a cancel that was confirmed and asked of nobody',
    evidence: changed(good.approved, (evidence) => {
      evidence.calls.push(call('cancel', 'eve', [50, 90], { status: 202, body: {} }));
    }),
    caught: 'N1',
    words: /no history has the request to cancel/,
  },
  {
    what: 'a signal that Temporal took and lost',
    evidence: changed(good.approved, (evidence) => {
      const more = { door: 'raw-signed', decisionId: 'd-raw' } as const;
      evidence.calls.push(call('approve', 'dan', [390, 400], { status: 200, body: null }, more));
    }),
    caught: 'N1',
    words: /no history has a signal with decision d-raw/,
  },
  {
    what: 'a verdict on a decision that nobody sent',
    evidence: () => runWith([task, ...approves(refund, byAnn), ...paid], { ledger: [ledgerLine(refund)] }),
    caught: 'N1',
    words: /which no signal brought/,
  },
  {
    what: 'a verdict on a gate that nobody asked',
    evidence: () => {
      const foreign = caseOf('other');
      const decision = decisionOn(foreign, 'd-1');
      return runWith([signal(decision), task, verdictOn(foreign, decision), completed({})]);
    },
    caught: 'N1',
    words: /which was never asked/,
  },
  {
    what: 'a look that finds the gate open after somebody was told who won',
    evidence: changed(good.approved, (evidence) => {
      evidence.calls.push(call('read', 'cat', [901, 905], seen('pending')));
    }),
    caught: 'N2',
    words: /was told "pending", asked 1 ms after that/,
  },
  {
    what: 'a look that finds no gate after somebody was told who won',
    evidence: changed(good.approved, (evidence) => {
      evidence.calls.push(call('read', 'cat', [2_000, 2_005], { status: 404, body: {} }));
    }),
    caught: 'N2',
    words: /was told "absent"/,
  },
  {
    what: 'a decision that is refused as if the gate were open after it was won',
    evidence: changed(good.approved, (evidence) => {
      const answer = { status: 412, body: { code: 'payload_changed' } };
      evidence.calls.push(call('approve', 'bob', [2_000, 2_005], answer));
    }),
    caught: 'N2',
    words: /was told "pending", asked/,
  },
  {
    what: 'a loser that was told of another winner',
    evidence: changed(good.approved, (evidence) => {
      callOf(evidence, 'bob', 'reject').answer = lost('d-other', 'approved')!;
    }),
    caught: 'N2',
    words: /two winners/,
  },
  {
    what: 'an answer that names a winner before that was sent',
    evidence: changed(good.approved, (evidence) => {
      evidence.calls.push(call('read', 'cat', [320, 360], seen('approved', annId)));
    }),
    caught: 'N2',
    words: /30 ms before that was sent/,
  },
  {
    what: 'a winner of whom the history knows nothing',
    evidence: changed(good.refused, (evidence) => {
      const { run, key = '' } = callOf(evidence, 'ann', 'reject');
      evidence.calls.push(call('read', 'cat', [700, 900], seen('expired'), { run, key }));
    }),
    caught: 'N2',
    words: /was told "expired", and no history of it ended so/,
  },
  {
    what: 'the later of two waiting decisions wins',
    evidence: () => {
      const bodies = [signal(byBob), signal(byAnn), task, ...approves(refund, byAnn), performs(refund)];
      return runWith([...bodies, done(10, refund), task, completed({})], { ledger: [ledgerLine(refund)] });
    },
    caught: 'N2',
    words: new RegExp(`${annId} won, and ${bobId} was there before it`),
  },
  {
    what: 'two decisions that were both accepted',
    evidence: () => {
      const both = [signal(byAnn), signal(byBob), task, ...approves(refund, byAnn), verdictOn(refund, byBob)];
      return runWith([...both, performs(refund), done(11, refund), task], { ledger: [ledgerLine(refund)] });
    },
    caught: 'N2',
    words: /accepted 2 decisions that each end it/,
  },
  {
    what: 'one key that is asked in two rounds',
    evidence: () => {
      const again = decisionOn(refund, 'd-again', { by: { id: 'bob' } });
      const second = [...asks(refund), signal(again), task, ...approves(refund, again), performs(refund)];
      return runWith(
        [...approveAnn, performs(refund), done(9, refund), ...second, done(16, refund), completed({})],
        {
          ledger: [ledgerLine(refund)],
        },
      );
    },
    caught: 'N2',
    words: /was asked 2 times/,
  },
  {
    what: 'a key that does not hold the root',
    evidence: () => {
      const keyless = { ...refund, key: 'run-1.refund.000000000000' };
      return evidenceOf({
        runs: [runOf(history(place, [task, ...asks(keyless), task, completed({})]), 'completed')],
      });
    },
    caught: 'N2',
    words: /has the key run-1.refund.000000000000, and not run-1.refund.046acc729732/,
  },
  {
    what: 'an approved effect that the ledger does not have',
    evidence: changed(good.approved, (evidence) => (evidence.ledger = [])),
    caught: 'N3',
    words: /is recorded as done, and is not in the ledger/,
  },
  {
    what: 'an effect that was done twice',
    evidence: changed(good.approved, (evidence) => evidence.ledger.push(ledgerLine(refund))),
    caught: 'N3',
    words: /2 effects with the key .* 1 allowed/,
  },
  {
    what: 'an effect without keys that was done twice',
    evidence: changed(good.inDoubt, (evidence) => {
      evidence.ledger.push(...evidence.ledger);
    }),
    caught: 'N3',
    words: /2 effects with no key/,
  },
  {
    what: 'a key that is made of something else than root and position',
    evidence: changed(good.resetRun, (evidence) => {
      evidence.ledger.push(ledgerLine(refund, { key: '119d2b1a-7f3e-7c11-9d55-046acc729732:refund' }));
    }),
    caught: 'N3',
    words: /no run has one with that key/,
  },
  {
    what: 'a child that was not handed the root of its parent',
    evidence: changed(good.childRun, (evidence) => {
      for (const line of evidence.ledger) line.key = '219d2b1a-7f3e-7c11-9d55-046acc729733:sub/pay';
    }),
    caught: 'N3',
    words: /no run has one with that key/,
  },
  {
    what: 'an effect of a gate that was rejected',
    evidence: () => {
      const bodies = [signal(byBob), task, verdictOn(refund, byBob), memo('refund', 'rejected')];
      return runWith([...bodies, performs(refund), done(9, refund), completed({})], {
        ledger: [ledgerLine(refund)],
      });
    },
    caught: 'N3',
    words: /was never approved/,
  },
  {
    what: 'a gated tool that was scheduled by hand, without a grant',
    evidence: () => {
      const frozen = caseOf('refund', {}, otherRun);
      const raw = history(otherRun, [task, performs(frozen), done(3, frozen, otherRun), task, completed({})]);
      return evidenceOf({
        runs: [runOf(raw, 'completed', { of: otherRun })],
        ledger: [ledgerLine(frozen, {}, otherRun)],
      });
    },
    caught: 'N3',
    words: /"pay.keyed" at "refund" was never approved/,
  },
  {
    what: 'an effect that surely did not happen, and did',
    evidence: changed(good.misused, (evidence) => {
      evidence.ledger.push(ledgerLine(refund, { body: { order: 'run-1/refund', amount: '999.00' } }));
    }),
    caught: 'N3',
    words: /surely not done \(payload_changed\), and it is in the ledger/,
  },
  {
    what: 'a run that completes without the effect that was approved',
    evidence: () => runWith([...approveAnn, task, completed({ status: 'completed' })]),
    caught: 'N3',
    words: /completed without its effect/,
  },
  {
    what: 'an approved effect that is scheduled twice',
    evidence: () => {
      const twice = [
        performs(refund),
        done(9, refund),
        performs(refund),
        done(11, refund),
        task,
        completed({}),
      ];
      return runWith([...approveAnn, ...twice], { ledger: [ledgerLine(refund)] });
    },
    caught: 'N3',
    words: /more often than it was approved/,
  },
  {
    what: 'a body that is not the approved one',
    evidence: changed(good.approved, (evidence) => {
      evidence.ledger = [ledgerLine(refund, { body: { order: 'run-1/refund', amount: '1000.00' } })];
    }),
    caught: 'N4',
    words: /the ledger got sha256:\S+ from "refund", frozen was/,
  },
  {
    what: 'arguments before the edit, although it was approved after it',
    evidence: changed(good.edited, (evidence) => (evidence.ledger = [ledgerLine(refund)])),
    caught: 'N4',
    words: /the ledger got/,
  },
  {
    what: 'an effect that ran with other arguments than its grant is for',
    evidence: () => {
      const other = { order: 'run-1/refund', amount: '999.00' };
      const bodies = [
        ...approveAnn,
        performs(refund, { arguments: other }),
        done(9, refund),
        task,
        completed({}),
      ];
      return runWith(bodies, { ledger: [ledgerLine(refund, { body: other })] });
    },
    caught: 'N4',
    words: /the ledger got/,
  },
  {
    what: 'a decision on another hash that was accepted',
    evidence: () => {
      const stale = { ...byAnn, payloadHash: `sha256:${'e'.repeat(64)}` };
      return runWith([signal(stale), task, ...approves(refund, stale), ...paid], {
        ledger: [ledgerLine(refund)],
      });
    },
    caught: 'N4',
    words: /on sha256:eeeeeeeeeeee was accepted/,
  },
  {
    what: 'a decision that is recorded on another hash than it was sent with',
    evidence: changed(good.approved, (evidence) => {
      callOf(evidence, 'ann').payloadHash = `sha256:${'e'.repeat(64)}`;
    }),
    caught: 'N4',
    words: /on another hash than it was sent with/,
  },
  {
    what: 'a grant for another payload',
    evidence: () => {
      const other = caseOf('refund', { arguments: { amount: '7.00' } });
      const grant = { position: 'refund', tool: 'pay.keyed', payloadHash: other.payloadHash } as never;
      const bodies = [
        signal(byAnn),
        task,
        verdictOn(refund, byAnn, { grant }),
        memo('refund', 'approved'),
        ...paid,
      ];
      return runWith(bodies, { ledger: [ledgerLine(refund)] });
    },
    caught: 'N4',
    words: /granted sha256/,
  },
  {
    what: 'a case whose hash is not that of its arguments',
    evidence: () => {
      const wrong = { ...refund, payloadHash: `sha256:${'e'.repeat(64)}` };
      return evidenceOf({
        runs: [runOf(history(place, [task, ...asks(wrong), task, completed({})]), 'completed')],
      });
    },
    caught: 'N4',
    words: /the case says sha256:eeeeeeeeeeee/,
  },
  {
    what: 'arguments that are shown under the hash of others',
    evidence: changed(good.approved, (evidence) => {
      const shown = { ...refund, arguments: { order: 'run-1/refund', amount: '0.01' } };
      evidence.calls.push(call('read', 'dan', [350, 380], seen('pending', undefined, shown)));
    }),
    caught: 'N4',
    words: /was shown arguments of/,
  },
  {
    what: 'a run that neither ends nor waits',
    evidence: changed(good.approved, (evidence) => Object.assign(evidence.runs[0]!, { status: 'running' })),
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
];

describe('evidence of a good run passes', () => {
  for (const [name, evidence] of Object.entries(good)) {
    test(name, () => {
      const { runs } = evidence();
      assert.ok(runs.every(({ histories, trail }) => histories.length > 0 && trail.length > 0));
      assert.deepEqual(check(evidence()), []);
    });
  }
});

describe('what is wrong is caught', () => {
  for (const { what, evidence, caught, words } of bad) {
    test(`${caught}: ${what}`, () => {
      const violations = check(evidence());
      const told = violations.map((one) => `${one.invariant} ${one.what}`).join('\n');
      assert.ok(
        violations.some((one) => one.invariant === caught && words.test(one.what)),
        told || 'no violation',
      );
    });
  }

  test('every invariant has something that it catches', () => {
    assert.deepEqual([...new Set(bad.map(({ caught }) => caught))].sort(), [
      'N1',
      'N2',
      'N3',
      'N4',
      'N5',
      'N6',
      'N7',
    ]);
  });
});

describe('what a campaign adds up', () => {
  test('N7: one run with few operations is no verdict, many of them are', () => {
    const evidence = approved();
    callOf(evidence, 'ann').answer = { status: 503, body: { code: 'temporal_unavailable' } };
    const tally = tallyOf(evidence);
    assert.deepEqual({ expected: tally.expected, succeeded: tally.succeeded }, { expected: 1, succeeded: 0 });
    assert.deepEqual(tallyProblems(tally), []);
    const [problem] = tallyProblems(addTallies(Array.from({ length: 10 }, () => tally)));
    assert.match(problem?.what ?? '', /0 of 10 operations succeeded/);
  });

  test('N7: what somebody else decided first is no failure, and 202 is no success', () => {
    const evidence = approved();
    Object.assign(callOf(evidence, 'bob', 'reject'), { shouldSucceed: true });
    assert.equal(tallyOf(evidence).expected, 1);
    callOf(evidence, 'ann').answer = { status: 202, body: {} };
    assert.equal(tallyOf(evidence).succeeded, 0);
  });
});

test('after a workflow reset a gate may be open again, and is one register from then on', () => {
  const evidence = good.resetRun();
  assert.deepEqual(check(evidence), []);
  evidence.calls.push(call('read', 'cat', [11_300, 11_310], seen('pending')));
  assert.match(check(evidence)[0]?.what ?? '', /was told "pending", asked/);
});
