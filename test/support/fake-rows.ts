// What the fake Temporal knows of a run without any worker, one by one and by pages.
import type { RunDescription, RunPage } from '../../src/countersign-client.ts';
import type { FakeRun } from './fake-run.ts';

export function describeFake(run: FakeRun, now: number): RunDescription {
  const { runId, root, spec, requestHash, createdAt, closeStatus, status, workflowType = 'runSpec' } = run;
  const entries = [...run.gates.values()].filter(({ inMemo }) => inMemo);
  return {
    runId,
    temporalRunId: root,
    root,
    workflowType,
    historyLength: run.events,
    createdAt,
    ...(spec === undefined ? {} : { spec }),
    ...(requestHash === undefined ? {} : { requestHash }),
    ...(closeStatus === undefined ? {} : { closeStatus, closedAt: now }),
    ...(status === undefined ? {} : { status }),
    ...(run.retries === undefined ? {} : { retries: run.retries }),
    approvals: entries.map(({ key, position, memo }) => ({ key, position, memo: { ...memo } })),
  };
}

export function fakePage(
  fitting: FakeRun[],
  pageSize: number,
  cursor: string | undefined,
  describe: (run: FakeRun) => RunDescription,
): RunPage {
  if (pageSize > 20) throw new Error(`the fake refuses a page of ${pageSize} rows`);
  const from = cursor === undefined ? 0 : Number(cursor);
  const newestFirst = fitting.toReversed();
  const rows = newestFirst.slice(from, from + pageSize).map(describe);
  const more = from + pageSize < newestFirst.length;
  return { runs: rows, ...(more ? { cursor: String(from + pageSize) } : {}) };
}
