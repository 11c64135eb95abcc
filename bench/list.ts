// How long GET /approvals takes for a page of 20, with few and with many pending.
import { setTimeout as sleep } from 'node:timers/promises';
import { startApiProcess, type ApiProcess } from './api-process.ts';
import { monotonicMs, ratio, summary, type Summary } from './numbers.ts';
import type { PendingCounts } from './memory.ts';
import type { Stage } from './stage.ts';

export interface ListResult {
  few: Summary & { pending: number };
  many: Summary & { pending: number };
  /** p50 with many : p50 with few */
  ratio: number;
}

const requests = 60;
const warmUp = 10;
const pageSize = 20;

export async function measureList(
  stage: Stage,
  taskQueue: string,
  { few, many }: PendingCounts,
  /** gives how many are pending then */
  start: (count: number) => Promise<number>,
): Promise<ListResult> {
  const api = await startApiProcess(stage, taskQueue);
  const withFew = await timePages(stage, api, taskQueue, await start(few));
  const withMany = await timePages(stage, api, taskQueue, await start(many - few));
  await api.stop();
  return {
    few: withFew,
    many: withMany,
    ratio: ratio(withMany.p50, withFew.p50),
  };
}

async function timePages(
  stage: Stage,
  api: ApiProcess,
  taskQueue: string,
  pending: number,
): Promise<Summary & { pending: number }> {
  await untilIndexed(stage, taskQueue, pending);
  const rows = Math.min(pageSize, pending);
  const taken: number[] = [];
  for (let index = -warmUp; index < requests; index += 1) {
    const sentAt = monotonicMs();
    const page = await api.call('GET', `/approvals?limit=${pageSize}`);
    const { approvals } = page as { approvals: unknown[] };
    if (index >= 0) taken.push(monotonicMs() - sentAt);
    if (approvals.length !== rows) {
      throw new Error(`a page has ${approvals.length} rows instead of ${rows}`);
    }
  }
  return { pending, ...summary(taken) };
}

/** The index is written a moment after the history. */
async function untilIndexed({ client }: Stage, taskQueue: string, pending: number): Promise<void> {
  const query = `TaskQueue = '${taskQueue}' AND CountersignStatus = 'awaiting_approval'`;
  while ((await client.workflow.count(query)).count < pending) await sleep(100);
}
