// Handmade raw histories for the checks of the chaos harness: the JSON that Temporal's own tools give, one event a
// line of the story, and the trail that the product decodes from them.
import { historyFromJSON } from '@temporalio/common/lib/proto-utils.js';
import type { CaseRecord, EffectRecord, Grant, PerformInput, VerdictRecord } from '../../src/core/case.ts';
import type { Decision } from '../../src/core/decision.ts';
import type { Json } from '../../src/core/json.ts';
import { decodeTrail } from '../../src/core/trail.ts';
import type { TrailFact } from '../../src/core/trail-fact.ts';
import { toEvent } from '../../src/history.ts';
import { callHash, effectKey, gateKey } from '../chaos/check/independent.ts';

export const epoch = 1_800_000_000_000;
/** Between two events. */
export const stepMs = 100;

type Attributes = Record<string, unknown>;
export type EventBody = Record<string, Attributes>;

/** The run that a history is of; the root of a child is its parent's. */
export interface RunPlace {
  workflowId: string;
  root: string;
  prefix?: string;
}

export const place: RunPlace = { workflowId: 'run-1', root: '019d2b1a-7f3e-7c11-9d55-046acc729732' };

const payload = (value: unknown): Attributes => ({
  metadata: { encoding: Buffer.from('json/plain').toString('base64') },
  data: Buffer.from(JSON.stringify(value)).toString('base64'),
});
const payloads = (value: unknown): Attributes => ({ payloads: [payload(value)] });

export interface ExecutionOptions {
  runId?: string;
  firstRunId?: string;
  continues?: string;
  workflowType?: string;
  input?: unknown;
  parent?: string;
  handed?: unknown;
  /** of the first event */
  at?: number;
}

/** The first event is the start; event ids count from 1, times in steps of 100 ms. */
export function history(of: RunPlace, bodies: readonly EventBody[], options: ExecutionOptions = {}) {
  const { runId = of.root, firstRunId = runId, continues, workflowType = 'runSpec', at = epoch } = options;
  const { input = { v: 1, spec: {}, input: {} }, parent, handed } = options;
  const started: EventBody = {
    workflowExecutionStarted: {
      workflowType: { name: workflowType },
      input: payloads(input),
      workflowId: of.workflowId,
      originalExecutionRunId: runId,
      firstExecutionRunId: firstRunId,
      ...(continues === undefined ? {} : { continuedExecutionRunId: continues }),
      ...(parent === undefined ? {} : { parentWorkflowExecution: { workflowId: parent, runId } }),
      ...(handed === undefined ? {} : { memo: { fields: { root: payload(handed) } } }),
    },
  };
  return { events: [started, ...bodies].map((body, index) => eventOf(body, index + 1, at + index * stepMs)) };
}

export type RawHistory = ReturnType<typeof history>;

function eventOf(body: EventBody, eventId: number, at: number): Record<string, unknown> {
  const [name = '', attributes] = Object.entries(body)[0] ?? [];
  return {
    eventId: String(eventId),
    eventTime: new Date(at).toISOString(),
    [`${name}EventAttributes`]: attributes,
  };
}

/** As a workflow reset leaves it: the events before `eventId`, the reset, then what followed. */
export function resetOf(
  base: RawHistory,
  baseRunId: string,
  eventId: number,
  newRunId: string,
  bodies: readonly EventBody[],
  at: number,
): RawHistory {
  const reset: EventBody = {
    workflowTaskFailed: { cause: 'WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW', baseRunId, newRunId },
  };
  const later = [reset, ...bodies].map((body, index) => eventOf(body, eventId + index, at + index * stepMs));
  return { events: [...base.events.slice(0, eventId - 1), ...later] };
}

export const task: EventBody = { workflowTaskCompleted: {} };

export function local(activityType: string, result: unknown): EventBody {
  const details = { data: payloads({ activity_type: activityType }), result: payloads(result) };
  return { markerRecorded: { markerName: 'core_local_activity', details } };
}

export function signal(value: unknown, name = 'decide'): EventBody {
  return { workflowExecutionSignaled: { signalName: name, input: payloads(value), identity: 'api@host' } };
}

