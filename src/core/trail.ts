// Decodes the trail: the ordered facts of a run, from the history of its whole chain. It walks the events
// as the workflow saw them (a task's signals come before everything else of the task) and judges with the
// same pure functions, so it derives what no event says. `seq` is dense and only ever grows at the end.
import type { EffectRecord, PerformInput, SpecRef } from './case.ts';
import { approvalKeyOf } from './approval-key.ts';
import { findCarried } from './carried.ts';
import { isClearFailure } from './failures.ts';
import type { RunPlace } from './gate-state.ts';
import type { Execution, FailureInfo, HistoryEvent } from './history-event.ts';
import type { Json, JsonObject } from './json.ts';
import { activityNames, keyInSummary, memoFields, signalNames, workflowTypes } from './names.ts';
import { idempotencyKey } from './position.ts';
import { isCase, isPerformInput, isVerdict } from './record-shape.ts';
import type { FactBody, KnownFact, TrailFact, Trigger } from './trail-fact.ts';
import { createTrailGates, type TrailGate, type TrailGates } from './trail-gates.ts';
import type { Actor } from './verdict.ts';

/** Adds a fact at the place of an event. */
export type Emit = (event: HistoryEvent, body: FactBody, position?: string) => void;

/** @param executions the chain, oldest first (src/history.ts reads it) */
export function decodeTrail(executions: readonly Execution[]): TrailFact[] {
  return decodeKnown(executions).map(({ fact }) => fact);
}

/** The trail, each fact with the time at which it could be known; that only grows. */
export function decodeKnown(executions: readonly Execution[]): KnownFact[] {
  const facts: KnownFact[] = [];
  let knownAt = 0;
  const see = (event: HistoryEvent): void => {
    knownAt = Math.max(knownAt, event.knownAt ?? event.at);
  };
  const carriedBy = new Map<string, TrailGate[]>(); // by Temporal run id
  for (const execution of executions) {
    const { runId, cutAfter, copied = 0 } = execution;
    const emit: Emit = (event, body, position) => {
      if (event.eventId <= copied) return;
      const fact = {
        seq: facts.length + 1,
        at: new Date(event.at).toISOString(),
        ...(position === undefined ? {} : { position }),
        temporalRunId: runId,
        eventId: event.eventId,
        ...(cutAfter !== undefined && event.eventId > cutAfter ? { superseded: true as const } : {}),
        ...body,
      };
      facts.push({ fact, knownAt });
    };
    carriedBy.set(runId, decodeExecution(execution, { emit, see, carriedBy }));
  }
  return facts;
}

interface Effect {
  input: PerformInput;
  key: string;
  attempts: number;
}

interface Decoding {
  emit: Emit;
  see: (event: HistoryEvent) => void;
  carriedBy: ReadonlyMap<string, TrailGate[]>;
}

interface Walk {
  emit: Emit;
  place: RunPlace;
  /** a workflow type of countersign's, whose input and result we know */
  isOurs: boolean;
  isSpecRun: boolean;
  /** the first execution, or the first of those that the server still keeps */
  isOldest: boolean;
  /** a workflow reset took the end of it back */
  isCut: boolean;
  gates: TrailGates;
  /** by the event that scheduled them */
  effects: Map<number, Effect>;
  scheduled: Map<number, { activityType: string; input: Json }>;
  /** results of ordinary recording activities: applied after the signals of the task that saw them */
  waiting: (() => void)[];
}

/** @returns the gates that an execution which continues this one begins with */
function decodeExecution(execution: Execution, { emit, see, carriedBy }: Decoding): TrailGate[] {
  const started = execution.events.find((event) => event.type === 'run_started');
  const root = started?.handedDown?.root ?? started?.firstRunId ?? execution.runId;
  const place = { workflowId: execution.workflowId, root };
  const carried = carriedBy.get(started?.continuedRunId ?? '');
  const walk: Walk = {
    emit,
    place,
    isOurs: Object.hasOwn(workflowTypes, started?.workflowType ?? ''),
    isSpecRun: started?.workflowType === workflowTypes.runSpec,
    isOldest: carried === undefined,
    isCut: execution.cutAfter !== undefined,
    gates: createTrailGates(place, emit, carried),
    effects: new Map(),
    scheduled: new Map(),
    waiting: [],
  };
  for (const event of execution.events) {
    see(event);
    step(walk, event);
  }
  return walk.gates.carry();
}

