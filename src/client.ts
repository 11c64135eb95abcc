// What the API and the tests use to start, list, read and decide: the only file that turns these wishes
// into Temporal calls. It keeps no state. Every call has a deadline, since gRPC's has none.
import {
  defineSearchAttributeKey,
  SearchAttributeType,
  TypedSearchAttributes,
  type SearchAttributePair,
} from '@temporalio/common';
import {
  ServiceError,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
  type Client,
  type WorkflowHandle,
  type WorkflowStartOptions,
} from '@temporalio/client';
import {
  NoWorkerError,
  TemporalUnavailableError,
  type CountersignClient,
  type ListRunsQuery,
  type RecordedSignal,
  type RunPage,
  type StartApprovalRequest,
  type StartRunRequest,
  type StartRunResult,
} from './countersign-client.ts';
import { workflowIdProblem } from './core/approval-key.ts';
import { pendingMemo } from './core/approval-memo.ts';
import {
  approvalMemoField,
  memoFields,
  queryNames,
  searchAttributes,
  signalNames,
  workflowTypes,
} from './core/names.ts';
import type { Execution } from './core/history-event.ts';
import type { RequestApprovalInput, RunSpecInput } from './core/recording.ts';
import { readSignal } from './core/signal.ts';
import { decodeKnown, decodeTrail } from './core/trail.ts';
import type { Receipt } from './core/verdict.ts';
import { grpc, grpcCode, isNotKept } from './grpc-status.ts';
import { readChain } from './history.ts';
import { describeExecution, retriesIn, type ExecutionInfo } from './run-description.ts';

export interface ClientOptions {
  client: Client;
  taskQueue: string;
  namespace: string;
  /** Of each call but a query, milliseconds. Default 5,000: a healthy server answers in tens. */
  deadlineMs?: number;
}

const keywordLimit = 255;

/** temporal.api.enums.v1.PendingWorkflowTaskState */
const startedTask = 2;

export function createClient(options: ClientOptions): CountersignClient {
  const { client, taskQueue, namespace } = options;
  const deadlineMs = options.deadlineMs ?? 5_000;

  /** Runs Temporal calls under a deadline; what Temporal does not answer becomes TemporalUnavailableError. */
  const call = async <T>(work: () => Promise<T>, ms = deadlineMs): Promise<T> => {
    try {
      return await client.connection.withDeadline(Date.now() + ms, work);
    } catch (error) {
      throw unavailable(error) ?? error;
    }
  };

  const list = (query: string, pageSize: number, cursor: string | undefined): Promise<RunPage> =>
    call(async () => {
      const answer = await client.workflowService.listWorkflowExecutions({
        namespace,
        query,
        pageSize,
        ...(cursor === undefined ? {} : { nextPageToken: Buffer.from(cursor, 'base64url') }),
      });
      const runs = await Promise.all(answer.executions.map((info) => describeExecution(client, info)));
      const next = answer.nextPageToken;
      return { runs, ...(next.length === 0 ? {} : { cursor: Buffer.from(next).toString('base64url') }) };
    });

  return {
    startRun: (request) => call(() => startRun(client, taskQueue, request)),

    startApproval: (request) => call(() => startApproval(client, taskQueue, request)),

    cancelRun: (runId) =>
      call(async () => {
        try {
          await client.workflow.getHandle(runId).cancel();
          return true;
        } catch (error) {
          if (error instanceof WorkflowNotFoundError) return false;
          throw error;
        }
      }),

    describeRun: (runId) =>
      call(async () => {
        // Temporal refuses to look for it; to who asks, it is as unknown as any other
        if (workflowIdProblem(runId) !== undefined) return undefined;
        try {
          const { raw } = await client.workflow.getHandle(runId).describe();
          const run = await describeExecution(client, raw.workflowExecutionInfo as ExecutionInfo);
          const taskRunning = Number(raw.pendingWorkflowTask?.state ?? 0) === startedTask;
          const retries = await retriesIn(client, raw.pendingActivities);
          return {
            ...run,
            ...(taskRunning ? { taskRunning } : {}),
            ...(retries.length === 0 ? {} : { retries }),
          };
        } catch (error) {
          if (isNotKept(error)) return undefined;
          throw error;
        }
      }),

    listRuns: (query) => list(runsQuery(query), query.pageSize, query.cursor),

    listChanged: ({ closedSince, pageSize, cursor }) => {
      const since = new Date(closedSince).toISOString();
      const query = `${ofCountersign} AND (ExecutionStatus = 'Running' OR CloseTime >= '${since}')`;
      return list(query, pageSize, cursor);
    },

    readFacts: ({ runId, temporalRunId }, longerThan) =>
      call(async () => {
        const handle = client.workflow.getHandle(runId, temporalRunId);
        const historyLength = await lengthOf(handle);
        if (historyLength <= longerThan) return undefined;
        const known = decodeKnown(await readChain(client, runId, temporalRunId));
        return { historyLength, facts: known.filter(({ fact }) => fact.temporalRunId === temporalRunId) };
      }, 4 * deadlineMs),

    listAwaiting: ({ spec, tool, pageSize, cursor }) => {
      const parts = [
        `ExecutionStatus = 'Running'`,
        `${searchAttributes.status} IN ('awaiting_approval', 'in_doubt')`,
      ];
      if (spec !== undefined) parts.push(equals(searchAttributes.spec, spec));
      if (tool !== undefined) parts.push(equals(searchAttributes.tools, tool));
      return list(parts.join(' AND '), pageSize, cursor);
    },

    readTrail: (runId) => call(async () => decodeTrail(await readChain(client, runId)), 4 * deadlineMs),

    sendDecision: (runId, decision) =>
      call(async () => {
        try {
          await client.workflow.getHandle(runId).signal(signalNames.decide, decision);
          return true;
        } catch (error) {
          if (error instanceof WorkflowNotFoundError) return false;
          throw error;
        }
      }),

    async queryReceipts(runId, decisionIds, timeoutMs) {
      const handle = client.workflow.getHandle(runId);
      const ask = () => handle.query<Receipt[], [readonly string[]]>(queryNames.receipts, decisionIds);
      try {
        return await client.connection.withDeadline(Date.now() + timeoutMs, ask);
      } catch (error) {
        if (isNoWorker(error))
          throw new NoWorkerError(`no worker answered for run "${runId}"`, { cause: error });
        throw unavailable(error) ?? error;
      }
    },

    findDecision: (runId, decisionId) =>
      call(async () => findSignal(await readChain(client, runId), decisionId), 4 * deadlineMs),

    checkHealth: () =>
      call(async () => {
        await client.workflowService.describeNamespace({ namespace });
      }),
  };
}

