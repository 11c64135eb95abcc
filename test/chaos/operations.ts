// Does what a plan says that people do: starts, decides, cancels, reads, by HTTP and by signals of one's own.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { WorkflowExecutionAlreadyStartedError, WorkflowNotFoundError } from '@temporalio/client';
import { approvalKey } from '../../src/core/approval-key.ts';
import { signalNames } from '../../src/core/names.ts';
import { decisionOn, signedDecision } from '../support/gates.ts';
import { hostileSignals, sendRaw } from '../support/hostile-signals.ts';
import { insist, noteAnswer, openCall, send, type Answer, type CallFields } from './http.ts';
import type { DecisionOperation, OtherOperation } from './plan-operations.ts';
import type { PlannedGate } from './plan-runs.ts';
import type { Operation, StartOperation } from './plan.ts';
import { approvalStart, argumentsOf, specStart, workflowStart } from './specs.ts';
import {
  describe,
  isOver,
  runIdOf,
  runOf,
  seenGate,
  until,
  watch,
  type SeenGate,
  type Stage,
} from './stage.ts';

const zeroHash = `sha256:${'0'.repeat(64)}`;
/** A run that can be continued goes on living so long when all its gates have ended. */
const lingerMs = 3_000;

export async function perform(stage: Stage, operation: Operation): Promise<void> {
  await until(stage, operation.at);
  switch (operation.op) {
    case 'start':
      return start(stage, operation);
    case 'cancel':
      return cancel(stage, operation);
    case 'malformed':
      return sendMalformed(stage, operation);
    case 'read':
      return read(stage, operation);
    default:
      return decide(stage, operation);
  }
}

async function start(stage: Stage, operation: StartOperation): Promise<void> {
  const { label, tellStarted } = runOf(stage, operation.run);
  const { client, person } = operation;
  const base = { client, person, op: 'start', run: label, shouldSucceed: true } as const;
  try {
    if (operation.kind !== 'runSpec' && operation.kind !== 'requestApproval') {
      tellStarted(await startWorkflow(stage, operation, base));
      return;
    }
    const isRun = operation.kind === 'runSpec';
    const body = isRun ? specStart(operation, label) : approvalStart(operation, label);
    const call = openCall(stage, { ...base, door: 'http', idempotencyKey: label });
    const headers = { 'idempotency-key': label };
    const path = isRun ? '/runs' : '/approvals';
    const answer = await insist(stage, call, { method: 'POST', path, person, headers, body });
    const id = answer?.body[isRun ? 'id' : 'runId'];
    if (typeof id === 'string') call.run = id;
    tellStarted(typeof id === 'string' && (answer?.status ?? 500) < 300 ? id : undefined);
  } finally {
    tellStarted(undefined);
  }
}

/** By a Temporal client, as somebody's own program does. */
async function startWorkflow(
  stage: Stage,
  operation: StartOperation,
  base: Omit<CallFields, 'door'>,
): Promise<string | undefined> {
  const { client, taskQueue } = stage.world.temporal;
  const { label } = runOf(stage, operation.run);
  const { type, args } = workflowStart(operation, label, lingerMs);
  const call = openCall(stage, { ...base, door: 'raw-unsigned' });
  while (!isOver(stage)) {
    try {
      await client.workflow.start(type, { workflowId: label, taskQueue, args });
      noteAnswer(call, { status: 201, body: { id: label } });
      return label;
    } catch (error) {
      // an answer was lost before: it is there
      if (error instanceof WorkflowExecutionAlreadyStartedError) {
        noteAnswer(call, { status: 200, body: { id: label } });
        return label;
      }
      await sleep(200);
    }
  }
  return undefined;
}

function gateOf(stage: Stage, operation: { run: string; gate: number }): PlannedGate {
  const gate = runOf(stage, operation.run).start.gates[operation.gate];
  if (gate === undefined) throw new TypeError(`run "${operation.run}" has no gate ${operation.gate}`);
  return gate;
}

async function decide(stage: Stage, operation: DecisionOperation): Promise<void> {
  const planned = gateOf(stage, operation);
  const runId = await runIdOf(stage, operation.run, planned);
  const gate = runId === undefined ? undefined : await findGate(stage, operation, runId, planned);
  if (gate === undefined) return;
  if (operation.door !== 'http') {
    await sendDecision(stage, operation, gate, planned);
    return;
  }
  const idempotencyKey = operation.keyed ? `chaos-${randomUUID()}` : undefined;
  const copies = Array.from({ length: operation.copies }, () =>
    decideByHttp(stage, operation, gate, planned, idempotencyKey),
  );
  await Promise.all(copies);
}

