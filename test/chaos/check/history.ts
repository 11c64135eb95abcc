// Reads raw Temporal histories for the checks. The executions of a workflow id are read as lineages: what one of
// them and those that it continues saw. A workflow reset, or a child that is started anew, leaves one behind.
import {
  attributesOf,
  fieldsOf,
  textOf,
  timeOf,
  whatOf,
  type RawEvent,
  type Scheduled,
  type What,
} from './raw-event.ts';

export type Step = What & {
  /** milliseconds since the epoch, by the server */
  at: number;
  eventId: number;
  /** the execution that made the event: the one that a reset copied it from */
  runId: string;
  /** which execution of the lineage it stands in, from 0 */
  execution: number;
};

export interface Lineage {
  workflowId: string;
  /** of the first execution; a child's keys are made of another one */
  firstRunId: string;
  /** when it took the place of the one before it, or when the run began; milliseconds since the epoch */
  began: number;
  steps: Step[];
}

interface Execution {
  workflowId: string;
  runId: string;
  firstRunId: string;
  continues: string | undefined;
  /** what a reset made it of, and from which event on it is its own */
  base: { runId: string; eventId: number; at: number } | undefined;
  events: RawEvent[];
}

/** The lineages of one workflow id, the current one last. */
export function readLineages(histories: readonly unknown[]): Lineage[] {
  const executions = histories.flatMap(readExecution);
  const byRunId = new Map(executions.map((one) => [one.runId, one]));
  const isContinued = ({ runId }: Execution): boolean =>
    executions.some(({ continues }) => continues === runId);
  const lineages: Lineage[] = [];
  for (const leaf of executions) {
    if (isContinued(leaf)) continue;
    const chain: Execution[] = [];
    for (let one: Execution | undefined = leaf; one !== undefined && !chain.includes(one);) {
      chain.unshift(one);
      one = byRunId.get(one.continues ?? '');
    }
    const steps = chain.flatMap((one, execution) => stepsOf(one, execution, byRunId));
    const reset = chain.findLast(({ base }) => base !== undefined)?.base;
    const began = reset?.at ?? steps[0]?.at ?? 0;
    lineages.push({ workflowId: leaf.workflowId, firstRunId: leaf.firstRunId, began, steps });
  }
  return lineages.sort((a, b) => a.began - b.began);
}

function readExecution(history: unknown): Execution[] {
  const events = (fieldsOf(history)['events'] ?? []) as RawEvent[];
  const [first] = events;
  if (first === undefined) return [];
  const started = attributesOf(first, 'workflowExecutionStarted');
  const reset = events.findLast((event) => attributesOf(event, 'workflowTaskFailed')['baseRunId']);
  const failed = reset === undefined ? {} : attributesOf(reset, 'workflowTaskFailed');
  const own = textOf(started['originalExecutionRunId']);
  return [
    {
      workflowId: textOf(started['workflowId']),
      runId: reset === undefined ? own : textOf(failed['newRunId']),
      firstRunId: textOf(started['firstExecutionRunId']) || own,
      continues: textOf(started['continuedExecutionRunId']) || undefined,
      base:
        reset === undefined
          ? undefined
          : { runId: textOf(failed['baseRunId']), eventId: Number(reset.eventId), at: timeOf(reset) },
      events,
    },
  ];
}

function stepsOf(of: Execution, execution: number, byRunId: ReadonlyMap<string, Execution>): Step[] {
  const scheduled: Scheduled = new Map();
  return of.events.flatMap((event) => {
    const eventId = Number(event.eventId);
    const place = { at: timeOf(event), eventId, runId: makerOf(of, eventId, byRunId), execution };
    return whatOf(event, scheduled).map((what) => ({ ...what, ...place }));
  });
}

/** Events before the reset are copies; whoever counts effects or signals must not count them twice. */
function makerOf(execution: Execution, eventId: number, byRunId: ReadonlyMap<string, Execution>): string {
  let maker = execution;
  for (let depth = 0; maker.base !== undefined && eventId < maker.base.eventId && depth < 100; depth += 1) {
    const { runId } = maker.base;
    const base = byRunId.get(runId);
    if (base === undefined) return runId;
    maker = base;
  }
  return maker.runId;
}
