// Faults of single runs and of their messages: resets, continue-as-new, signals that come twice or overtake each
// other, lists that lag behind.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RawPayload } from '../../src/core/signal.ts';
import { fetchHistory } from '../support/history.ts';
import { sendRaw } from '../support/hostile-signals.ts';
import { decideByHttp, readPath } from './operations.ts';
import { approvalBy } from './plan-operations.ts';
import type { Fault } from './plan-faults.ts';
import { createRandom } from './random.ts';
import { act, clock, describe, isOver, runIdOf, runOf, seenGate, watch, type Stage } from './stage.ts';

/** Every decision that any run has had so far, once more, the last one first. */
export async function deliverAgain(stage: Stage, patienceMs: number): Promise<number> {
  const end = clock() + patienceMs;
  let sent = 0;
  while (sent === 0 && clock() < end && !isOver(stage)) {
    for (const letter of stage.runs.keys()) sent += await deliverAgainTo(stage, letter);
    if (sent === 0) await sleep(200);
  }
  return sent;
}

async function deliverAgainTo(stage: Stage, letter: string): Promise<number> {
  const { temporal } = stage.world;
  const ids = await idsOf(stage, letter);
  let sent = 0;
  for (const id of ids) {
    const history = await fetchHistory(temporal.client, id).catch(() => undefined);
    for (const { workflowExecutionSignaledEventAttributes: signal } of (history?.events ?? []).reverse()) {
      if (signal?.signalName !== 'decide') continue;
      const payloads = signal.input?.payloads as RawPayload[] | undefined;
      const isSent = await sendRaw(temporal, id, payloads === undefined ? {} : { payloads }).then(
        () => true,
        () => false, // it has ended
      );
      if (isSent) sent += 1;
    }
  }
  return sent;
}

/** The run and its child, where it has one. */
async function idsOf(stage: Stage, letter: string): Promise<string[]> {
  const run = runOf(stage, letter);
  const id = await Promise.race([run.started, sleep(1_000, undefined)]);
  if (id === undefined) return [];
  return [...new Set(run.start.gates.map(({ child }) => id + child))];
}

/** Each signal of the API is held for a while of its own, so that later ones overtake it. */
export async function reorderSignals(
  stage: Stage,
  { amount, lasts }: Fault,
  patienceMs: number,
): Promise<number> {
  const random = createRandom(Math.floor(amount * 2 ** 32));
  let held = 0;
  stage.world.grpc.api.onCall = (method) => {
    if (method !== 'SignalWorkflowExecution') return undefined;
    held += 1;
    return sleep(random.whole(0, 500));
  };
  const end = clock() + patienceMs;
  await sleep(lasts);
  while (held === 0 && clock() < end && !isOver(stage)) await sleep(50);
  stage.world.grpc.api.onCall = undefined;
  return held;
}

/** What a list answers is as old as it is held: the index lags behind. */
export async function delayLists(stage: Stage, { lasts }: Fault): Promise<number> {
  let held = 0;
  stage.world.grpc.api.onAnswer = (method) => {
    if (!/^(?:List|Count)WorkflowExecutions$/.test(method)) return undefined;
    held += 1;
    return sleep(1_500);
  };
  const end = clock() + lasts;
  while (clock() < end) {
    for (const path of ['/approvals', '/runs']) {
      const reader = { client: 'lister', person: 'cat' };
      await readPath(stage, reader, '', path);
    }
  }
  stage.world.grpc.api.onAnswer = undefined;
  return held;
}

/** To one of its completed workflow tasks; then whatever asks again is approved again. */
export async function reset(stage: Stage, { run = '', amount, task }: Fault): Promise<number> {
  const { client, namespace } = stage.world.temporal;
  const id = await runIdOf(stage, run);
  if (id === undefined) return 0;
  await watch(stage, id, ({ historyLength, closeStatus }) =>
    closeStatus !== undefined || (task === undefined && historyLength >= 5) ? true : undefined,
  );
  for (let tries = 0; tries < 20 && !isOver(stage); tries += 1) {
    try {
      const { events } = await fetchHistory(client, id);
      const tasks = events?.filter((event) => event.workflowTaskCompletedEventAttributes) ?? [];
      const index = task === undefined ? Math.floor(amount * tasks.length) : Math.min(task, tasks.length) - 1;
      const eventId = tasks[index]?.eventId;
      if (eventId === undefined || eventId === null) throw new Error('no workflow task is completed yet');
      await client.workflowService.resetWorkflowExecution({
        namespace,
        workflowExecution: { workflowId: id },
        reason: 'chaos',
        workflowTaskFinishEventId: eventId,
        requestId: randomUUID(),
      });
      stage.others.push(act(stage, () => approveAgain(stage, run)));
      return 1;
    } catch {
      await sleep(250); // between two tasks of a run that is just continuing, or while the server is down
    }
  }
  return 0;
}

/** For some seconds: what was decided before may be asked again, under the same keys. */
async function approveAgain(stage: Stage, letter: string): Promise<void> {
  const { start } = runOf(stage, letter);
  const end = clock() + 3_000;
  const decided = new Set<string>();
  while (clock() < end) {
    for (const planned of start.gates) {
      const id = await runIdOf(stage, letter, planned);
      const seen = id === undefined ? undefined : await describe(stage, id);
      const gate =
        seen?.closeStatus !== undefined || seen === undefined ? undefined : seenGate(seen, planned.name);
      if (gate?.state !== 'pending' || gate.hash === '' || decided.has(gate.key)) continue;
      decided.add(gate.key);
      await decideByHttp(stage, approvalBy('again', letter), gate, planned, `again-${randomUUID()}`);
    }
    await sleep(200);
  }
}

/** By the signal that the workflow of the tests continues at; decisions are underway meanwhile. */
export async function continueAsNew(stage: Stage, { run = '', times }: Fault): Promise<number> {
  const id = await runIdOf(stage, run);
  if (id === undefined) return 0;
  let fired = 0;
  for (let round = 0; round < times && !isOver(stage); round += 1) {
    const before = await watch(stage, id, ({ temporalRunId, historyLength }) =>
      historyLength >= 4 ? temporalRunId : undefined,
    );
    if (before === undefined) break;
    await stage.world.temporal.client.workflow
      .getHandle(id)
      .signal('roll')
      .catch(() => undefined);
    // without a worker it comes when there is one
    const after = await watch(stage, id, ({ temporalRunId }) =>
      temporalRunId === before ? undefined : temporalRunId,
    );
    if (after !== undefined) fired += 1;
  }
  return fired;
}
