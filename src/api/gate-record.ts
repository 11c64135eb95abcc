// What a trail says of one gate. Facts that a workflow reset cut off do not count: the gate is asked again.
import type { TrailFact } from '../core/trail-fact.ts';
import type { Decision } from '../core/decision.ts';
import type { DecidedBy, GateState, RefusalCode } from '../core/verdict.ts';

export type FactOf<Type extends TrailFact['type']> = Extract<TrailFact, { type: Type }>;

export interface GateOutcome {
  state: Exclude<GateState, 'pending'>;
  /** ISO 8601 */
  at: string;
  /** absent when the clock or a cancellation settled it */
  decision?: Decision;
  by?: DecidedBy;
}

export interface GateRecord {
  requested: FactOf<'approval_requested'>;
  outcome?: GateOutcome;
}

export interface RefusedDecision {
  /** of the verdict's own event */
  eventId: number;
  code: RefusalCode;
  message?: string;
  decision: Decision;
  by: DecidedBy;
}

/** The gate of that key; undefined when the run has not asked it (again, after a reset). */
export function gateOf(trail: readonly TrailFact[], key: string): GateRecord | undefined {
  let record: GateRecord | undefined;
  for (const fact of trail) {
    if (fact.superseded === true) continue;
    if (fact.type === 'approval_requested' && fact.key === key) record = { requested: fact };
    const outcome = record === undefined ? undefined : outcomeIn(fact, key);
    if (record !== undefined && outcome !== undefined) record.outcome ??= outcome;
  }
  if (record === undefined || record.outcome !== undefined) return record;
  const end = trail.find(isEnd);
  // a run that ended without an answer never gets one
  return end === undefined ? record : { ...record, outcome: { state: 'cancelled', at: end.at } };
}

/** The last refusal of the decision with that id at that gate. */
export function refusalOf(
  trail: readonly TrailFact[],
  key: string,
  decisionId: string,
): RefusedDecision | undefined {
  let found: RefusedDecision | undefined;
  for (const fact of trail) {
    if (fact.type !== 'decision_refused' || fact.superseded === true) continue;
    const { decision, code, message } = fact;
    if (decision === undefined || decision.key !== key || decision.decisionId !== decisionId) continue;
    const by = fact.by ?? { ...decision.by, verified: false };
    found = { eventId: fact.eventId, code, decision, by, ...(message === undefined ? {} : { message }) };
  }
  return found;
}

/** Did this outcome come from a decision of that kind? */
export function stateOfKind(kind: string): GateState | undefined {
  if (kind === 'approve') return 'approved';
  return kind === 'reject' ? 'rejected' : undefined;
}

function outcomeIn(fact: TrailFact, key: string): GateOutcome | undefined {
  if (!('key' in fact) || fact.key !== key) return undefined;
  const { at } = fact;
  switch (fact.type) {
    case 'approval_granted':
      return { state: 'approved', at, decision: fact.decision, by: fact.by };
    case 'approval_rejected':
      return { state: 'rejected', at, decision: fact.decision, by: fact.by };
    case 'approval_expired':
      return { state: 'expired', at };
    case 'approval_cancelled':
      return { state: 'cancelled', at };
    default:
      return undefined;
  }
}

function isEnd(fact: TrailFact): boolean {
  if (fact.superseded === true) return false;
  return fact.type === 'run_finished' || fact.type === 'run_cancelled' || fact.type === 'run_terminated';
}
