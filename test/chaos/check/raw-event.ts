// Reads one event of a Temporal history (its JSON), without any code of the product: what the checks need of it.
import type { CaseRecord, EffectRecord, PerformInput, VerdictRecord } from '../../../src/core/case.ts';
import type { Json } from '../../../src/core/json.ts';
import type { RawPayload } from '../../../src/core/signal.ts';

export interface Sent {
  /** what the signal brought, as it is */
  payloads: RawPayload[];
  /** the first of it, when that is a JSON object */
  fields: Record<string, unknown> | undefined;
}

export type What =
  | { type: 'started'; workflowType: string; input: unknown; parent?: string; handed?: unknown }
  | { type: 'task_completed' }
  | { type: 'task_failed'; cause: string; message: string }
  | { type: 'reset' }
  | { type: 'decide'; sent: Sent }
  | { type: 'case'; record: CaseRecord }
  | { type: 'verdict'; record: VerdictRecord }
  | { type: 'check_failed'; key: string | undefined }
  | { type: 'memo'; position: string; state: unknown }
  | { type: 'effect'; input: PerformInput }
  | { type: 'effect_done'; effect: number; record: Partial<EffectRecord> }
  | { type: 'effect_failed'; effect: number; code: string }
  | { type: 'cancel_requested' }
  | { type: 'ended'; how: 'completed' | 'failed' | 'cancelled' | 'terminated' | 'timed_out'; code?: string };

export interface RawEvent {
  eventId?: string;
  eventTime?: string;
  [attributes: string]: unknown;
}

type Fields = Record<string, unknown>;

/** Scheduled activities by the id of their event; filled on the way. */
export type Scheduled = Map<number, { activityType: string; input: unknown }>;

export function whatOf(event: RawEvent, scheduled: Scheduled): What[] {
  const [name = '', raw] = Object.entries(event).find(([field]) => field.endsWith('EventAttributes')) ?? [];
  const fields = fieldsOf(raw);
  switch (name.slice(0, -'EventAttributes'.length)) {
    case 'workflowExecutionStarted':
      return [startedOf(fields)];
    case 'workflowTaskCompleted':
      return [{ type: 'task_completed' }];
    case 'workflowTaskFailed':
      return fields['baseRunId']
        ? [{ type: 'reset' }]
        : [
            {
              type: 'task_failed',
              cause: textOf(fields['cause']).replace('WORKFLOW_TASK_FAILED_CAUSE_', ''),
              message: textOf(fieldsOf(fields['failure'])['message']),
            },
          ];
    case 'workflowExecutionSignaled':
      return fields['signalName'] === 'decide' ? [{ type: 'decide', sent: sentOf(fields['input']) }] : [];
    case 'markerRecorded':
      return markerOf(fields, event);
    case 'workflowPropertiesModified':
      return memosOf(fieldsOf(fields['upsertedMemo'])['fields']);
    case 'activityTaskScheduled': {
      const activityType = textOf(fieldsOf(fields['activityType'])['name']);
      const input = firstOf(fields['input']);
      scheduled.set(Number(event.eventId), { activityType, input });
      return activityType === 'perform' ? [{ type: 'effect', input: input as PerformInput }] : [];
    }
    case 'activityTaskCompleted':
    case 'activityTaskFailed':
    case 'activityTaskTimedOut':
    case 'activityTaskCanceled': {
      const effect = Number(fields['scheduledEventId']);
      return activityEnd(effect, scheduled.get(effect), fields);
    }
    case 'workflowExecutionCancelRequested':
      return [{ type: 'cancel_requested' }];
    default:
      return endOf(name.slice(0, -'EventAttributes'.length), fields);
  }
}

function startedOf(fields: Fields): What {
  const parent = textOf(fieldsOf(fields['parentWorkflowExecution'])['workflowId']);
  const handed = fieldsOf(fieldsOf(fields['memo'])['fields'])['root'];
  return {
    type: 'started',
    workflowType: textOf(fieldsOf(fields['workflowType'])['name']),
    input: firstOf(fields['input']),
    ...(parent === '' ? {} : { parent }),
    ...(handed === undefined ? {} : { handed: jsonOf(handed) }),
  };
}

