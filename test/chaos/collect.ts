// After the faults: waits until every run has ended or waits for a person, settles what is in doubt as a person
// with the target's books would, and collects what the checker needs.
import { setTimeout as sleep } from 'node:timers/promises';
import type { History } from '@temporalio/common/lib/proto-utils.js';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import type { TrailFact } from '../../src/core/trail-fact.ts';
import type { Evidence, EvidenceOfRun } from './evidence.ts';
import { send } from './http.ts';
import { settleDoubts } from './doubts.ts';
import { clock, until, type Stage } from './stage.ts';
import type { Struck } from './faults.ts';
import { chaosTools } from './tools.ts';

/** N5: by then every decided run is closed, or waits for somebody by name. */
const settleBoundMs = 60_000;
/** Longer than that between two looks of whoever waits for a gate. */
const pauseMs = 150;

export interface KnownRun {
  id: string;
  kind: EvidenceOfRun['kind'];
}

/** Resolves when every run has ended or waits, or when the time for that is up. */
export async function settle(stage: Stage): Promise<KnownRun[]> {
  const runs = await knownRuns(stage);
  const lastOperation = Math.max(...stage.plan.operations.map(({ at }) => at));
  await until(stage, lastOperation + pauseMs);
  // between two things that happen there is a moment in which nothing does: it counts when everybody who waits
  // for something has looked again meanwhile, and still waits
  let before: Map<object, number> | undefined;
  while (clock() < restlessSince(stage) + settleBoundMs) {
    await sleep(pauseMs);
    const isAsked = await settleDoubts(stage, runs);
    const settled = await Promise.all(runs.map(({ id }) => isSettled(stage, id)));
    if (!isAsked || stage.acting > 0 || !settled.every(Boolean)) before = undefined;
    else if (before === undefined) {
      before = new Map([...stage.watchers].map((watcher) => [watcher, watcher.looks]));
    } else if ([...stage.watchers].every((one) => one.looks >= (before?.get(one) ?? Infinity) + 2)) break;
  }
  return runs;
}

/** A run can come to rest only after the last fault, and after the last thing that anybody asked of it. */
function restlessSince({ lastFaultAt, beganAt, calls }: Stage): number {
  const asked = calls.flatMap(({ op, ended, finalEnded = ended }) => (op === 'read' ? [] : [finalEnded]));
  return Math.max(lastFaultAt, beganAt, ...asked);
}

async function knownRuns(stage: Stage): Promise<KnownRun[]> {
  const runs: KnownRun[] = [];
  for (const { start, started } of stage.runs.values()) {
    const id = await started;
    if (id === undefined) continue;
    runs.push({ id, kind: start.kind });
    if (start.gates.some(({ child }) => child !== '')) runs.push({ id: `${id}/sub`, kind: 'child' });
  }
  return runs;
}

/** Closed, or nothing of it is underway and it waits: for a person, or for a child that does. */
async function isSettled(stage: Stage, id: string): Promise<boolean> {
  const { client } = stage.world.temporal;
  const described = await client.workflow
    .getHandle(id)
    .describe()
    .catch((error: unknown) => (isGone(error) ? ('gone' as const) : undefined));
  if (described === undefined) return false;
  // a child that its parent has not come to, or will not
  if (described === 'gone')
    return id.endsWith('/sub') && (await isSettled(stage, id.slice(0, -'/sub'.length)));
  const { raw, status } = described;
  if (status.name !== 'RUNNING') return true;
  const isBusy = raw.pendingWorkflowTask != null || (raw.pendingActivities?.length ?? 0) > 0;
  if (isBusy) return false;
  const run = await stage.world.countersign.describeRun(id);
  const waits = run?.approvals.some(
    ({ memo }) => memo.state === 'pending' && (memo.expiresAt ?? 0) > Date.now() + settleBoundMs,
  );
  if (waits === true) return true;
  const [child] = raw.pendingChildren ?? [];
  return child?.workflowId != null && isSettled(stage, child.workflowId);
}

function isGone(error: unknown): boolean {
  return error instanceof Error && error.name === 'WorkflowNotFoundError';
}

