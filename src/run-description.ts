// What Temporal's description or list row of an execution says to us: the run, its status, and its gates
// from the memo. Needs no worker.
import { defaultPayloadConverter } from '@temporalio/common';
import type { Client, WorkflowExecutionDescription } from '@temporalio/client';
import { approvalKeyOf } from './core/approval-key.ts';
import { activityNames, memoFields, searchAttributes } from './core/names.ts';
import { isMemo } from './core/record-shape.ts';
import type { ApprovalEntry, CloseStatus, Retry, RunDescription } from './countersign-client.ts';

type PendingActivities = WorkflowExecutionDescription['raw']['pendingActivities'];
export type ExecutionInfo = NonNullable<WorkflowExecutionDescription['raw']['workflowExecutionInfo']>;
type Payload = NonNullable<NonNullable<NonNullable<ExecutionInfo['memo']>['fields']>[string]>;

/** temporal.api.enums.v1.WorkflowExecutionStatus; 1 is running, 6 continued as new. */
const closeStatuses: Record<number, CloseStatus> = {
  2: 'completed',
  3: 'failed',
  4: 'cancelled',
  5: 'terminated',
  7: 'timed_out',
};

export async function describeExecution(client: Client, info: ExecutionInfo): Promise<RunDescription> {
  const runId = info.execution?.workflowId ?? '';
  const temporalRunId = info.execution?.runId ?? '';
  const memo = await decodeFields(client, info.memo?.fields);
  const root = handedDownRoot(info, memo[memoFields.root]) ?? (info.firstRunId || temporalRunId);
  const attributes = info.searchAttributes?.indexedFields;
  const closeStatus = closeStatuses[Number(info.status ?? 1)];
  const status = attribute(attributes?.[searchAttributes.status]);
  const spec = attribute(attributes?.[searchAttributes.spec]);
  const requestHash = memo[memoFields.request];
  return {
    runId,
    temporalRunId,
    root,
    workflowType: info.type?.name ?? '',
    ...(closeStatus === undefined ? {} : { closeStatus }),
    ...(status === undefined ? {} : { status }),
    ...(spec === undefined ? {} : { spec }),
    ...(typeof requestHash === 'string' ? { requestHash } : {}),
    historyLength: Number(info.historyLength ?? 0),
    createdAt: millis(info.startTime) ?? 0,
    ...(info.closeTime ? { closedAt: millis(info.closeTime) ?? 0 } : {}),
    approvals: Object.entries(memo).flatMap(([field, value]) => approvalEntry(field, value, runId, root)),
  };
}

/**
 * The effects that are tried again. Which one an activity is, its attempts say in their heartbeat details
 * (src/activities/call-tool.ts): one that never could, since its worker was killed, is told from its next one on.
 */
export async function retriesIn(client: Client, pending: PendingActivities): Promise<Retry[]> {
  const again = (pending ?? []).filter(
    ({ activityType, attempt }) => activityType?.name === activityNames.perform && (attempt ?? 0) > 1,
  );
  const retries = await Promise.all(
    again.map(async ({ attempt, heartbeatDetails, lastFailure, nextAttemptScheduleTime }) => {
      const { progress } = await decodeFields(client, { progress: heartbeatDetails?.payloads?.[0] ?? {} });
      const position = (progress as { position?: unknown } | null | undefined)?.position;
      const next = millis(nextAttemptScheduleTime);
      if (typeof position !== 'string') return [];
      return [
        {
          position,
          attempt: Number(attempt),
          lastError: lastFailure?.message ?? '',
          ...(next === undefined ? {} : { nextAttemptAt: next }),
        },
      ];
    }),
  );
  return retries.flat();
}

/** As src/workflows/run.ts takes it: only in a run that has a parent. */
function handedDownRoot(info: ExecutionInfo, given: unknown): string | undefined {
  if (!info.parentExecution?.workflowId || typeof given !== 'object' || given === null) return undefined;
  const { root } = given as { root?: unknown };
  return typeof root === 'string' ? root : undefined;
}

/** None where it is not one of ours: anyone may write a memo, and one field must not hide the run. */
function approvalEntry(field: string, memo: unknown, workflowId: string, root: string): ApprovalEntry[] {
  if (!field.startsWith(memoFields.approvalPrefix) || !isMemo(memo)) return [];
  const position = field.slice(memoFields.approvalPrefix.length);
  const key = approvalKeyOf({ workflowId, position, root });
  return key === undefined ? [] : [{ position, key, memo }];
}

async function decodeFields(client: Client, fields: Record<string, Payload> | null | undefined) {
  const decoded: Record<string, unknown> = {};
  const codecs = client.options.loadedDataConverter.payloadCodecs;
  for (const [name, payload] of Object.entries(fields ?? {})) {
    let payloads = [payload];
    for (const codec of codecs.toReversed()) payloads = await codec.decode(payloads);
    decoded[name] = payloads[0] === undefined ? undefined : tryDecode(payloads[0]);
  }
  return decoded;
}

/** Anyone may write a memo; one that does not decode is not ours. */
function tryDecode(payload: Payload): unknown {
  try {
    return defaultPayloadConverter.fromPayload(payload);
  } catch {
    return undefined;
  }
}

function attribute(payload: Payload | undefined): string | undefined {
  const value = payload === undefined ? undefined : tryDecode(payload);
  return typeof value === 'string' ? value : undefined;
}

function millis(time: ExecutionInfo['startTime']): number | undefined {
  return time == null ? undefined : Number(time.seconds ?? 0) * 1_000 + Math.floor((time.nanos ?? 0) / 1e6);
}
