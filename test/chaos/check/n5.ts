// N5: within 60 s of the last fault every run is closed or in a named waiting state, and no workflow task fails.
import type { Evidence, EvidenceOfRun, Violation } from '../evidence.ts';
import { fieldsOf } from './raw-event.ts';
import type { Story } from './story.ts';

const settleMs = 60_000;
const closed = ['completed', 'rejected', 'failed', 'cancelled'];
const waiting = ['awaiting_approval', 'in_doubt'];

/**
 * The server gives a task out again when signals came in while it ran, when its worker went, and at a reset;
 * everything else is the worker's word that it cannot go on.
 */
const harmlessCauses = [
  'UNHANDLED_COMMAND',
  'FORCE_CLOSE_COMMAND',
  'FAILOVER_CLOSE_COMMAND',
  'RESET_WORKFLOW',
  'RESET_STICKY_TASK_QUEUE',
];

export function checkN5(evidence: Evidence, stories: readonly Story[]): Violation[] {
  const { runs, lastFaultAt, settledAt } = evidence;
  const tookMs = Math.round(settledAt - lastFaultAt);
  const late: Violation[] =
    tookMs <= settleMs ? [] : [{ invariant: 'N5', what: `settled ${tookMs} ms after the last fault` }];
  return [
    ...late,
    ...runs.flatMap((run) => restlessRun(run, runs)),
    ...stories.flatMap((story) => [
      ...(story.isCurrent ? unfinished(story) : []),
      ...failedTasks(story, evidence),
    ]),
  ];
}

function restlessRun(
  { run, status, view, pendingTaskFailures }: EvidenceOfRun,
  runs: readonly EvidenceOfRun[],
): Violation[] {
  const violation = (what: string): Violation => ({ invariant: 'N5', run, what });
  const problems: Violation[] = [];
  if (pendingTaskFailures > 0) {
    problems.push(violation(`its workflow task failed ${pendingTaskFailures} times and is tried again`));
  }
  if (closed.includes(status)) return problems;
  // a parent waits as its child does
  const isParent = runs.some((child) => child.run.startsWith(`${run}/`) && isWaiting(child));
  return isWaiting({ status, view }) || (status === 'running' && isParent)
    ? problems
    : [...problems, violation(`it is "${status}" and waits for no named approval`)];
}

function isWaiting({ status, view }: Pick<EvidenceOfRun, 'status' | 'view'>): boolean {
  const pending = fieldsOf(view)['pendingApprovals'];
  return waiting.includes(status) && Array.isArray(pending) && pending.length > 0;
}

/** A gate that was approved and whose effect neither ended nor became a question, in a run that is open. */
function unfinished({ run, gates, effects, end }: Story): Violation[] {
  if (end !== undefined) return [];
  const open = effects.filter(({ done, failed }) => done === undefined && failed === undefined);
  const unstarted = gates.filter(
    ({ outcome, case: approved, position }) =>
      outcome?.state === 'approved' &&
      approved.phase === 'before' &&
      effects.every(({ input }) => input.position !== position),
  );
  return [
    ...open.map(({ input }) => `effect "${input.position}" has neither ended nor become a question`),
    ...unstarted.map(({ position }) => `"${position}" was approved, and its effect did not start`),
  ].map((what) => ({ invariant: 'N5', run, what }));
}

function failedTasks({ run, lineage }: Story, { faults, lastFaultAt }: Evidence): Violation[] {
  // an older build may not know what a newer one recorded; that must be over when it is gone
  const isOldBuild = faults.some(({ name, fired }) => fired > 0 && name.includes('build'));
  return lineage.steps.flatMap((step): Violation[] => {
    if (step.type !== 'task_failed' || harmlessCauses.includes(step.cause)) return [];
    if (isOldBuild && step.at <= lastFaultAt) return [];
    return [{ invariant: 'N5', run, what: `workflow task failed (${step.cause}): ${step.message}` }];
  });
}
