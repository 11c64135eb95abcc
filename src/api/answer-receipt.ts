// The answer to a decision that a worker judged: from its receipt, and where the receipt cannot say it, such
// as the hash of a new payload, from the history.
import { TemporalUnavailableError } from '../countersign-client.ts';
import { stateAfter } from '../core/gate-state.ts';
import type { Receipt, Settlement } from '../core/verdict.ts';
import { actorOf, type Principal } from './auth.ts';
import { accepted, isOwnRepeat, lost, refused, type Answered } from './decision-answer.ts';
import type { DecisionOrder, OrderKind } from './decision-order.ts';
import type { ApiDeps } from './deps.ts';
import type { GatePlace } from './find-gate.ts';
import { acceptedOf } from './gate-record.ts';
import { placeOf } from './late-decision.ts';
import { iso } from './run-view.ts';

type Order = DecisionOrder & { decisionId: string };
type AnswerDeps = Pick<ApiDeps, 'client' | 'baseUrl' | 'now'>;

/** They leave more in the history than a settlement. */
const readsBack: readonly OrderKind[] = ['edit', 'amend', 'comment'];

/** @throws ApiProblem for a refusal */
export async function answerReceipt(
  deps: AnswerDeps,
  principal: Principal,
  order: Order,
  gate: GatePlace,
  receipt: Receipt,
): Promise<Answered> {
  const { verdict, code = 'check_failed', message, settlement } = receipt;
  if (verdict === 'accepted') return answerAccepted(deps, principal, order, gate, receipt);
  const place = placeOf(deps, gate);
  if (code !== 'already_resolved' || settlement === undefined) {
    throw refused(place, code, message, order.decisionId);
  }
  const { state, by, decisionId: winningId } = settlement;
  const at = iso(settlement.at);
  if (
    by !== undefined &&
    winningId !== undefined &&
    (await isOwn(deps, principal, order, gate, settlement))
  ) {
    return accepted(place, { decisionId: winningId, state, by, at });
  }
  const id = winningId === undefined ? {} : { decisionId: winningId };
  throw lost(place, { state, ...(by === undefined ? {} : { by }), ...id, at });
}

async function answerAccepted(
  deps: AnswerDeps,
  principal: Principal,
  { kind, key, decisionId }: Order,
  gate: GatePlace,
  { settlement, gate: gateState }: Receipt,
): Promise<Answered> {
  const place = placeOf(deps, gate);
  const own = settlement?.decisionId === decisionId ? settlement : undefined;
  const recorded = readsBack.includes(kind)
    ? acceptedOf(await deps.client.readTrail(gate.run.runId), key, decisionId)
    : undefined;
  const payloadHash = recorded?.payloadHash;
  return accepted(payloadHash === undefined ? place : { ...place, payloadHash }, {
    decisionId,
    state: gateState ?? stateAfter(kind) ?? 'pending',
    by: own?.by ?? recorded?.by ?? { ...actorOf(principal), verified: true },
    at: own === undefined ? (recorded?.at ?? iso(deps.now())) : iso(own.at),
  });
}

/** The settlement does not say what was decided, only how it ended: an edit approves too. */
async function isOwn(
  { client, baseUrl }: AnswerDeps,
  principal: Principal,
  order: Order,
  gate: GatePlace,
  { by, decisionId = '' }: Settlement,
): Promise<boolean> {
  if (by?.verified !== true || by.id !== principal.id) return false;
  const place = placeOf({ client, ...(baseUrl === undefined ? {} : { baseUrl }) }, gate);
  try {
    const winner = await client.findDecision(gate.run.runId, decisionId);
    if (winner === undefined) return false;
    return isOwnRepeat({ ...order, by: principal.id }, { by, decision: winner.decision }, place.payloadHash);
  } catch (error) {
    // it is settled either way; that is what is said then
    if (error instanceof TemporalUnavailableError) return false;
    throw error;
  }
}
