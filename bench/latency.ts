// Signal → effect started, on both sides in turn; and what such a run costs in events and workflow tasks.
import { setTimeout as sleep } from 'node:timers/promises';
import { monotonicMs, ratio, summary, type Summary } from './numbers.ts';
import type { Side } from './sides.ts';
import type { Stage } from './stage.ts';
import type { SideName, WorkerProcess } from './worker-process.ts';

/** Between two runs, so that neither pays for what the server still writes of the other. */
const paceMs = 100;
/** Code that is not compiled yet is nobody's speed. */
const warmUp = 20;

export interface Cost {
  events: number;
  workflowTasks: number;
}

export interface LatencyResult {
  cost: Record<SideName, Cost>;
  signalToEffectMs: Record<SideName, Summary>;
  ratio: { p50: number; p95: number };
}

export async function measureLatency(
  stage: Stage,
  sides: readonly Side[],
  runs: number,
): Promise<LatencyResult> {
  const workers = new Map<Side, WorkerProcess>();
  for (const side of sides) workers.set(side, await side.startWorker());
  const taken = { handWritten: [] as number[], countersign: [] as number[] };
  const last = { handWritten: '', countersign: '' };
  for (let index = -Math.min(warmUp, runs); index < runs; index += 1) {
    // each goes first every other time
    for (const side of index % 2 === 0 ? sides : sides.toReversed()) {
      const runId = stage.unique(side.name);
      const ms = await oneRun(stage, side, workers.get(side)!, runId);
      if (index >= 0) taken[side.name].push(ms);
      last[side.name] = runId;
      await sleep(paceMs);
    }
  }
  const cost = {
    handWritten: await costOf(stage, last.handWritten),
    countersign: await costOf(stage, last.countersign),
  };
  for (const worker of workers.values()) await worker.stop();
  const handWritten = summary(taken.handWritten);
  const countersign = summary(taken.countersign);
  return {
    cost,
    signalToEffectMs: { handWritten, countersign },
    ratio: {
      p50: ratio(countersign.p50, handWritten.p50),
      p95: ratio(countersign.p95, handWritten.p95),
    },
  };
}

async function oneRun(stage: Stage, side: Side, worker: WorkerProcess, runId: string): Promise<number> {
  await side.start(runId);
  const decision = await side.untilWaiting(runId);
  await sleep(paceMs);
  const sentAt = monotonicMs();
  await side.send(runId, decision);
  const { at } = await worker.effectOf(runId);
  await stage.client.workflow.getHandle(runId).result();
  return at - sentAt;
}

async function costOf({ client }: Stage, runId: string): Promise<Cost> {
  const { events = [] } = await client.workflow.getHandle(runId).fetchHistory();
  const tasks = (events ?? []).filter((event) => event.workflowTaskCompletedEventAttributes != null);
  return { events: (events ?? []).length, workflowTasks: tasks.length };
}
