// Decisions per second: many runs wait, all are decided at once, and the time is that until the last effect has
// started. The sides take turns, each first every other round. Tasks that waited too long for the worker that has
// the run in its cache are counted: each is done again from the whole history, and makes a burst slower.
import { inParallel, monotonicMs, ratio, round } from './numbers.ts';
import type { Side } from './sides.ts';
import type { Stage } from './stage.ts';
import type { SideName, WorkerProcess } from './worker-process.ts';

/** Starts at a time; they are not what is measured. */
const startWidth = 30;

export interface DecisionsResult {
  pending: number;
  perSecond: Record<SideName, { rounds: number[]; median: number }>;
  ratio: number;
  /** workflow tasks that timed out, for each decision */
  timedOutTasks: Record<SideName, number>;
}

export async function measureDecisions(
  stage: Stage,
  sides: readonly Side[],
  { burst, rounds }: { burst: number; rounds: number },
): Promise<DecisionsResult> {
  const workers = new Map<Side, WorkerProcess>();
  for (const side of sides) workers.set(side, await side.startWorker());
  const found = { handWritten: [] as number[], countersign: [] as number[] };
  const timedOut = { handWritten: 0, countersign: 0 };
  // code that is not compiled yet is nobody's speed
  for (const side of sides) await oneRound(stage, side, workers.get(side)!, Math.ceil(burst / 5));
  for (let index = 0; index < rounds; index += 1) {
    for (const side of index % 2 === 0 ? sides : sides.toReversed()) {
      const result = await oneRound(stage, side, workers.get(side)!, burst);
      found[side.name].push(result.perSecond);
      timedOut[side.name] += result.timedOutTasks;
    }
  }
  for (const worker of workers.values()) await worker.stop();
  const handWritten = { rounds: found.handWritten, median: median(found.handWritten) };
  const countersign = { rounds: found.countersign, median: median(found.countersign) };
  return {
    pending: burst,
    perSecond: { handWritten, countersign },
    ratio: ratio(countersign.median, handWritten.median),
    timedOutTasks: {
      handWritten: round(timedOut.handWritten / rounds / burst),
      countersign: round(timedOut.countersign / rounds / burst),
    },
  };
}

async function oneRound(
  stage: Stage,
  side: Side,
  worker: WorkerProcess,
  burst: number,
): Promise<{ perSecond: number; timedOutTasks: number }> {
  const runIds = Array.from({ length: burst }, () => stage.unique(side.name));
  await inParallel(runIds, startWidth, side.start);
  const decisions = await inParallel(runIds, startWidth, side.untilWaiting);
  const sentAt = monotonicMs();
  const [, effects] = await Promise.all([
    Promise.all(runIds.map((runId, index) => side.send(runId, decisions[index]))),
    Promise.all(runIds.map((runId) => worker.effectOf(runId))),
  ]);
  const endedAt = Math.max(...effects.map(({ at }) => at));
  await inParallel(runIds, startWidth, (runId) => stage.client.workflow.getHandle(runId).result());
  const timedOut = await inParallel(runIds, startWidth, (runId) => timedOutTasksOf(stage, runId));
  return {
    perSecond: round((burst / (endedAt - sentAt)) * 1_000),
    timedOutTasks: timedOut.reduce((sum, count) => sum + count, 0),
  };
}

async function timedOutTasksOf({ client }: Stage, runId: string): Promise<number> {
  const { events } = await client.workflow.getHandle(runId).fetchHistory();
  return (events ?? []).filter((event) => event.workflowTaskTimedOutEventAttributes != null).length;
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  if (sorted.length % 2 === 1) return sorted[middle]!;
  return round((sorted[middle - 1]! + sorted[middle]!) / 2);
}
