// Sandbox-safe. What a gate answers to a decision.

/** Why a decision was refused (DESIGN §6). The gate stays as it was. */
export type RefusalCode =
  | 'malformed'
  | 'unknown_key'
  | 'not_open'
  | 'payload_changed'
  | 'spec_changed'
  | 'unproven'
  | 'not_allowed'
  | 'self_approval'
  | 'invalid_edit'
  | 'already_resolved'
  | 'expired'
  | 'too_large'
  | 'check_failed';

/** How a gate stands. Everything but `pending` is final. */
export type GateState =
  'pending' | 'approved' | 'rejected' | 'expired' | 'withdrawn' | 'responded' | 'cancelled';

export interface Actor {
  id: string;
  name?: string;
  roles?: string[];
}

/** Who a decision counts as made by. `verified` is false for an unsigned, hand-sent signal. */
export interface DecidedBy extends Actor {
  verified: boolean;
}

/** What the query `receipts` and the memo tell of a settled gate. */
export interface Settlement {
  state: Exclude<GateState, 'pending'>;
  /** absent when the clock or a cancellation settled it */
  by?: DecidedBy;
  decisionId?: string;
  /** Milliseconds since the epoch, workflow time. */
  at: number;
}

/** The answer to one decision, as the query `receipts` gives it. `pending`: recorded, not judged yet. */
export interface Receipt {
  decisionId: string;
  /** undefined when the decision named no gate of this run */
  position?: string;
  decision: string;
  payloadHash?: string;
  verdict: 'pending' | 'accepted' | 'refused';
  code?: RefusalCode;
  /** human words for `code`, naming the values */
  message?: string;
  gate?: GateState;
  /** the winner, when the gate is settled */
  settlement?: Settlement;
}
