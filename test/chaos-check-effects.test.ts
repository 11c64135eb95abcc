// The checks of the chaos harness, proven: each effect that is wrong is caught.
import { approveAnn, callOf, changed, otherRun, paid, runWith, testsThatCatch } from './support/chaos-bad.ts';
import { byAnn, byBob, call, evidenceOf, ledgerLine, refund, runOf, seen } from './support/chaos-evidence.ts';
import { goodEvidence as good } from './support/chaos-good.ts';
import {
  approves,
  asks,
  caseOf,
  completed,
  done,
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
]);
