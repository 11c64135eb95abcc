// Sandbox-safe, pure. How a gate stands, and what can be said of a decision without an activity: the
// signal handler and the trail decoder both use `judgeDelivery`, so a trail can derive what a run answered.
import { parseApprovalKey } from './approval-key.ts';
import { sameDecision, type Decision, type DecisionKind } from './decision.ts';
import type { GateState, RefusalCode, Settlement } from './verdict.ts';

export interface RunPlace {
  workflowId: string;
  root: string;
}

export interface GateView {
  key: string;
  position: string;
  state: GateState;
  /** once it is not pending */
  settlement?: Settlement;
  /** the decision that settled it */
  winner?: Decision;
  /** accepted decisions that settled nothing (comments, amendments), the newest last */
  accepted?: Decision[];
}

/** Comments and amendments that are remembered, to tell one sent again; more are not a conversation. */
export const acceptedKept = 50;

/** How a gate stands after a decision of that kind was accepted; undefined: as before, pending. */
export function stateAfter(kind: DecisionKind): Settlement['state'] | undefined {
  switch (kind) {
    case 'approve':
    case 'edit':
      return 'approved';
    case 'reject':
      return 'rejected';
    case 'withdraw':
      return 'withdrawn';
    case 'respond':
      return 'responded';
    default:
      return undefined;
  }
}

/**
 * `take`: the gate is open, the decision is to be admitted. `repeat`: it is the winner, sent again, and
 * has the same answer. `refuse`: it is refused, and the gate stays as it was.
 */
export type Delivery =
  { action: 'take' } | { action: 'repeat' } | { action: 'refuse'; code: RefusalCode; message: string };

/** Judges a decision when it is delivered, and again when it is taken from the queue. */
export function judgeDelivery(decision: Decision, place: RunPlace, gate: GateView | undefined): Delivery {
  if (gate === undefined || decision.root !== place.root) return judgeWithoutGate(decision, place);
  if (gate.accepted?.some((earlier) => sameDecision(earlier, decision)) === true) return { action: 'repeat' };
  if (gate.state === 'pending') return { action: 'take' };
  if (gate.winner !== undefined && sameDecision(gate.winner, decision)) return { action: 'repeat' };
  if (gate.state === 'expired') {
    return refuse('expired', `the approval expired at ${time(gate.settlement?.at)}`);
  }
  const { settlement } = gate;
  const who = settlement?.by === undefined ? '' : ` by ${settlement.by.id}`;
  return refuse('already_resolved', `already ${gate.state}${who} at ${time(settlement?.at)}`);
}

function judgeWithoutGate(decision: Decision, place: RunPlace): Delivery {
  const parts = parseApprovalKey(decision.key);
  if (parts === undefined) return refuse('unknown_key', 'the approval key does not parse');
  const ofThisRun =
    parts.workflowId === place.workflowId &&
    place.root.replaceAll('-', '').endsWith(parts.rootSuffix) &&
    decision.root === place.root;
  if (!ofThisRun) return refuse('unknown_key', 'the approval key names another run');
  return refuse('not_open', `no approval is open at "${parts.position}"`);
}

function refuse(code: RefusalCode, message: string): Delivery {
  return { action: 'refuse', code, message };
}

function time(at: number | undefined): string {
  return at === undefined ? 'an unknown time' : new Date(at).toISOString();
}
