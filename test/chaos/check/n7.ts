// N7: a run is no proof when nothing happened in it. At least 80 % of the operations that should have succeeded
// did, and each planned fault fired. Of one run only what cannot be chance is judged; a campaign adds its runs up.
import type { Call, Evidence, Violation } from '../evidence.ts';
import { lastReply, type Reply } from './replies.ts';

export interface Tally {
  /** calls that should succeed and to which nothing else was there first */
  expected: number;
  succeeded: number;
  /** by name */
  faults: Record<string, { planned: number; fired: number }>;
}

/** Of fewer calls a single lost one would be more than the fifth that may be lost. */
const fewestCalls = 10;
const neededShare = 0.8;

export function checkN7(evidence: Evidence): Violation[] {
  return tallyProblems(tallyOf(evidence));
}

export function tallyOf({ calls, faults }: Pick<Evidence, 'calls' | 'faults'>): Tally {
  const expected = calls.filter((call) => call.shouldSucceed && !wasBeaten(lastReply(call)));
  const tally: Tally = {
    expected: expected.length,
    succeeded: expected.filter((call) => hasSucceeded(call)).length,
    faults: {},
  };
  return addTallies([
    tally,
    ...faults.map((fault) => ({ expected: 0, succeeded: 0, faults: { [fault.name]: fault } })),
  ]);
}

export function addTallies(tallies: readonly Tally[]): Tally {
  const sum: Tally = { expected: 0, succeeded: 0, faults: {} };
  for (const { expected, succeeded, faults } of tallies) {
    sum.expected += expected;
    sum.succeeded += succeeded;
    for (const [name, { planned, fired }] of Object.entries(faults)) {
      const before = sum.faults[name] ?? { planned: 0, fired: 0 };
      sum.faults[name] = { planned: before.planned + planned, fired: before.fired + fired };
    }
  }
  return sum;
}

export function tallyProblems({ expected, succeeded, faults }: Tally): Violation[] {
  const what = Object.entries(faults).flatMap(([name, { planned, fired }]) =>
    fired < planned ? [`the fault ${name} was planned ${planned} times and fired ${fired} times`] : [],
  );
  if (expected >= fewestCalls && succeeded < neededShare * expected) {
    what.push(`${succeeded} of ${expected} operations succeeded that should have`);
  }
  return what.map((text) => ({ invariant: 'N7', what: text }));
}

/** Somebody else decided, the clock did, or the run was over. */
function wasBeaten(reply: Reply | undefined): boolean {
  return (
    reply !== undefined &&
    ['already_resolved', 'approval_not_found', 'run_closed'].includes(String(reply.body['code']))
  );
}

/** 202 is recorded, not accepted. */
function hasSucceeded(call: Call): boolean {
  const reply = lastReply(call);
  if (reply === undefined) return false;
  return reply.status >= 200 && reply.status < 300 && (reply.status !== 202 || call.op === 'cancel');
}