export function memo(position: string, state: string): EventBody {
  const fields = { [`approval/${position}`]: payload({ state, at: epoch }) };
  return { workflowPropertiesModified: { upsertedMemo: { fields } } };
}

export function caseOf(position: string, more: Partial<CaseRecord> = {}, of = place): CaseRecord {
  const args = more.arguments ?? { order: `${of.workflowId}/${position}`, amount: '1.00' };
  const tool = more.tool ?? 'pay.keyed';
  return {
    ...{ v: 1, kind: 'case', position, root: of.root, phase: 'before', title: 'Pay', tool },
    key: gateKey(of.workflowId, position, of.root),
    arguments: args,
    payloadHash: callHash(tool, args),
    policy: { ttlMs: 60_000 },
    requestedAt: epoch,
    expiresAt: epoch + 60_000,
    ...more,
  };
}

export function asks(frozen: CaseRecord): EventBody[] {
  return [local('freezeCase', frozen), memo(frozen.position, 'pending')];
}

export function decisionOn(frozen: CaseRecord, decisionId: string, more: Partial<Decision> = {}): Decision {
  const { key, root, payloadHash } = frozen;
  return {
    v: 1,
    key,
    root,
    decision: 'approve',
    payloadHash,
    decisionId,
    by: { id: 'ann' },
    via: 'api',
    ...more,
  };
}

export function verdictOn(
  frozen: CaseRecord,
  decision: Decision,
  more: Partial<VerdictRecord> = {},
): EventBody {
  const { position, key, root } = frozen;
  const by = { ...decision.by, verified: true };
  return local('admitDecision', {
    v: 1,
    kind: 'verdict',
    position,
    key,
    root,
    decision,
    by,
    verdict: 'accepted',
    ...more,
  });
}

/** Accepted, with the grant. */
export function approves(frozen: CaseRecord, decision: Decision, anew?: CaseRecord): EventBody[] {
  const { position, tool = '', payloadHash, doubt } = anew ?? frozen;
  const grant = {
    position: doubt?.retryPosition ?? position,
    tool,
    payloadHash: doubt?.effectHash ?? payloadHash,
  } as Grant;
  return [
    verdictOn(frozen, decision, { grant, ...(anew === undefined ? {} : { case: anew }) }),
    memo(position, 'approved'),
  ];
}

export function performs(frozen: CaseRecord, more: Partial<PerformInput> = {}, of = place): EventBody {
  const { position, root, tool = '', arguments: args = null, payloadHash } = frozen;
  const grant = { position, tool, payloadHash } as Grant;
  const prefix = of.prefix === undefined ? {} : { prefix: of.prefix };
  const input: PerformInput = {
    v: 1,
    position,
    root,
    ...prefix,
    tool,
    arguments: args,
    payloadHash,
    grant,
    ...more,
  };
  return { activityTaskScheduled: { activityType: { name: 'perform' }, input: payloads(input) } };
}

export function done(scheduledEventId: number, frozen: CaseRecord, of = place): EventBody {
  const { position, root, tool = '', payloadHash } = frozen;
  const idempotencyKey = effectKey(of, position);
  const record: EffectRecord = {
    v: 1,
    kind: 'effect',
    position,
    root,
    tool,
    payloadHash,
    idempotencyKey,
    output: {},
  };
  return { activityTaskCompleted: { scheduledEventId: String(scheduledEventId), result: payloads(record) } };
}

export function failed(scheduledEventId: number, type: string): EventBody {
  const failure = { message: type, applicationFailureInfo: { type } };
  return { activityTaskFailed: { scheduledEventId: String(scheduledEventId), failure } };
}

export const completed = (result: Json): EventBody => ({
  workflowExecutionCompleted: { result: payloads(result) },
});

/** What the API tells of these executions. @param cuts by run id: the last event that a reset left */
export function trailOf(
  of: RunPlace,
  executions: readonly { runId: string; history: RawHistory; cutAfter?: number; copied?: number }[],
): TrailFact[] {
  return decodeTrail(
    executions.map(({ history: raw, ...rest }) => ({
      workflowId: of.workflowId,
      ...rest,
      events: (historyFromJSON(raw).events ?? []).flatMap(toEvent),
    })),
  );
}
