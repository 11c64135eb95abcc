// The contract between those who start, list, read and decide (API, tests) and Temporal. `client.ts` is
// the real one; tests of the API alone use a fake that keeps the same rules.
import type { ApprovalMemo, CaseRecord, SpecRef } from './core/case.ts';
import type { Decision } from './core/decision.ts';
import type { Json } from './core/json.ts';
import type { Spec } from './core/spec/spec.ts';
import type { KnownFact, TrailFact, Trigger } from './core/trail-fact.ts';
import type { Actor, Receipt } from './core/verdict.ts';

/** Temporal could not be reached, or its answer was lost: what was asked may or may not have happened. */
export class TemporalUnavailableError extends Error {
  override readonly name = 'TemporalUnavailableError';
}

/** No worker answered a query within its time. */
export class NoWorkerError extends Error {
  override readonly name = 'NoWorkerError';
}

export interface StartRunRequest {
  /** the workflow id; at most 255 UTF-8 bytes */
  runId: string;
  spec: Spec;
  /** absent for an inline spec: there is no current one to compare with */
  specRef?: SpecRef;
  input: Json;
  trigger: Trigger;
  startedBy: Actor;
  /** hash of the whole request, kept in the memo to tell a repeated start from another one */
  requestHash: string;
}

export interface StartApprovalRequest {
  runId: string;
  case: Omit<CaseRecord, 'key' | 'root'>;
  trigger: Trigger;
  startedBy: Actor;
  requestHash: string;
}

/** `started: false`: a run of this id exists already; `requestHash` is the one it was started with. */
export type StartRunResult = { started: true; root: string } | { started: false; requestHash?: string };

export type CloseStatus = 'completed' | 'failed' | 'cancelled' | 'terminated' | 'timed_out';

/** An effect that is tried again after an attempt that failed. */
export interface Retry {
  position: string;
  /** that runs now or comes next, from 2 */
  attempt: number;
  /** of the attempt before */
  lastError: string;
  /** milliseconds since the epoch; absent while the attempt runs */
  nextAttemptAt?: number;
}

export interface ApprovalEntry {
  key: string;
  position: string;
  memo: ApprovalMemo;
}

/** What Temporal knows of a run without any worker: from mutable state (`describe`) or the index (`list`). */
export interface RunDescription {
  runId: string;
  temporalRunId: string;
  /** undefined in a list row of a store that does not give it; always there from describeRun */
  root: string;
  workflowType: string;
  /** undefined while open */
  closeStatus?: CloseStatus;
  /** the search attribute CountersignStatus */
  status?: string;
  spec?: string;
  requestHash?: string;
  /** Milliseconds since the epoch. */
  createdAt: number;
  closedAt?: number;
  /**
   * A workflow task runs now. Until it ends Temporal keeps new signals beside the history: safe, and not
   * to be read. Only from describeRun.
   */
  taskRunning?: true;
  /** Effects that are tried again. Only from describeRun. */
  retries?: Retry[];
  /** Events so far: has it changed, there may be new facts. Exact from describeRun; a list may have 0 while open. */
  historyLength: number;
  approvals: ApprovalEntry[];
}

export interface ListRunsQuery {
  status?: string;
  spec?: string;
  /** started at or after, milliseconds since the epoch */
  since?: number;
  pageSize: number;
  cursor?: string;
}

export interface RunPage {
  runs: RunDescription[];
  cursor?: string;
}

/** A decision as it stands in history. */
export interface RecordedSignal {
  decision: Decision;
  /** the execution that it is in: event ids count from 1 in each */
  temporalRunId: string;
  eventId: number;
  /** the event's time, ISO 8601 in UTC */
  at: string;
}

/**
 * Every method throws TemporalUnavailableError where Temporal cannot be reached or does not answer in
 * time; nothing else is thrown for what a caller can cause.
 */
export interface CountersignClient {
  startRun(request: StartRunRequest): Promise<StartRunResult>;
  startApproval(request: StartApprovalRequest): Promise<StartRunResult>;
  /** True when Temporal has the request in history; false: no open run of that id. */
  cancelRun(runId: string): Promise<boolean>;
  /** The current execution of that workflow id, whatever its type; undefined: none (any more). */
  describeRun(runId: string): Promise<RunDescription | undefined>;
  listRuns(query: ListRunsQuery): Promise<RunPage>;
  /** Open runs with at least one pending approval, newest run first. */
  listAwaiting(query: { spec?: string; tool?: string; pageSize: number; cursor?: string }): Promise<RunPage>;
  /**
   * Executions that are open or were closed at or after `closedSince` (milliseconds), each a row of its own: a
   * run that continued as new or was reset has several. Lags behind by a second or so.
   */
  listChanged(query: { closedSince: number; pageSize: number; cursor?: string }): Promise<RunPage>;
  /**
   * The facts that one execution added to its chain, and the length of its history; undefined when that is
   * not above `longerThan`, or nothing is kept of it.
   */
  readFacts(
    execution: Pick<RunDescription, 'runId' | 'temporalRunId'>,
    longerThan: number,
  ): Promise<{ historyLength: number; facts: KnownFact[] } | undefined>;
  /** The facts of the whole chain so far; empty when there is no such run. */
  readTrail(runId: string): Promise<TrailFact[]>;
  /** True only when Temporal has the signal in history; false: no open run of that id. */
  sendDecision(runId: string, decision: Decision): Promise<boolean>;
  /** Receipts of those ids that the run knows. @throws NoWorkerError */
  queryReceipts(runId: string, decisionIds: readonly string[], timeoutMs: number): Promise<Receipt[]>;
  /** The last recorded signal with that decision id, judged or not. */
  findDecision(runId: string, decisionId: string): Promise<RecordedSignal | undefined>;
  /** Resolves when the namespace answers. */
  checkHealth(): Promise<void>;
}