function markerOf({ markerName, details, failure }: Fields, event: RawEvent): What[] {
  if (markerName !== 'core_local_activity') return [];
  const { data, result } = fieldsOf(details);
  const activityType = textOf(fieldsOf(firstOf(data))['activity_type']);
  if (failure === undefined || failure === null) return recordOf(activityType, firstOf(result));
  if (activityType !== 'admitDecision') return [];
  const summary = textOf(jsonOf(fieldsOf(event['userMetadata'])['summary']));
  return [{ type: 'check_failed', key: summary.split(' ').at(-1) }];
}

function activityEnd(
  effect: number,
  scheduled: { activityType: string; input: unknown } | undefined,
  { result, failure }: Fields,
): What[] {
  const activityType = scheduled?.activityType ?? '';
  if (activityType === 'perform') {
    if (result !== undefined) {
      return [{ type: 'effect_done', effect, record: fieldsOf(firstOf(result)) }];
    }
    const application = fieldsOf(fieldsOf(failure)['applicationFailureInfo']);
    return [{ type: 'effect_failed', effect, code: textOf(application['type']) || 'unclear' }];
  }
  if (result !== undefined) return recordOf(activityType, firstOf(result));
  const key = fieldsOf(scheduled?.input)['key'];
  return activityType === 'admitDecision' ? [{ type: 'check_failed', key: textOf(key) || undefined }] : [];
}

function recordOf(activityType: string, result: unknown): What[] {
  const { kind } = fieldsOf(result);
  if (activityType === 'freezeCase' && kind === 'case')
    return [{ type: 'case', record: result as CaseRecord }];
  if (activityType === 'admitDecision' && kind === 'verdict') {
    return [{ type: 'verdict', record: result as VerdictRecord }];
  }
  return [];
}

function memosOf(memos: unknown): What[] {
  return Object.entries(fieldsOf(memos)).flatMap(([field, payload]): What[] =>
    field.startsWith('approval/')
      ? [
          {
            type: 'memo',
            position: field.slice('approval/'.length),
            state: fieldsOf(jsonOf(payload))['state'],
          },
        ]
      : [],
  );
}

function endOf(name: string, fields: Fields): What[] {
  const ends = {
    workflowExecutionCompleted: 'completed',
    workflowExecutionFailed: 'failed',
    workflowExecutionCanceled: 'cancelled',
    workflowExecutionTerminated: 'terminated',
    workflowExecutionTimedOut: 'timed_out',
  } as const;
  const how = ends[name as keyof typeof ends];
  if (how === undefined) return [];
  const code = textOf(fieldsOf(fieldsOf(fields['failure'])['applicationFailureInfo'])['type']);
  return [{ type: 'ended', how, ...(code === '' ? {} : { code }) }];
}

function sentOf(input: unknown): Sent {
  const payloads = ((fieldsOf(input)['payloads'] ?? []) as unknown[]).map((payload): RawPayload => {
    const { metadata, data } = fieldsOf(payload);
    const names = Object.entries(fieldsOf(metadata)).map(([name, value]) => [name, bytesOf(value)]);
    return { metadata: Object.fromEntries(names) as Record<string, Uint8Array>, data: bytesOf(data) };
  });
  const value = parsed(Buffer.from(payloads[0]?.data ?? []).toString('utf8'));
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return { payloads, fields: isObject ? value : undefined };
}

function firstOf(payloads: unknown): unknown {
  const [first] = (fieldsOf(payloads)['payloads'] ?? []) as unknown[];
  return first === undefined ? null : jsonOf(first);
}

function jsonOf(payload: unknown): unknown {
  return parsed(bytesOf(fieldsOf(payload)['data']).toString('utf8')) ?? null;
}

function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

function bytesOf(data: unknown): Buffer {
  return Buffer.from(textOf(data), 'base64');
}

export function attributesOf(event: RawEvent, name: string): Fields {
  return fieldsOf(event[`${name}EventAttributes`]);
}

export function timeOf({ eventTime }: RawEvent): number {
  return Date.parse(eventTime ?? '');
}

export function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
