// Decisions on a gate that is not pending (any more), answered from memo and history. They are not
// signalled: nothing could come of it, and a run takes only so many signals.
import type { GateState } from '../core/verdict.ts';
import { isOwnRepeat, accepted, idempotencyKeyReused, lost, notOpen, refused } from './decision-answer.ts';
import type { AnswerPlace, Answered } from './decision-answer.ts';
import type { Principal } from './auth.ts';
import { stateAfter } from '../core/gate-state.ts';
import { settledAt } from './approval-view.ts';
import type { DecisionOrder } from './decision-order.ts';
import { hasContentOf } from './decision-order.ts';
import type { ApiDeps } from './deps.ts';
import type { GatePlace } from './find-gate.ts';
import {
  acceptedOf,
  gateOf,
  refusalOf,
  type GateOutcome,
  type GateRecord,
  type RefusedDecision,
  type AcceptedDecision,
} from './gate-record.ts';
import { approvalNotFound } from './problem.ts';
import { iso } from './run-view.ts';

type LateDeps = Pick<ApiDeps, 'client' | 'baseUrl'>;

/** @throws ApiProblem for all but the same person's same decision */
export async function answerLate(
  deps: LateDeps,
  principal: Principal,
  order: DecisionOrder & { decisionId: string },
  gate: GatePlace,
): Promise<Answered> {
  const { key, run, position, entry } = gate;
  const memo = entry?.memo;
  const settled = memo !== undefined && memo.state !== 'pending';
  // the memo is enough for somebody else's decision, so that a crowd of late ones costs no history reads
  const mayBeKnown = memo?.by === principal.id || stateAfter(order.kind) === undefined;
  if (settled && !mayBeKnown && order.idempotencyKey === undefined) {
    const by = memo.by === undefined ? {} : { by: { id: memo.by } };
    const id = memo.decisionId === undefined ? {} : { decisionId: memo.decisionId };
    throw lost(placeOf(deps, gate), { state: memo.state, ...by, ...id, at: iso(memo.at ?? 0) });
  }
  const trail = await deps.client.readTrail(run.runId);
  const record = gateOf(trail, key);
  if (record?.outcome === undefined) {
    if (run.closeStatus === undefined) throw notOpen({ key, runId: run.runId, position });
    throw approvalNotFound(key);
  }
  const { outcome } = record;
  const taken = acceptedOf(trail, key, order.decisionId);
  const earlier = taken?.decision ?? refusalOf(trail, key, order.decisionId)?.decision;
  if (earlier !== undefined && !hasContentOf(order, earlier)) throw idempotencyKeyReused(key);
  const place = placeOf(deps, gate, record);
  const own = { ...order, by: principal.id };
  if (isOwnRepeat(own, outcome, record.requested.payloadHash)) return repeated(place, outcome, gate);
  if (taken !== undefined) return remembered(place, taken, outcome.state);
  throw lost(place, winnerOf(outcome, gate));
}

/** The answer to a decision that the trail says was judged. */
export function answerRefused(
  deps: LateDeps,
  gate: GatePlace,
  record: GateRecord | undefined,
  { code, message, decision, by }: RefusedDecision,
): Answered {
  const place = placeOf(deps, gate, record);
  const outcome = record?.outcome;
  if (code !== 'already_resolved' || outcome === undefined) {
    throw refused(place, code, message, decision.decisionId);
  }
  const own = { ...decision, by: by.id, kind: decision.decision };
  if (by.verified && isOwnRepeat(own, outcome, place.payloadHash)) return repeated(place, outcome, gate);
  throw lost(place, winnerOf(outcome, gate));
}

/** The outcome's own decision, answered again as it was answered first. */
export function repeated(place: AnswerPlace, outcome: GateOutcome, { entry }: GatePlace): Answered {
  const { decision, by } = outcome;
  if (decision === undefined || by === undefined) throw lost(place, { state: outcome.state, at: outcome.at });
  const { decisionId } = decision;
  return accepted(place, { decisionId, state: outcome.state, by, at: settledAt(outcome, entry?.memo) });
}

/** A decision that was accepted and settled nothing, answered again as it was answered first. */
export function remembered(
  place: AnswerPlace,
  { decision, by, at, payloadHash }: AcceptedDecision,
  state: GateState,
): Answered {
  const { decisionId } = decision;
  const now = payloadHash === undefined ? place : { ...place, payloadHash };
  return accepted(now, { decisionId, state, by, at });
}

export function winnerOf(outcome: GateOutcome, { entry }: GatePlace) {
  const { state, by, decision } = outcome;
  return {
    state,
    ...(by === undefined ? {} : { by }),
    ...(decision === undefined ? {} : { decision: decision.decision, decisionId: decision.decisionId }),
    at: settledAt(outcome, entry?.memo),
  };
}

export function placeOf(
  { baseUrl }: LateDeps,
  { key, run, entry }: GatePlace,
  record?: GateRecord,
): AnswerPlace {
  const payloadHash = record?.requested.payloadHash ?? entry?.memo.hash;
  return {
    key,
    runId: run.runId,
    ...(payloadHash === undefined ? {} : { payloadHash }),
    ...(baseUrl === undefined ? {} : { baseUrl }),
  };
}