function step(walk: Walk, event: HistoryEvent): void {
  const { emit, gates } = walk;
  switch (event.type) {
    case 'run_started':
      return runStarted(walk, event);
    case 'reset':
      return emit(event, { type: 'run_reset', toEventId: event.eventId, reason: event.reason });
    case 'signaled':
      if (event.name === signalNames.decide) gates.receive(event);
      else emit(event, { type: 'signal_ignored', name: event.name });
      return;
    case 'task_completed':
      gates.deliver();
      for (const apply of walk.waiting.splice(0)) apply();
      return;
    case 'local_activity':
      return event.failure === undefined
        ? recorded(walk, event, event.activityType, event.result)
        : notRecorded(walk, event, event.activityType, event.failure, keyInSummary(event.summary));
    case 'memo_changed':
      for (const [field, value] of Object.entries(event.fields)) {
        if (field.startsWith(memoFields.approvalPrefix)) gates.memo(event, field, value);
      }
      return;
    case 'activity_scheduled':
    case 'activity_started':
    case 'activity_completed':
    case 'activity_failed':
      return activity(walk, event);
    default: {
      // a reset terminates what it cuts: its gates go on in the next one
      const goesOn = event.type === 'run_continued' || (event.type === 'run_terminated' && walk.isCut);
      if (!goesOn) gates.close(event);
      return end(walk, event);
    }
  }
}

type Started = Extract<HistoryEvent, { type: 'run_started' }>;

function runStarted(walk: Walk, event: Started): void {
  const { emit, gates, place } = walk;
  const { input, workflowType } = event;
  if (walk.isOldest) emit(event, startedFact(event));
  const carried = walk.isOldest ? findCarried(input, place.root) : undefined;
  if (carried !== undefined) gates.takeOver(event, carried);
  const asked: unknown = isObject(input) ? input['case'] : undefined;
  // whoever may start a workflow can give it anything
  if (workflowType !== workflowTypes.requestApproval || !isCase(asked)) return;
  const key = approvalKeyOf({ ...place, position: asked.position });
  // frozen by the API: open from the first event
  if (key !== undefined) gates.open(event, { ...asked, key, root: place.root });
}

function startedFact({ input, workflowType, ...event }: Started): FactBody {
  const trigger = triggerOf(event);
  if (!Object.hasOwn(workflowTypes, workflowType) || !isObject(input)) {
    return { type: 'run_started', ...(input === null ? {} : { input }), trigger };
  }
  return {
    type: 'run_started',
    ...(input['input'] === undefined ? {} : { input: input['input'] }),
    trigger: isTrigger(input['trigger']) ? input['trigger'] : trigger,
    ...(isObject(input['startedBy']) ? { startedBy: input['startedBy'] as unknown as Actor } : {}),
    ...(isObject(input['specRef']) ? { spec: input['specRef'] as unknown as SpecRef } : {}),
  };
}

/** Of a start that says nothing of it: Temporal's own word. */
function triggerOf({ identity, parentId }: Pick<Started, 'identity' | 'parentId'>): Trigger {
  if (parentId !== undefined) return { kind: 'run', id: parentId };
  return { kind: 'temporal', ...(identity === undefined ? {} : { identity }) };
}

function isTrigger(value: unknown): value is Trigger {
  return isObject(value as Json) && typeof (value as Trigger).kind === 'string';
}

/** @param key of the gate that the recording was for */
function notRecorded(
  walk: Walk,
  event: HistoryEvent,
  activityType: string,
  failure: FailureInfo,
  key: string | undefined,
): void {
  if (activityType === activityNames.admitDecision) walk.gates.checkFailed(event, failure, key);
}