/** Undefined: its moment did not come, or the run ended before. */
async function findGate(
  stage: Stage,
  { timing, payload }: DecisionOperation,
  runId: string,
  { name }: PlannedGate,
): Promise<SeenGate | undefined> {
  const known = (gate: SeenGate): SeenGate =>
    payload === 'stale' || gate.hash === '' ? { ...gate, hash: zeroHash } : gate;
  if (timing === 'early') {
    // whoever knows a run's id and root can make the key of a gate that has not asked yet
    return watch(stage, runId, ({ root, approvals }) => {
      const key = approvalKey({ workflowId: runId, position: name, root });
      const hash = approvals.find(({ position }) => position === name)?.memo.hash ?? zeroHash;
      return known({ runId, root, key, position: name, hash, state: 'pending' });
    });
  }
  const found = await watch(stage, runId, (run) => {
    const gate = seenGate(run, name);
    if (timing === 'late')
      return gate?.state === 'pending' && run.closeStatus === undefined ? undefined : gate;
    return gate;
  });
  return found === undefined ? undefined : known(found);
}

export async function decideByHttp(
  stage: Stage,
  operation: DecisionOperation,
  gate: SeenGate,
  planned: PlannedGate,
  idempotencyKey: string | undefined,
): Promise<void> {
  const { op, person } = operation;
  const needsHash = op === 'approve' || op === 'edit' || op === 'respond';
  const body = bodyOf(stage, operation, planned);
  const call = openCall(stage, {
    ...callFields(operation, gate, 'http'),
    ...(needsHash ? { payloadHash: gate.hash } : {}),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    ...('arguments' in body ? { arguments: body['arguments'] } : {}),
  });
  const has = (fault: string): boolean => stage.plan.faults.some(({ name }) => name.startsWith(fault));
  const isEdited = has('spec-edited');
  const isReset = has('reset') && operation.shouldSucceed;
  const answer = await insist(
    stage,
    call,
    {
      method: 'POST',
      path: `/approvals/${gate.key}/${op}`,
      person,
      headers: {
        ...(needsHash ? { 'if-match': `"${gate.hash}"` } : {}),
        ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
      },
      body,
    },
    // it waits for the spec to be restored, and for a gate that is asked again, as the remedies say
    ({ body: { code } }) =>
      (isEdited && code === 'spec_changed') || (isReset && !stage.isQuiet && code === 'not_open'),
  );
  if (typeof answer?.body['decisionId'] === 'string') call.decisionId = answer.body['decisionId'];
  await decideOnWhatIsShownNow(stage, operation, gate, planned, answer);
}

/** After a 412 a person looks again, and decides on what is there now. */
async function decideOnWhatIsShownNow(
  stage: Stage,
  operation: DecisionOperation,
  gate: SeenGate,
  planned: PlannedGate,
  answer: Answer | undefined,
): Promise<void> {
  const current = answer?.body['currentHash'];
  if (answer?.status !== 412 || typeof current !== 'string' || !operation.shouldSucceed) return;
  if (current === gate.hash || isOver(stage)) return;
  await decideByHttp(stage, operation, { ...gate, hash: current }, planned, `chaos-${randomUUID()}`);
}

function callFields(
  { op, client, person, shouldSucceed }: DecisionOperation,
  { runId, key }: SeenGate,
  door: CallFields['door'],
): CallFields {
  return { op, client, person, door, run: runId, key, shouldSucceed };
}

function bodyOf(stage: Stage, { op, run }: DecisionOperation, planned: PlannedGate): Record<string, unknown> {
  switch (op) {
    case 'edit':
    case 'amend': {
      const changed = { ...planned, amount: op === 'edit' ? '1.01' : '2.02' };
      return { arguments: argumentsOf(runOf(stage, run).label, changed) };
    }
    case 'respond':
      return { result: { receipt: 'by hand' } };
    case 'comment':
      return { reason: 'who asked for that?' };
    case 'reject':
      return { reason: 'Nein – 1 000 € ≠ 100 €' };
    default:
      return {};
  }
}

