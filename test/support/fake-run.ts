// What the fake client keeps of a run, and what it can be told.
import type { ApprovalMemo, GatePhase } from '../../src/core/case.ts';
import type { Decision } from '../../src/core/decision.ts';
import type { Json } from '../../src/core/json.ts';
import type { TrailFact } from '../../src/core/trail-fact.ts';
import type { Actor, Receipt, RefusalCode, Settlement } from '../../src/core/verdict.ts';
import type { CloseStatus, CountersignClient, Retry } from '../../src/countersign-client.ts';

export interface FakeGate {
  key: string;
  position: string;
  state: ApprovalMemo['state'];
  memo: ApprovalMemo;
  phase: GatePhase;
  tool: string;
  arguments: Json;
  requestedBy?: Actor;
  hash: string;
  expiresAt: number;
  /** false: settled so long ago that the memo forgot it */
  inMemo: boolean;
  settlement?: Settlement;
  winner?: Decision;
  /** accepted decisions that settled nothing */
  accepted?: Decision[];
}

export interface FakeRun {
  events: number;
  runId: string;
  root: string;
  workflowType?: string;
  spec?: string;
  requestHash?: string;
  createdAt: number;
  closeStatus?: CloseStatus;
  status?: string;
  gates: Map<string, FakeGate>;
  facts: TrailFact[];
  receipts: Map<string, Receipt>;
  /** every signal in history */
  signals: Decision[];
  signalled: Map<Decision, { eventId: number; at: string }>;
  /** in history, not seen by a worker */
  unseen: Decision[];
  /** false: the index has not heard of it yet */
  isListed?: boolean;
  /** a cancellation is in history, not seen by a worker */
  cancelWish?: boolean;
  /** effects that are tried again */
  retries?: Retry[];
}

/** What may be told to the fake, and what it has seen. */
export interface FakeControl {
  workers: 'up' | 'down';
  temporal: 'up' | 'down';
  /** the signal is recorded, its answer is lost */
  loseAnswers: boolean;
  /** the worker refuses what it would accept */
  refuseWith?: RefusalCode;
  /** queries answer `pending` this many times more */
  pendingAnswers: number;
  /** awaited by each query before it answers */
  queryPause?: () => Promise<void>;
  /** called by describeRun when it has read, to let something happen before its caller goes on */
  afterDescribe?: () => void;
  /** awaited by startRun and startApproval before they start */
  startPause?: () => Promise<void>;
  calls: Record<keyof CountersignClient, number>;
  queriesAtOnce: number;
}

/** Of the run's next event. */
export function nextEventId(run: FakeRun): number {
  run.events += 1;
  return run.events;
}
