// What a trail says of one gate. Facts that a workflow reset cut off do not count: the gate is asked again.
import type { TrailFact } from '../core/trail-fact.ts';
import type { Decision } from '../core/decision.ts';
import { stateAfter } from '../core/gate-state.ts';
import type { Json } from '../core/json.ts';
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
  /** with the latest payload: the amended, or the edited one */
  requested: FactOf<'approval_requested'>;
  /** payloads that an amendment or an edit replaced, the oldest first */
  earlier: EarlierPayload[];
  outcome?: GateOutcome;
}

export interface EarlierPayload {
  arguments?: Json;
  payloadHash: string;
}

/** A decision that was accepted, whether it settled the gate or not. */
export interface AcceptedDecision {
  decision: Decision;
  by: DecidedBy;
  /** ISO 8601 */
  at: string;
  /** with edit and amend: the hash of the new payload */
  payloadHash?: string;
}

export interface RefusedDecision {
  /** of the verdict's own event */
  temporalRunId: string;
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
    if (fact.type === 'approval_requested' && fact.key === key) record = { requested: fact, earlier: [] };
    if (record === undefined || !('key' in fact) || fact.key !== key) continue;
    if (fact.type === 'approval_amended' || fact.type === 'approval_edited') replacePayload(record, fact);
    const outcome = outcomeOf(fact);
    if (outcome !== undefined) record.outcome ??= outcome;
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
    found = {
      temporalRunId: fact.temporalRunId,
      eventId: fact.eventId,
      code,
      decision,
      by,
      ...(message === undefined ? {} : { message }),
    };
  }
  return found;
}

/** The decision with that id that the gate accepted; undefined when it accepted none. */
export function acceptedOf(
  trail: readonly TrailFact[],
  key: string,
  decisionId: string,
): AcceptedDecision | undefined {
  for (const fact of trail) {
    if (fact.superseded === true || !isAccepted(fact) || fact.key !== key) continue;
    const { decision, by, at } = fact;
    if (decision.decisionId !== decisionId) continue;
    return { decision, by, at, ...('payloadHash' in fact ? { payloadHash: fact.payloadHash } : {}) };
  }
  return undefined;
}

function replacePayload(record: GateRecord, fact: FactOf<'approval_amended' | 'approval_edited'>): void {
  const { arguments: args, payloadHash } = record.requested;
  record.earlier.push({ ...(args === undefined ? {} : { arguments: args }), payloadHash });
  record.requested = { ...record.requested, arguments: fact.arguments, payloadHash: fact.payloadHash };
}

type AcceptedFact = FactOf<
  | 'approval_granted'
  | 'approval_rejected'
  | 'approval_edited'
  | 'approval_amended'
  | 'approval_withdrawn'
  | 'approval_responded'
  | 'approval_commented'
>;

function isAccepted(fact: TrailFact): fact is AcceptedFact & TrailFact {
  return fact.type.startsWith('approval_') && 'decision' in fact;
}

function outcomeOf(fact: TrailFact): GateOutcome | undefined {
  const { at } = fact;
  if (fact.type === 'approval_expired') return { state: 'expired', at };
  if (fact.type === 'approval_cancelled') return { state: 'cancelled', at };
  if (!isAccepted(fact)) return undefined;
  const state = stateAfter(fact.decision.decision);
  return state === undefined ? undefined : { state, at, decision: fact.decision, by: fact.by };
}

function isEnd(fact: TrailFact): boolean {
  if (fact.superseded === true) return false;
  return fact.type === 'run_finished' || fact.type === 'run_cancelled' || fact.type === 'run_terminated';
}