/** A signal as another service sends it, with a proof or without one; each copy is a signal of its own. */
async function sendDecision(
  stage: Stage,
  operation: DecisionOperation,
  gate: SeenGate,
  planned: PlannedGate,
): Promise<void> {
  const { temporal, secrets } = stage.world;
  const { op, person, copies, door } = operation;
  const body = bodyOf(stage, operation, planned);
  const more = { by: { id: person }, ...body } as Parameters<typeof decisionOn>[2];
  const decision =
    door === 'raw-signed'
      ? await signedDecision(temporal, secrets, gate, op, more)
      : decisionOn(gate, op, more);
  for (let copy = 0; copy < copies; copy += 1) {
    const call = openCall(stage, {
      ...callFields(operation, gate, door),
      decisionId: decision.decisionId,
      ...(decision.payloadHash === undefined ? {} : { payloadHash: decision.payloadHash }),
      ...('arguments' in body ? { arguments: body['arguments'] } : {}),
    });
    await signal(stage, call, () =>
      temporal.client.workflow.getHandle(gate.runId).signal(signalNames.decide, decision),
    );
  }
}

/** 202: Temporal has it. Nobody tells a signal what became of it. */
async function signal(
  stage: Stage,
  call: ReturnType<typeof openCall>,
  sendOnce: () => Promise<void>,
): Promise<void> {
  while (!isOver(stage)) {
    try {
      await sendOnce();
      noteAnswer(call, { status: 202, body: {} });
      return;
    } catch (error) {
      if (isNotFound(error)) {
        noteAnswer(call, { status: 404, body: {} });
        return;
      }
      await sleep(200); // the server is down
    }
  }
}

function isNotFound(error: unknown): boolean {
  return error instanceof WorkflowNotFoundError || (error as { code?: unknown }).code === 5;
}

async function sendMalformed(stage: Stage, operation: OtherOperation): Promise<void> {
  const planned = gateOf(stage, operation);
  const runId = await runIdOf(stage, operation.run, planned);
  if (runId === undefined) return;
  const gate = await watch(stage, runId, (run) => seenGate(run, planned.name));
  if (gate === undefined) return;
  const known = gate.hash === '' ? { ...gate, hash: zeroHash } : gate;
  const all = hostileSignals(known);
  const hostile = all[Math.floor(operation.choice * all.length)];
  if (hostile === undefined) return;
  const { client, person } = operation;
  const call = openCall(stage, {
    ...{
      client,
      person,
      op: 'approve',
      door: 'raw-malformed',
      run: runId,
      key: gate.key,
      shouldSucceed: false,
    },
    ...(hostile.decisionId === undefined ? {} : { decisionId: hostile.decisionId }),
  });
  await signal(stage, call, () => sendRaw(stage.world.temporal, runId, hostile));
}

async function cancel(stage: Stage, operation: OtherOperation): Promise<void> {
  const id = await runIdOf(stage, operation.run);
  if (id === undefined || (await describe(stage, id))?.closeStatus !== undefined) return;
  const { client, person } = operation;
  const call = openCall(stage, { client, person, op: 'cancel', door: 'http', run: id, shouldSucceed: false });
  const path = `/runs/${encodeURIComponent(id)}/cancel`;
  // its 202 is its last word
  for (let last: Answer | undefined; last === undefined || last.status >= 500;) {
    last = await send(stage, { method: 'POST', path, person, body: {} });
    noteAnswer(call, last);
    if (isOver(stage)) return;
  }
}

async function read(stage: Stage, operation: OtherOperation): Promise<void> {
  const planned = gateOf(stage, operation);
  const runId = await runIdOf(stage, operation.run, planned);
  if (runId === undefined) return;
  const gate = await watch(stage, runId, (run) => seenGate(run, planned.name));
  if (gate === undefined) return;
  const id = encodeURIComponent(runId);
  const paths = [
    `/approvals/${gate.key}`,
    `/approvals/${gate.key}`,
    `/runs/${id}`,
    `/runs/${id}/trail`,
    '/approvals',
  ];
  const path = paths[Math.floor(operation.choice * paths.length)] ?? '/approvals';
  await readPath(stage, operation, runId, path, path.includes(gate.key) ? gate.key : undefined);
}

export async function readPath(
  stage: Stage,
  { client, person }: { client: string; person: string },
  run: string,
  path: string,
  key?: string,
): Promise<void> {
  const call = openCall(stage, {
    ...{ client, person, op: 'read', door: 'http', run, arguments: { path }, shouldSucceed: true },
    ...(key === undefined ? {} : { key }),
  });
  await insist(stage, call, { method: 'GET', path, person });
}