function recorded(walk: Walk, event: HistoryEvent, activityType: string, result: Json | undefined): void {
  // A user's own activity may answer anything: only our types count, and only what this version knows.
  const record = isObject(result) ? result : {};
  if (record['v'] !== 1) return;
  const { kind, position } = record;
  const { freezeCase, prepareStep, admitDecision } = activityNames;
  if (activityType === freezeCase && kind === 'case') {
    const frozen: unknown = record;
    if (!isCase(frozen) || typeof frozen.key !== 'string') return;
    if (walk.isSpecRun && frozen.phase !== 'in-doubt') {
      walk.emit(event, { type: 'step_started' }, frozen.position);
    }
    walk.gates.open(event, frozen);
  } else if (activityType === prepareStep && kind === 'prepared') {
    if (walk.isSpecRun && typeof position === 'string') {
      walk.emit(event, { type: 'step_started' }, position);
    }
  } else if (activityType === admitDecision && kind === 'verdict') {
    const verdict: unknown = record;
    if (!isVerdict(verdict)) return;
    const ended = walk.gates.verdict(event, verdict);
    if (!walk.isSpecRun || ended === undefined) return;
    if (ended.state === 'approved' && ended.phase === 'step') {
      walk.emit(event, { type: 'step_completed', output: { approved: true } }, verdict.position);
    } else if (ended.state === 'responded') {
      const position = verdict.position.replace(/\/in-doubt(#\d+)?$/, '');
      walk.emit(event, { type: 'step_completed', output: verdict.decision.result ?? null }, position);
    }
  }
}

function activity(walk: Walk, event: HistoryEvent): void {
  if (event.type === 'activity_scheduled') {
    walk.scheduled.set(event.eventId, event);
    if (event.activityType === activityNames.perform) effectStarted(walk, event, event.input);
    return;
  }
  if (event.type === 'activity_started') {
    const effect = walk.effects.get(event.scheduledEventId);
    if (effect !== undefined) effect.attempts = event.attempt;
    return;
  }
  if (event.type !== 'activity_completed' && event.type !== 'activity_failed') return;
  const effect = walk.effects.get(event.scheduledEventId);
  if (effect !== undefined) return effectEnded(walk, event, effect);
  const scheduled = walk.scheduled.get(event.scheduledEventId);
  if (scheduled === undefined) return;
  const { activityType, input } = scheduled;
  walk.waiting.push(() => {
    if (event.type === 'activity_completed') return recorded(walk, event, activityType, event.result);
    const key = isObject(input) ? input['key'] : undefined;
    notRecorded(walk, event, activityType, event.failure, typeof key === 'string' ? key : undefined);
  });
}

function effectStarted(walk: Walk, event: HistoryEvent, raw: Json): void {
  const input: unknown = raw;
  if (!isPerformInput(input)) return;
  const { position, root, prefix, tool, payloadHash } = input;
  const key = idempotencyKey(root, position, prefix);
  walk.effects.set(event.eventId, { input, key, attempts: 1 });
  const body = { tool, arguments: input.arguments, payloadHash, idempotencyKey: key };
  walk.emit(event, { type: 'effect_started', ...body }, position);
}

function effectEnded(
  walk: Walk,
  event: Extract<HistoryEvent, { type: 'activity_completed' | 'activity_failed' }>,
  { input, key, attempts }: Effect,
): void {
  const { tool, position } = input;
  if (event.type === 'activity_completed') {
    const { output = null, idempotencyKey: sent = key } = (event.result ?? {}) as Partial<EffectRecord>;
    walk.emit(event, { type: 'tool_result', tool, idempotencyKey: sent, attempts, output }, position);
    if (walk.isSpecRun) walk.emit(event, { type: 'step_completed', output }, position);
    return;
  }
  const { type: code, message } = event.failure;
  const body = { tool, idempotencyKey: key, message };
  if (isClearFailure(code)) walk.emit(event, { type: 'effect_failed', ...body, code }, position);
  else walk.emit(event, { type: 'effect_in_doubt', ...body }, position);
}

function end({ emit, isOurs }: Walk, event: HistoryEvent): void {
  switch (event.type) {
    case 'run_completed': {
      const result = event.result;
      if (isOurs && isObject(result)) {
        if (result['status'] === 'cancelled') return emit(event, { type: 'run_cancelled' });
        const status = result['status'] === 'rejected' ? 'rejected' : 'completed';
        const output = result['output'];
        return emit(event, { type: 'run_finished', status, ...(output === undefined ? {} : { output }) });
      }
      return emit(event, { type: 'run_finished', status: 'completed', output: result });
    }
    case 'run_failed': {
      const error = { code: event.failure.type, message: event.failure.message };
      return emit(event, { type: 'run_finished', status: 'failed', error });
    }
    case 'run_timed_out': {
      const error = { code: 'timed_out', message: 'the run reached its Temporal execution timeout' };
      return emit(event, { type: 'run_finished', status: 'failed', error });
    }
    case 'run_cancelled':
      return emit(event, { type: 'run_cancelled' });
    case 'run_terminated':
      return emit(event, {
        type: 'run_terminated',
        ...(event.reason === '' ? {} : { reason: event.reason }),
      });
    case 'run_continued':
      return emit(event, { type: 'run_continued' });
    default:
  }
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
