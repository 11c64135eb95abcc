// Decisions per second while many runs wait: by a crowd that decides as people do, each the next one when the last
// is done, and all at once. The time is that until the last effect has started. The sides take turns, each first
// every other round. Tasks that waited too long for the worker that has the run in its cache are counted: each is
// done again from the whole history, and makes a burst slower.
import { inParallel, monotonicMs, ratio, round } from './numbers.ts';
import type { Side } from './sides.ts';
import type { Stage } from './stage.ts';
import type { SideName, WorkerProcess } from './worker-process.ts';

/** Starts at a time; they are not what is measured. */
const startWidth = 30;

/** Who decide at a time. More than a worker takes tasks at a time (40), so it never waits for them. */
const crowd = 50;

export interface DecisionsResult {
  pending: number;
  crowd: Load & { deciders: number };
  atOnce: Load;
}

export interface Load {
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
  const roundOf = (side: Side, pending: number, deciders: number): Promise<RoundResult> =>
    oneRound(stage, side, workers.get(side)!, { pending, deciders });
  // code that is not compiled yet is nobody's speed
  for (const side of sides) await roundOf(side, Math.ceil(burst / 5), crowd);
  const ofCrowd = await measureLoad(sides, rounds, (side) => roundOf(side, burst, crowd));
  const atOnce = await measureLoad(sides, rounds, (side) => roundOf(side, burst, burst));
  for (const worker of workers.values()) await worker.stop();
  return { pending: burst, crowd: { deciders: Math.min(crowd, burst), ...ofCrowd }, atOnce };
}

interface RoundResult {
  perSecond: number;
  timedOutTasks: number;
}

async function measureLoad(
  sides: readonly Side[],
  rounds: number,
  oneRoundOf: (side: Side) => Promise<RoundResult>,
): Promise<Load> {
  const found = { handWritten: [] as RoundResult[], countersign: [] as RoundResult[] };
  for (let index = 0; index < rounds; index += 1) {
    for (const side of index % 2 === 0 ? sides : sides.toReversed()) {
      found[side.name].push(await oneRoundOf(side));
    }
  }
  const speedOf = (results: readonly RoundResult[]) => {
    const perSecond = results.map((result) => result.perSecond);
    return { rounds: perSecond, median: median(perSecond) };
  };
  const timedOut = (results: readonly RoundResult[]) =>
    round(results.reduce((sum, { timedOutTasks }) => sum + timedOutTasks, 0) / results.length);
  const perSecond = { handWritten: speedOf(found.handWritten), countersign: speedOf(found.countersign) };
  return {
    perSecond,
    ratio: ratio(perSecond.countersign.median, perSecond.handWritten.median),
    timedOutTasks: { handWritten: timedOut(found.handWritten), countersign: timedOut(found.countersign) },
  };
}

async function oneRound(
  stage: Stage,
  side: Side,
  worker: WorkerProcess,
  { pending, deciders }: { pending: number; deciders: number },
): Promise<RoundResult> {
  const runIds = Array.from({ length: pending }, () => stage.unique(side.name));
  await inParallel(runIds, startWidth, side.start);
  const decisions = await inParallel(runIds, startWidth, side.untilWaiting);
  const decide = async (index: number): Promise<number> => {
    const runId = runIds[index]!;
    await side.send(runId, decisions[index]);
    return (await worker.effectOf(runId)).at;
  };
  const sentAt = monotonicMs();
  const effects = await inParallel([...runIds.keys()], deciders, decide);
  const endedAt = Math.max(...effects);
  await inParallel(runIds, startWidth, (runId) => stage.client.workflow.getHandle(runId).result());
  const timedOut = await inParallel(runIds, startWidth, (runId) => timedOutTasksOf(stage, runId));
  return {
    perSecond: round((pending / (endedAt - sentAt)) * 1_000),
    timedOutTasks: timedOut.reduce((sum, count) => sum + count, 0) / pending,
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
