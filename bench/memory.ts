// How much a worker grows for each run that waits in its cache: resident memory, after a collection in both of
// its threads, each side in a process of its own. And, over the same gated runs, how long a page of the list takes.
import { setTimeout as sleep } from 'node:timers/promises';
import { measureList, type ListResult } from './list.ts';
import { inParallel, ratio, round } from './numbers.ts';
import type { Side } from './sides.ts';
import type { Stage } from './stage.ts';
import type { SideName, WorkerProcess } from './worker-process.ts';

const startWidth = 30;
/** Runs before the first measure: what every process takes once is no growth. */
const warmUp = 50;
/** Looks at the resident memory, of which the least counts: pages go back to the system a moment later. */
const looks = 5;

export interface MemoryResult {
  pending: number;
  /** KiB of resident memory for each pending run */
  perRunKiB: Record<SideName, number>;
  ratio: number;
}

export interface PendingCounts {
  few: number;
  many: number;
}

export async function measureMemory(
  stage: Stage,
  sides: readonly Side[],
  { few, many }: PendingCounts,
  what: { list: boolean },
): Promise<{ memory: MemoryResult; list?: ListResult }> {
  const perRun = { handWritten: 0, countersign: 0 };
  let list: ListResult | undefined;
  for (const side of sides) {
    const worker = await side.startWorker({ maxCachedWorkflows: many + warmUp + 10 });
    let pending = 0;
    const start = async (count: number): Promise<number> => {
      await startPending(stage, side, count);
      return (pending += count);
    };
    await start(warmUp);
    const before = await residentBytes(stage, side, worker);
    if (what.list && side.name === 'countersign') {
      list = await measureList(stage, side.taskQueue, { few, many }, start);
    } else {
      await start(many);
    }
    perRun[side.name] = round(((await residentBytes(stage, side, worker)) - before) / many / 1024);
    await worker.kill();
  }
  const memory = { pending: many, perRunKiB: perRun, ratio: ratio(perRun.countersign, perRun.handWritten) };
  return { memory, ...(list === undefined ? {} : { list }) };
}

async function startPending(stage: Stage, side: Side, count: number): Promise<void> {
  const runIds = Array.from({ length: count }, () => stage.unique(side.name));
  await inParallel(runIds, startWidth, side.start);
  await inParallel(runIds, startWidth, side.untilWaiting);
}

async function residentBytes(stage: Stage, side: Side, worker: WorkerProcess): Promise<number> {
  let least = Infinity;
  for (let look = 0; look < looks; look += 1) {
    const collected: unknown = await stage.client.workflow.execute('collect', {
      workflowId: stage.unique('collect'),
      taskQueue: side.taskQueue,
    });
    if (collected !== true)
      throw new Error('the workflow thread has no gc(): start the worker with --expose-gc');
    const { rss } = await worker.memory();
    least = Math.min(least, rss);
    await sleep(200);
  }
  return least;
}
