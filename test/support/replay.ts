// Replays histories under today's workflow code: what P1 promises of every run, checked on every run that
// a test made.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { Worker } from '@temporalio/worker';
import { historyCounts, type NamedHistory } from './history.ts';

export interface ReplayReport {
  replayed: number;
  failures: { workflowId: string; message: string }[];
}

/** A replay takes milliseconds; one that takes this long waits for something that never comes. */
const replayTimeoutMs = 60_000;

/**
 * Replays each history once with the bundle. One in which no workflow task was ever completed holds nothing
 * to replay and is passed over. With `failedFolder` the history of each failure is left there.
 */
export async function replayHistories(
  bundlePath: string,
  histories: AsyncIterable<NamedHistory> | Iterable<NamedHistory>,
  failedFolder?: string,
): Promise<ReplayReport> {
  const report: ReplayReport = { replayed: 0, failures: [] };
  let current: NamedHistory | undefined;

  async function* replayable(): AsyncGenerator<NamedHistory> {
    for await (const one of histories) {
      if (historyCounts(one.history).workflowTasks === 0) continue;
      current = one;
      yield one;
    }
  }

  const fail = (message: string): void => {
    report.failures.push({ workflowId: current?.workflowId ?? '(none)', message });
    if (failedFolder === undefined || current === undefined) return;
    mkdirSync(failedFolder, { recursive: true });
    const name = current.workflowId.replace(/[^A-Za-z0-9._-]/g, '_').slice(0, 100);
    writeFileSync(join(failedFolder, `${name}.json`), historyToJSON(current.history));
  };

  const results = Worker.runReplayHistories({ workflowBundle: { codePath: bundlePath } }, replayable());
  for (;;) {
    const next = await withTimeout(results.next());
    if (next === 'timeout') {
      // The worker of this replay is stuck with it; what comes after it cannot be replayed any more.
      fail(
        `the replay did not end within ${String(replayTimeoutMs)} ms; the histories after it were not replayed`,
      );
      return report;
    }
    if (next.done) return report;
    report.replayed += 1;
    if (next.value.error) fail(next.value.error.message);
  }
}

async function withTimeout<Value>(promise: Promise<Value>): Promise<Value | 'timeout'> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<'timeout'>((resolve) => {
    timer = setTimeout(resolve, replayTimeoutMs, 'timeout');
  });
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
