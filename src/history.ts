// Turns the histories of a chain of Temporal executions into what the trail decoder reads. It follows
// continue-as-new and reset back to the first execution that the server still keeps.
import type { Client, WorkflowHandle } from '@temporalio/client';
import type { Payload, PayloadCodec } from '@temporalio/common';
import type { Execution, FailureInfo, HistoryEvent } from './core/history-event.ts';
import type { Json } from './core/json.ts';
import { memoFields } from './core/names.ts';
import type { RawPayload } from './core/signal.ts';
import { isNotKept } from './grpc-status.ts';

type History = Awaited<ReturnType<WorkflowHandle['fetchHistory']>>;
type ProtoEvent = NonNullable<History['events']>[number];
type ProtoFailure = NonNullable<NonNullable<ProtoEvent['activityTaskFailedEventAttributes']>['failure']>;
type Payloads = { payloads?: RawPayload[] | null } | null | undefined;

/** A chain has few executions; this only bounds a walk through a broken one. */
const longestChain = 1_000;

/**
 * The executions of a run's chain, oldest first; a run that was reset comes before the one that replaced
 * it, cut, and after it those that had continued it. Empty when the workflow id is not known.
 * @param last Temporal run id of the last execution; default: the current one
 */
export async function readChain(client: Client, workflowId: string, last?: string): Promise<Execution[]> {
  const chain: Execution[] = [];
  let runId = last ?? (await currentRunId(client, workflowId));
  let cutAfter: number | undefined;
  while (runId !== undefined && chain.length < longestChain) {
    const events = await readEvents(client, workflowId, runId);
    if (events === undefined) return withCopies(chain);
    const reset = events.findLast((event) => event.type === 'reset');
    const copied = reset === undefined ? undefined : reset.eventId - 1;
    const lost = cutAfter === undefined ? [] : await readContinuations(client, workflowId, events);
    chain.unshift(
      {
        ...{ workflowId, runId, events },
        ...(cutAfter === undefined ? {} : { cutAfter }),
        ...(copied === undefined ? {} : { copied }),
      },
      ...lost,
    );
    const started = events.find((event) => event.type === 'run_started');
    // one that was reset again, to a place before the first reset, had copied what is cut off too
    cutAfter = copied === undefined ? undefined : Math.min(copied, cutAfter ?? copied);
    runId = reset?.baseRunId ?? started?.continuedRunId;
  }
  return chain;
}

/** What the first was reset from is not kept any more: what it copied from there is all there is of it. */
function withCopies([first, ...rest]: readonly Execution[]): Execution[] {
  if (first === undefined) return [];
  const { copied: _, ...whole } = first;
  return [whole, ...rest];
}

/** The executions that had continued one that a reset cut: with it, all that they did was cut off. */
async function readContinuations(
  client: Client,
  workflowId: string,
  cut: readonly HistoryEvent[],
): Promise<Execution[]> {
  const found: Execution[] = [];
  let runId = nextRunId(cut);
  while (runId !== undefined && found.length < longestChain) {
    const events = await readEvents(client, workflowId, runId);
    if (events === undefined) break;
    found.push({ workflowId, runId, events, cutAfter: 0 });
    runId = nextRunId(events);
  }
  return found;
}

function nextRunId(events: readonly HistoryEvent[]): string | undefined {
  const last = events.findLast((event) => event.type === 'run_continued');
  return last?.type === 'run_continued' ? last.nextRunId : undefined;
}

async function currentRunId(client: Client, workflowId: string): Promise<string | undefined> {
  try {
    return (await client.workflow.getHandle(workflowId).describe()).runId;
  } catch (error) {
    if (isNotKept(error)) return undefined;
    throw error;
  }
}

async function readEvents(client: Client, workflowId: string, runId: string) {
  try {
    const history = await client.workflow.getHandle(workflowId, runId).fetchHistory();
    const { payloadCodecs } = client.options.loadedDataConverter;
    for (const codec of payloadCodecs.toReversed()) await decodePayloads(history, codec);
    return withKnownTimes(history.events ?? []);
  } catch (error) {
    if (isNotKept(error)) return undefined;
    throw error;
  }
}