function findSignal(chain: readonly Execution[], decisionId: string): RecordedSignal | undefined {
  for (const { events, runId } of chain.toReversed()) {
    for (const event of events.toReversed()) {
      if (event.type !== 'signaled' || event.name !== signalNames.decide) continue;
      const { reading } = readSignal(event.input);
      if (!reading.ok || reading.decision.decisionId !== decisionId) continue;
      const at = new Date(event.at).toISOString();
      return { decision: reading.decision, temporalRunId: runId, eventId: event.eventId, at };
    }
  }
  return undefined;
}

function startRun(client: Client, taskQueue: string, request: StartRunRequest): Promise<StartRunResult> {
  const { runId, spec, specRef, trigger, startedBy, requestHash } = request;
  const input = {
    v: 1,
    spec,
    ...(specRef === undefined ? {} : { specRef }),
    input: request.input,
    trigger,
    startedBy,
  } as unknown as RunSpecInput;
  return start(client, runId, workflowTypes.runSpec, {
    args: [input],
    taskQueue,
    memo: { [memoFields.request]: requestHash },
    typedSearchAttributes: new TypedSearchAttributes([keyword(searchAttributes.spec, spec.name)]),
  });
}

/** The frozen case, its memo and its attributes are in the start call: the gate is open from the first event. */
function startApproval(
  client: Client,
  taskQueue: string,
  request: StartApprovalRequest,
): Promise<StartRunResult> {
  const { runId, case: frozen, trigger, startedBy, requestHash } = request;
  const input = { v: 1, case: frozen, trigger, startedBy } as unknown as RequestApprovalInput;
  const tools = defineSearchAttributeKey(searchAttributes.tools, SearchAttributeType.KEYWORD_LIST);
  const expiresAt = defineSearchAttributeKey(searchAttributes.expiresAt, SearchAttributeType.DATETIME);
  return start(client, runId, workflowTypes.requestApproval, {
    args: [input],
    taskQueue,
    memo: {
      [memoFields.request]: requestHash,
      [approvalMemoField(frozen.position)]: pendingMemo(frozen),
    },
    typedSearchAttributes: new TypedSearchAttributes([
      keyword(searchAttributes.status, 'awaiting_approval'),
      { key: tools, value: frozen.tool === undefined ? [] : [frozen.tool] },
      { key: expiresAt, value: new Date(frozen.expiresAt) },
    ]),
  });
}

