// N7: a run is no proof when nothing happened in it. At least 80 % of the operations that should have succeeded
// did, and each planned fault fired. Of one run only what cannot be chance is judged; a campaign adds its runs up.
import type { Call, Evidence, Violation } from '../evidence.ts';
import { isDecision, lastReply } from './replies.ts';
import type { Story } from './story.ts';

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

export function checkN7(evidence: Evidence, stories: readonly Story[]): Violation[] {
  return tallyProblems(tallyOf(evidence, stories));
}

export function tallyOf(
  { calls, faults }: Pick<Evidence, 'calls' | 'faults'>,
  stories: readonly Story[],
): Tally {
  const ends = calls.filter(({ shouldSucceed }) => shouldSucceed).map((call) => endOf(call, stories));
  const expected = ends.filter((end) => end !== 'beaten');
  const tally: Tally = {
    expected: expected.length,
    succeeded: expected.filter((end) => end === 'succeeded').length,
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

/** `beaten`: somebody else decided, the clock did, or the run was over. */
type End = 'succeeded' | 'beaten' | 'failed';

const beatenCodes: readonly unknown[] = ['already_resolved', 'approval_not_found', 'run_closed'];

function endOf(call: Call, stories: readonly Story[]): End {
  const reply = lastReply(call);
  if (reply === undefined) return 'failed';
  if (call.door !== 'http' && isDecision(call)) return signalled(call, reply.status, stories);
  if (beatenCodes.includes(reply.body['code'])) return 'beaten';
  const isDone = reply.status >= 200 && reply.status < 300;
  // 202 is recorded, not accepted
  return isDone && (reply.status !== 202 || call.op === 'cancel') ? 'succeeded' : 'failed';
}

/** Nobody tells a signal what became of it: the history does. */
function signalled(call: Call, status: number, stories: readonly Story[]): End {
  const gates = stories.flatMap((story) => story.gates).filter(({ key }) => key === call.key);
  const isAccepted = gates.some(({ verdicts }) =>
    verdicts.some(
      ({ record }) => record.verdict === 'accepted' && record.decision.decisionId === call.decisionId,
    ),
  );
  if (isAccepted) return 'succeeded';
  return status === 404 || gates.some(({ outcome }) => outcome !== undefined) ? 'beaten' : 'failed';
}
