// What a decision is answered, by verdict: the same body or problem, whether it comes from a receipt of the
// worker or from the trail.
import type { Decision } from '../core/decision.ts';
import { errorOfRefusal } from '../core/errors.ts';
import type { DecidedBy, GateState, RefusalCode } from '../core/verdict.ts';
import { bringsTheSame, type OrderPayload } from './decision-order.ts';
import { decisionPath, runLinks } from './links.ts';
import { ApiProblem, approvalNotFound } from './problem.ts';
import type { DecisionAnswer } from './schemas.ts';

export interface Answered {
  /** 202: recorded, not judged yet */
  status: 200 | 202;
  body: DecisionAnswer;
}

/** The gate that was decided on. */
export interface AnswerPlace {
  key: string;
  runId: string;
  /** the gate's current hash */
  payloadHash?: string;
  baseUrl?: string;
}

/** What settled the gate. */
export interface Winner {
  state: GateState;
  by?: Partial<DecidedBy> & { id: string };
  decision?: string;
  decisionId?: string;
  /** ISO 8601 */
  at: string;
}

export function accepted(
  place: AnswerPlace,
  verdict: { decisionId: string; state: GateState; by: DecidedBy; at: string },
): Answered {
  return { status: 200, body: answerBody(place, { ...verdict, verdict: 'accepted' }) };
}

/** In history, and no worker has judged it yet: recorded is not accepted. */
export function recorded(place: AnswerPlace, decision: Decision, at: string): Answered {
  const { decisionId, by } = decision;
  const body = answerBody(place, { decisionId, verdict: 'pending', state: 'pending', by, at });
  const location = `${place.baseUrl ?? ''}${decisionPath(place.key, decisionId)}`;
  return { status: 202, body: { ...body, links: { ...body.links, decision: location } } };
}

/** Is this the winner's own wish again? An unsigned winner may be anyone, so it is nobody's own. */
export function isOwnRepeat(
  order: OrderPayload & { by: string; kind: string; payloadHash?: string | undefined },
  winner: { by?: DecidedBy; decision?: Decision },
  currentHash: string | undefined,
): boolean {
  const { by, decision } = winner;
  return (
    by?.verified === true &&
    by.id === order.by &&
    decision?.decision === order.kind &&
    bringsTheSame(order, decision) &&
    // an edit was made on the payload before it
    (order.payloadHash === undefined || order.payloadHash === (decision.payloadHash ?? currentHash))
  );
}

export function refused(
  place: AnswerPlace,
  code: RefusalCode,
  message: string | undefined,
  decisionId: string,
): ApiProblem {
  const error = errorOfRefusal(code);
  if (error === 'approval_not_found') return approvalNotFound(place.key);
  if (error === 'payload_changed') return payloadChanged(place, message, decisionId);
  return new ApiProblem(error, message ?? `refused: ${code}`, {
    key: place.key,
    runId: place.runId,
    decisionId,
  });
}

export function payloadChanged(
  { key, runId, payloadHash }: AnswerPlace,
  message: string | undefined,
  decisionId: string,
): ApiProblem {
  const detail = message ?? `the payload is ${payloadHash ?? 'another one'} now; nothing was decided`;
  return new ApiProblem(
    'payload_changed',
    detail,
    { key, runId, decisionId, currentHash: payloadHash },
    payloadHash === undefined ? {} : { etag: `"${payloadHash}"` },
  );
}

/** Names who, what and when; an expired approval is past deciding, and nobody won it. */
export function lost({ key, runId }: AnswerPlace, winner: Winner): ApiProblem {
  if (winner.state === 'expired') return approvalNotFound(key);
  const { by, state, at } = winner;
  const who = by === undefined ? '' : ` by ${by.name === undefined ? by.id : `${by.name} (${by.id})`}`;
  const doubt = by?.verified === false ? ' (unverified)' : '';
  return new ApiProblem('already_resolved', `already ${state}${who}${doubt} at ${at}`, {
    key,
    runId,
    state,
    winner,
  });
}

export function notOpen(place: { key: string; runId: string; position: string }): ApiProblem {
  const { key, runId, position } = place;
  return new ApiProblem('not_open', `the run has not asked at "${position}"`, { key, runId });
}

export function idempotencyKeyReused(key: string): ApiProblem {
  return new ApiProblem(
    'idempotency_key_reused',
    'this Idempotency-Key was used for another decision on this approval',
    { key },
  );
}

function answerBody(
  { key, runId, payloadHash, baseUrl }: AnswerPlace,
  {
    decisionId,
    verdict,
    state,
    by,
    at,
  }: Pick<DecisionAnswer, 'decisionId' | 'verdict' | 'state' | 'by' | 'at'>,
): DecisionAnswer {
  return {
    key,
    decisionId,
    verdict,
    state,
    runId,
    ...(payloadHash === undefined ? {} : { payloadHash }),
    by,
    at,
    links: runLinks(baseUrl, runId),
  };
}