async function start(
  client: Client,
  workflowId: string,
  workflowType: string,
  options: Pick<WorkflowStartOptions, 'taskQueue' | 'memo' | 'typedSearchAttributes'> & { args: [unknown] },
): Promise<StartRunResult> {
  try {
    const { firstExecutionRunId: root } = await client.workflow.start(workflowType, {
      ...options,
      workflowId,
      // a closed run of that id is the answer to a repeated request too
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
    });
    return { started: true, root };
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    const { memo } = await client.workflow.getHandle(workflowId).describe();
    const stored: unknown = memo?.[memoFields.request];
    return { started: false, ...(typeof stored === 'string' ? { requestHash: stored } : {}) };
  }
}

/** 0 when nothing is kept of it. */
async function lengthOf(handle: WorkflowHandle): Promise<number> {
  try {
    return (await handle.describe()).historyLength;
  } catch (error) {
    if (isNotKept(error)) return 0;
    throw error;
  }
}

/** Runs of our own types, and of the user's that have asked at least once: the first gate sets the attribute. */
const ofCountersign =
  `(WorkflowType IN (${Object.values(workflowTypes)
    .map((type) => `'${type}'`)
    .join(', ')}) ` + `OR ${searchAttributes.status} IS NOT NULL)`;

function runsQuery({ status, spec, since }: ListRunsQuery): string {
  // of a run that continued as new, the execution that goes on is the run
  const parts = [ofCountersign, `ExecutionStatus != 'ContinuedAsNew'`];
  if (status !== undefined) parts.push(statusQuery(status));
  if (spec !== undefined) parts.push(equals(searchAttributes.spec, spec));
  if (since !== undefined) parts.push(`StartTime >= '${new Date(since).toISOString()}'`);
  return parts.join(' AND ');
}

/** The attribute is written at gates only; how a run closed is Temporal's own status. */
function statusQuery(status: string): string {
  const attribute = searchAttributes.status;
  switch (status) {
    case 'running':
      return `ExecutionStatus = 'Running' AND (${attribute} IS NULL OR ${attribute} = 'running')`;
    case 'awaiting_approval':
    case 'in_doubt':
      return `ExecutionStatus = 'Running' AND ${equals(attribute, status)}`;
    case 'completed':
      return `ExecutionStatus = 'Completed' AND (${attribute} IS NULL OR ${attribute} NOT IN ('rejected', 'cancelled'))`;
    case 'rejected':
      return `ExecutionStatus = 'Completed' AND ${equals(attribute, status)}`;
    case 'cancelled':
      // a withdrawal ends a run as completed: only Temporal's own cancellation closes it as cancelled
      return `(ExecutionStatus = 'Canceled' OR (ExecutionStatus = 'Completed' AND ${equals(attribute, status)}))`;
    case 'failed':
      return `ExecutionStatus IN ('Failed', 'TimedOut', 'Terminated')`;
    default:
      return equals(attribute, status);
  }
}

/** A condition of Temporal's list filter, whose strings take backslash escapes. */
function equals(name: string, value: string): string {
  return `${name} = '${value.replace(/[\\']/g, '\\$&')}'`;
}

function keyword(name: string, value: string): SearchAttributePair {
  return {
    key: defineSearchAttributeKey(name, SearchAttributeType.KEYWORD),
    value: value.slice(0, keywordLimit),
  };
}

/** A query without a poller fails at once, or waits out its deadline. */
function isNoWorker(error: unknown): boolean {
  const code = grpcCode(error);
  return code === grpc.deadlineExceeded || code === grpc.cancelled || code === grpc.failedPrecondition;
}

function unavailable(error: unknown): TemporalUnavailableError | undefined {
  if (error instanceof TemporalUnavailableError) return error;
  const code = grpcCode(error);
  if (code === undefined && !(error instanceof ServiceError)) return undefined;
  return new TemporalUnavailableError('Temporal did not answer', { cause: error });
}
