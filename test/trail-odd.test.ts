// P6: the trail decoder reads what anybody may have written: whatever a start or a record under our names
// holds, it never throws, since one odd run would take the doors of all runs with it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Json } from '../src/core/json.ts';
import {
  caseOf, decisionAt, freeze, keyOf, payloadHash, performInput, root, settled, signal, start, task, trailOf, verdict,
  type Body,
} from './support/trail-events.ts'; // prettier-ignore

/** JSON of any shape whose members often have the names and values that our records have. */
const almostOurs = fc.letrec<{ value: unknown }>((tie) => {
  const names = [
    'v', 'kind', 'case', 'position', 'key', 'root', 'phase', 'title', 'payloadHash', 'policy', 'requestedAt', 'expiresAt',
    'decision', 'by', 'gates', 'view', 'frozen', 'queue', 'end', 'state', 'settlement', 'at', 'accepted', 'prefix', 'tool',
    'input', 'trigger', 'startedBy', 'specRef', 'toString', 'details',
  ]; // prettier-ignore
  const known = [
    1,
    'case',
    'verdict',
    'prepared',
    'carried',
    'effect',
    'refund',
    keyOf('refund'),
    root,
    'before',
    payloadHash,
  ];
  return {
    value: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      fc.constantFrom<unknown>(
        ...known,
        start,
        1e300,
        'pending',
        'expired',
        null,
        '..',
        decisionAt('refund', 'd-1'),
      ),
      fc.jsonValue({ maxDepth: 1 }),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom(...names), tie('value'), { maxKeys: 8 }),
    ),
  };
}).value;

/** One of our records, with some of its members replaced or taken away. */
function damaged(record: object): fc.Arbitrary<unknown> {
  const parts = Object.entries(record).map(([name, value]) =>
    fc.oneof({ weight: 6, arbitrary: fc.constant([[name, value]]) }, almostOurs.map((other) => [[name, other]]), fc.constant([])),
  ); // prettier-ignore
  return fc.tuple(...parts).map((pairs) => Object.fromEntries(pairs.flat() as [string, unknown][]));
}

test('P6: whatever a start or a record holds, it decodes', () => {
  const approve = decisionAt('refund', 'd-1');
  const frozen = caseOf('refund');
  const settlement = { state: 'approved', at: start, by: { id: 'ann', verified: true } };
  const view = { key: keyOf('refund'), position: 'refund', state: 'approved', settlement, winner: approve };
  const verdictRecord = {
    v: 1, kind: 'verdict', position: 'refund', key: keyOf('refund'), root, decision: approve, by: approve.by, verdict: 'accepted',
  }; // prettier-ignore
  const carried = fc.oneof(damaged(view), almostOurs).chain((one) =>
    damaged({ v: 1, kind: 'carried', root, gates: [{ view: one, end: { case: frozen } }, { view: one, frozen, queue: [] }] }),
  ); // prettier-ignore
  const input = fc.oneof(
    almostOurs,
    carried,
    damaged(frozen).map((one) => ({ v: 1, case: one })),
    damaged({ v: 1, input: 1, trigger: { kind: 'x' }, startedBy: { id: 'x' }, specRef: { name: 'x' } }),
  );
  const result = fc.oneof(almostOurs, damaged(frozen), damaged(verdictRecord));
  const activityType = fc.constantFrom('freezeCase', 'prepareStep', 'admitDecision', 'perform', 'mine');
  const workflowType = fc.constantFrom('runSpec', 'requestApproval', 'toString', 'mine');
  const firstRunId = fc.constantFrom(root, 'no uuid');
  const body = fc.oneof(
    fc.record({ type: fc.constant('local_activity'), activityType, result }),
    fc.record({ type: fc.constant('activity_scheduled'), activityType, input: fc.oneof(almostOurs, damaged(performInput)) }),
    fc.record({ type: fc.constant('activity_completed'), scheduledEventId: fc.nat(9), result }),
    fc.record({ type: fc.constant('memo_changed'), fields: damaged({ 'approval/refund': { state: 'expired', at: 1e300 } }) }),
    fc.constantFrom(signal(approve), task, freeze('refund'), verdict(approve), settled('refund', 'expired')),
  ); // prettier-ignore
  const begun = fc.record({ type: fc.constant('run_started'), workflowType, firstRunId, input });
  fc.assert(
    fc.property(begun, fc.array(body, { maxLength: 12 }), (first, rest) => {
      const facts = trailOf([first, signal(approve), task, ...rest, task] as unknown as Body[]);
      assert.ok(facts.length > 0);
    }),
    { numRuns: 1000 },
  );
});

test('P6: a requested approval whose case nobody froze is a start, and no approval', () => {
  const cases: unknown[] = [
    {},
    { position: 5 },
    { ...caseOf('refund'), requestedAt: 1e300 },
    { ...caseOf('refund'), position: '..' },
  ];
  for (const one of cases) {
    const input = { v: 1, case: one } as unknown as Json;
    const facts = trailOf([
      { type: 'run_started', workflowType: 'requestApproval', firstRunId: root, input },
    ]);
    const types = facts.map(({ type }) => type);
    assert.deepEqual(types, ['run_started'], JSON.stringify(one));
  }
});