/** No event could be read before those that stand before it, the ones that no trail is made of included. */
function withKnownTimes(events: readonly ProtoEvent[]): HistoryEvent[] {
  let knownAt = 0;
  return events.flatMap((event) => {
    knownAt = Math.max(knownAt, millis(event.eventTime));
    return toEvent(event).map((one) => ({ ...one, knownAt }));
  });
}

/** Undoes one payload codec, in place, wherever a payload stands; the workflow saw the decoded ones. */
async function decodePayloads(value: unknown, codec: PayloadCodec): Promise<void> {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return;
  for (const [name, member] of Object.entries(value as Record<string, unknown>)) {
    if (isPayload(member)) {
      const [decoded] = await codec.decode([member]);
      (value as Record<string, unknown>)[name] = decoded;
    } else {
      await decodePayloads(member, codec);
    }
  }
}

function isPayload(value: unknown): value is Payload {
  return typeof value === 'object' && value !== null && 'metadata' in value && 'data' in value;
}

/** The events that a trail is made of; others are left out. */
export function toEvent(event: ProtoEvent): HistoryEvent[] {
  const body = bodyOf(event);
  if (body === undefined) return [];
  return [{ eventId: Number(event.eventId), at: millis(event.eventTime), ...body }];
}

type Body<E = HistoryEvent> = E extends HistoryEvent ? Omit<E, 'eventId' | 'at'> : never;

function bodyOf(event: ProtoEvent): Body | undefined {
  const started = event.workflowExecutionStartedEventAttributes;
  if (started) {
    return {
      type: 'run_started',
      workflowType: started.workflowType?.name ?? '',
      input: jsonOf(started.input),
      firstRunId: started.firstExecutionRunId ?? '',
      ...handedDown(started),
      ...(started.identity ? { identity: started.identity } : {}),
      ...(started.parentWorkflowExecution?.workflowId
        ? { parentId: started.parentWorkflowExecution.workflowId }
        : {}),
      ...(started.continuedExecutionRunId ? { continuedRunId: started.continuedExecutionRunId } : {}),
    };
  }
  if (event.workflowTaskCompletedEventAttributes) return { type: 'task_completed' };
  const taskFailed = event.workflowTaskFailedEventAttributes;
  // a failed task is a fault that Temporal retries; only a reset (it names the run it came from) is a fact
  if (taskFailed?.baseRunId) {
    return { type: 'reset', baseRunId: taskFailed.baseRunId, reason: taskFailed.failure?.message ?? '' };
  }
  const signaled = event.workflowExecutionSignaledEventAttributes;
  if (signaled) {
    const input = (signaled.input?.payloads ?? []) as RawPayload[];
    return { type: 'signaled', name: signaled.signalName ?? '', input, identity: signaled.identity ?? '' };
  }
  const marker = event.markerRecordedEventAttributes;
  if (marker?.markerName === 'core_local_activity') return localActivity(marker, event);
  const memo = event.workflowPropertiesModifiedEventAttributes;
  if (memo?.upsertedMemo) {
    const fields = Object.entries(memo.upsertedMemo.fields ?? {});
    return {
      type: 'memo_changed',
      fields: Object.fromEntries(fields.map(([name, value]) => [name, decode(value)])),
    };
  }
  return activityBody(event) ?? endBody(event);
}

/** As src/workflows/run.ts takes it: only in a run that has a parent. */
function handedDown(started: NonNullable<ProtoEvent['workflowExecutionStartedEventAttributes']>) {
  const field = started.memo?.fields?.[memoFields.root];
  if (!started.parentWorkflowExecution?.workflowId || field == null) return {};
  const given = decode(field) as { root?: unknown; prefix?: unknown } | null;
  const { root, prefix } = given ?? {};
  return typeof root === 'string' && typeof prefix === 'string' ? { handedDown: { root, prefix } } : {};
}