export async function collect(stage: Stage, runs: readonly KnownRun[], struck: Struck[]): Promise<Evidence> {
  const settledAt = clock();
  const { world, plan, calls } = stage;
  const all = await Promise.all(runs.map((run) => collectRun(stage, run)));
  // a child that its parent never came to
  const collected = all.filter(
    ({ evidence }) => evidence.histories.length > 0 || !evidence.run.endsWith('/sub'),
  );
  const { lines } = await world.target.state(stage.prefix);
  const histories = collected.flatMap(({ evidence, raw }) =>
    raw.map((history) => ({ workflowId: evidence.run, history })),
  );
  const failures = await world.replayer.replay(histories);
  return {
    plan,
    calls,
    runs: collected.map(({ evidence }) => evidence),
    ledger: lines,
    faults: struck,
    replay: collected.map(({ evidence: { run } }) => {
      const failed = failures.find(({ workflowId }) => workflowId === run)?.message;
      return { run, ...(failed === undefined ? {} : { failed }) };
    }),
    lastFaultAt: restlessSince(stage),
    settledAt,
    tools: chaosTools('http://127.0.0.1:9').map(({ name, requiresApproval = false, idempotency }) => ({
      ...{ name, requiresApproval, idempotency },
    })),
  };
}

async function collectRun(
  stage: Stage,
  { id, kind }: KnownRun,
): Promise<{ evidence: EvidenceOfRun; raw: History[] }> {
  const { client } = stage.world.temporal;
  const described = await client.workflow
    .getHandle(id)
    .describe()
    .catch(() => undefined);
  const raw = described === undefined ? [] : await readHistories(stage, id, described.runId);
  const path = `/runs/${encodeURIComponent(id)}`;
  const view = described === undefined ? undefined : await ask(stage, path);
  const trail = described === undefined ? undefined : await ask(stage, `${path}/trail`);
  const attempts = Number(described?.raw.pendingWorkflowTask?.attempt ?? 0);
  return {
    raw,
    evidence: {
      ...{ run: id, kind, view },
      histories: raw.map((history) => JSON.parse(historyToJSON(history)) as unknown),
      trail: (trail?.['trail'] ?? []) as TrailFact[],
      status: typeof view?.['status'] === 'string' ? view['status'] : 'unknown',
      pendingTaskFailures: attempts > 1 ? attempts - 1 : 0,
    },
  };
}

/** Every execution that there was of that id, oldest first. The index has them a moment later. */
async function readHistories(stage: Stage, id: string, current: string): Promise<History[]> {
  const { client } = stage.world.temporal;
  const found = new Map<string, History>();
  const end = clock() + 10_000;
  while (clock() < end && !found.has(current)) {
    if (found.size > 0) await sleep(100);
    for await (const { runId } of client.workflow.list({ query: `WorkflowId = '${id}'` })) {
      found.set(runId, await client.workflow.getHandle(id, runId).fetchHistory());
    }
    // the newest may not be listed yet
    if (!found.has(current)) await sleep(100);
  }
  if (!found.has(current)) found.set(current, await client.workflow.getHandle(id, current).fetchHistory());
  return [...found.values()].sort((one, other) => beginOf(one) - beginOf(other));
}

/** resetWorkflow, in temporal.api.enums.v1.WorkflowTaskFailedCause */
const resetCause = 12;

/** When an execution began: one that was made by a reset begins with that, behind what it copied. */
function beginOf({ events }: History): number {
  const reset = events?.findLast(
    ({ workflowTaskFailedEventAttributes: failed }) => Number(failed?.cause ?? 0) === resetCause,
  );
  const time = (reset ?? events?.[0])?.eventTime;
  return Number(time?.seconds ?? 0) * 1_000 + Number(time?.nanos ?? 0) / 1e6;
}

async function ask(stage: Stage, path: string): Promise<Record<string, unknown> | undefined> {
  for (let tries = 0; tries < 10; tries += 1) {
    const answer = await send(stage, { method: 'GET', path, person: 'ann' });
    if (answer?.status === 200) return answer.body;
    await sleep(200);
  }
  return undefined;
}

/** So that what nobody decided costs the next runs nothing. */
export async function endRuns(stage: Stage, runs: readonly KnownRun[]): Promise<void> {
  for (const { id } of runs) {
    await stage.world.temporal.client.workflow
      .getHandle(id)
      .terminate('the chaos run is over')
      .catch(() => undefined); // it has ended
  }
}
