// The checks of the chaos harness, proven: evidence of good runs passes, and what doors may not answer is caught.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { check } from './chaos/check/check.ts';
import {
  approveAnn,
  callOf,
  changed,
  paid,
  runWith,
  testsThatCatch,
  withoutSignal,
} from './support/chaos-bad.ts';
import {
  annId,
  bobId,
  byAnn,
  byBob,
  call,
  evidenceOf,
  ledgerLine,
  lost,
  refund,
  runOf,
  seen,
  won,
} from './support/chaos-evidence.ts';
import { goodEvidence as good } from './support/chaos-good.ts';
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
} from './support/chaos-history.ts';

testsThatCatch([
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
    what: 'a decision that is accepted after the deadline, and was not signed before it',
    evidence: () => {
      const takenUpAt = refund.expiresAt + 1;
      const late = [signal(byAnn), task, verdictOn(refund, byAnn, { takenUpAt }), memo('refund', 'approved')];
      return runWith([...late, ...paid], { ledger: [ledgerLine(refund)] });
    },
    caught: 'N2',
    words: /accepted decision \S+ after its deadline/,
  },
  {
    what: 'a gate that expires before its deadline',
    evidence: () =>
      runWith([task, memo('refund', 'expired'), completed({ status: 'rejected' })], {}, 'rejected'),
    caught: 'N2',
    words: /expired before its deadline/,
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
]);

describe('evidence of a good run passes', () => {
  for (const [name, evidence] of Object.entries(good)) {
    test(name, () => {
      const { runs } = evidence();
      assert.ok(runs.some(({ histories, trail }) => histories.length > 0 && trail.length > 0));
      assert.deepEqual(check(evidence()), []);
    });
  }
});

test('after a workflow reset a gate may be open again, and is one register from then on', () => {
  const evidence = good.resetRun();
  assert.deepEqual(check(evidence), []);
  evidence.calls.push(call('read', 'cat', [11_300, 11_310], seen('pending')));
  assert.match(check(evidence)[0]?.what ?? '', /was told "pending", asked/);
});