function localActivity(
  marker: NonNullable<ProtoEvent['markerRecordedEventAttributes']>,
  { userMetadata }: ProtoEvent,
): Body {
  const data = jsonOf(marker.details?.['data']) as { activity_type?: string } | null;
  const activityType = data?.activity_type ?? '';
  if (marker.failure) {
    const summary = userMetadata?.summary ? decode(userMetadata.summary) : null;
    return {
      type: 'local_activity',
      activityType,
      failure: failureOf(marker.failure),
      ...(typeof summary === 'string' ? { summary } : {}),
    };
  }
  return { type: 'local_activity', activityType, result: jsonOf(marker.details?.['result']) };
}

function activityBody(event: ProtoEvent): Body | undefined {
  const scheduled = event.activityTaskScheduledEventAttributes;
  if (scheduled) {
    return {
      type: 'activity_scheduled',
      activityType: scheduled.activityType?.name ?? '',
      input: jsonOf(scheduled.input),
    };
  }
  const started = event.activityTaskStartedEventAttributes;
  if (started) {
    const scheduledEventId = Number(started.scheduledEventId);
    return { type: 'activity_started', scheduledEventId, attempt: started.attempt ?? 1 };
  }
  const completed = event.activityTaskCompletedEventAttributes;
  if (completed) {
    const scheduledEventId = Number(completed.scheduledEventId);
    return { type: 'activity_completed', scheduledEventId, result: jsonOf(completed.result) };
  }
  const failed = event.activityTaskFailedEventAttributes ?? event.activityTaskTimedOutEventAttributes;
  if (failed) {
    return {
      type: 'activity_failed',
      scheduledEventId: Number(failed.scheduledEventId),
      failure: failureOf(failed.failure),
    };
  }
  return undefined;
}

function endBody(event: ProtoEvent): Body | undefined {
  const completed = event.workflowExecutionCompletedEventAttributes;
  if (completed) return { type: 'run_completed', result: jsonOf(completed.result) };
  const failed = event.workflowExecutionFailedEventAttributes;
  if (failed) return { type: 'run_failed', failure: failureOf(failed.failure) };
  if (event.workflowExecutionCanceledEventAttributes) return { type: 'run_cancelled' };
  const terminated = event.workflowExecutionTerminatedEventAttributes;
  if (terminated) return { type: 'run_terminated', reason: terminated.reason ?? '' };
  if (event.workflowExecutionTimedOutEventAttributes) return { type: 'run_timed_out' };
  const continued = event.workflowExecutionContinuedAsNewEventAttributes;
  if (continued) {
    const next = continued.newExecutionRunId;
    return { type: 'run_continued', ...(next ? { nextRunId: next } : {}) };
  }
  return undefined;
}

/** The innermost failure that says something of its own: a timeout's cause is what the last attempt threw. */
function failureOf(failure: ProtoFailure | null | undefined): FailureInfo {
  const cause = failure?.activityFailureInfo ? (failure.cause ?? failure) : failure;
  const application = cause?.applicationFailureInfo;
  return {
    message: cause?.message ?? '',
    type: application?.type ?? (cause?.timeoutFailureInfo ? 'timeout' : 'failure'),
    details: (application?.details?.payloads ?? []).map((payload) => decode(payload as RawPayload)),
  };
}

/** The first payload, decoded. */
function jsonOf(payloads: Payloads): Json {
  const [first] = payloads?.payloads ?? [];
  return first === undefined ? null : decode(first);
}

/** A payload of JSON; null for every other encoding, since nothing of ours is written so. */
function decode(payload: RawPayload): Json {
  try {
    const encoding = payload.metadata?.['encoding'];
    if (encoding === undefined || Buffer.from(encoding).toString() !== 'json/plain') return null;
    return JSON.parse(Buffer.from(payload.data ?? []).toString()) as Json;
  } catch {
    return null;
  }
}

function millis(time: ProtoEvent['eventTime']): number {
  return Number(time?.seconds ?? 0) * 1_000 + Math.floor((time?.nanos ?? 0) / 1e6);
}
