// How a decision goes to its gate (DESIGN §7): describe → compare hash and state → sign → signal → receipt.
// Nothing answers 2xx unless Temporal has the signal in history, and 200 only what the gate accepted.
import { decisionLimitOf, type Decision } from '../core/decision.ts';
import { answerReceipt } from './answer-receipt.ts';
import { actorOf, mayDecide, type Principal } from './auth.ts';
import { createBoundedMap } from './bounded-map.ts';
import { idempotencyKeyReused, payloadChanged, recorded } from './decision-answer.ts';
import type { Answered } from './decision-answer.ts';
import { checkOrder, contentOf, decisionIdOf, hasContentOf, type DecisionOrder } from './decision-order.ts';
import { defaultReceiptBudgetMs, type ApiDeps } from './deps.ts';
import { findGate, type GatePlace } from './find-gate.ts';
import { answerLate, placeOf } from './late-decision.ts';
import { lookUpDecision } from './look-up-decision.ts';
import { ApiProblem, approvalNotFound, temporalUnavailable } from './problem.ts';
import { createReceiptDesk } from './receipts.ts';
import { iso } from './run-view.ts';

export interface Decider {
  /** @throws ApiProblem for every refusal */
  decide(principal: Principal, order: DecisionOrder): Promise<Answered>;
  /** The gate was settled by an answer of this process so lately that Temporal's lists may not know it. */
  settledLately(key: string): boolean;
  /** What `decide` would have answered by now. @throws ApiProblem */
  lookUp(principal: Principal, key: string, decisionId: string): Promise<Answered>;
}

/** A refusal that can be told beforehand is still signalled, as a fact of the run; but not without end. */
const refusedSignalsPerGate = 50;

/**
 * How long a list may show a gate as pending after its answer: until the next workflow task and the index have
 * it. Not for long, since a workflow reset opens the gate again under the same key.
 */
const listLagMs = 5_000;

/** Entries kept in memory, a few hundred bytes each. */
const remembered = 10_000;

export function createDecider(deps: ApiDeps): Decider {
  const { client } = deps;
  const desk = createReceiptDesk(client, deps.receiptBudgetMs ?? defaultReceiptBudgetMs, (error) =>
    deps.log({ level: 'error', message: 'the receipts of a run could not be read', error: String(error) }),
  );
  const inFlight = new Map<string, { content: string; answer: Promise<Answered> }>();
  const sent = createBoundedMap<string>(remembered);
  const refusedSignals = createBoundedMap<number>(remembered);
  const settled = createBoundedMap<number>(remembered);

  async function judge(
    principal: Principal,
    order: DecisionOrder & { decisionId: string },
  ): Promise<Answered> {
    const gate = await findGate(client, principal, order.key);
    if (!mayDecide(principal, gate.run)) {
      throw new ApiProblem('not_allowed', `${principal.id} may see this approval, but not decide it`);
    }
    if (!isOpen(gate)) return answerLate(deps, principal, order, gate);
    const foreseen = foresee(order, gate);
    if (foreseen !== undefined && !countRefusal(principal, order, foreseen)) throw foreseen;

    await checkReuse(principal, order, gate);
    const decision = await signed(principal, order, gate);
    if (!(await client.sendDecision(gate.run.runId, decision))) return answerClosed(principal, order);
    sent.set(order.decisionId, contentOf(order));
    const receipt = await desk.waitFor(
      gate.run.runId,
      order.decisionId,
      (candidate) => candidate.decision === order.kind && candidate.payloadHash === order.payloadHash,
    );
    if (receipt !== undefined) {
      const answer = await answerReceipt(deps, principal, order, gate, receipt);
      if (answer.body.state !== 'pending') settled.set(order.key, performance.now());
      return answer;
    }
    if (foreseen?.code === 'payload_changed') throw foreseen;
    return recorded(placeOf(deps, gate), decision, iso(deps.now()));
  }

  /** An Idempotency-Key holds over processes and restarts: what was first sent under it is in history. */
  async function checkReuse(
    principal: Principal,
    order: DecisionOrder & { decisionId: string },
    { run }: GatePlace,
  ): Promise<void> {
    if (order.idempotencyKey === undefined || sent.get(order.decisionId) !== undefined) return;
    const first = await client.findDecision(run.runId, order.decisionId);
    if (first === undefined || first.decision.by.id !== principal.id) return;
    if (!hasContentOf(order, first.decision)) throw idempotencyKeyReused(order.key);
  }

  /** What the memo already says will be refused; only the gate's own answer is final. */
  function foresee(order: DecisionOrder & { decisionId: string }, gate: GatePlace): ApiProblem | undefined {
    const memo = gate.entry?.memo;
    if (order.payloadHash !== undefined && order.payloadHash !== memo?.hash) {
      return payloadChanged(placeOf(deps, gate), undefined, order.decisionId);
    }
    const late = memo?.expiresAt !== undefined && deps.now() >= memo.expiresAt;
    return late ? approvalNotFound(order.key) : undefined;
  }

  function countRefusal(principal: Principal, { key }: DecisionOrder, { code }: ApiProblem): boolean {
    const count = refusedSignals.get(key) ?? 0;
    if (count >= refusedSignalsPerGate) {
      deps.log({
        level: 'warn',
        message: 'a decision was not signalled any more',
        key,
        by: principal.id,
        code,
      });
      return false;
    }
    refusedSignals.set(key, count + 1);
    return true;
  }

  async function signed(
    principal: Principal,
    order: DecisionOrder & { decisionId: string },
    { run }: GatePlace,
  ): Promise<Decision> {
    const decision: Decision = {
      v: 1,
      key: order.key,
      root: run.root,
      decision: order.kind,
      ...(order.payloadHash === undefined ? {} : { payloadHash: order.payloadHash }),
      decisionId: order.decisionId,
      by: actorOf(principal),
      via: order.via,
      ...(order.reason === undefined ? {} : { reason: order.reason }),
      ...(order.arguments === undefined ? {} : { arguments: order.arguments }),
      ...(order.result === undefined ? {} : { result: order.result }),
    };
    const whole = { ...decision, proof: await deps.sign(decision, { workflowId: run.runId }) };
    const bytes = Buffer.byteLength(JSON.stringify(whole));
    const limitBytes = decisionLimitOf(order.kind);
    if (bytes <= limitBytes) return whole;
    const detail = `the signed decision has ${bytes} bytes, the limit is ${limitBytes}; shorten it`;
    throw new ApiProblem('too_large', detail, { limitBytes });
  }

  /** The run ended, or was replaced, between the look and the signal. */
  async function answerClosed(
    principal: Principal,
    order: DecisionOrder & { decisionId: string },
  ): Promise<Answered> {
    const gate = await findGate(client, principal, order.key);
    if (isOpen(gate)) throw temporalUnavailable();
    return answerLate(deps, principal, order, gate);
  }

  return {
    async decide(principal, order) {
      checkOrder(order);
      const decisionId = decisionIdOf(principal.id, order);
      const content = contentOf(order);
      const first = inFlight.get(decisionId);
      const known = first?.content ?? sent.get(decisionId) ?? content;
      if (known !== content) throw idempotencyKeyReused(order.key);
      if (first !== undefined) return first.answer;
      const answer = judge(principal, { ...order, decisionId }).finally(() => inFlight.delete(decisionId));
      inFlight.set(decisionId, { content, answer });
      return answer;
    },
    settledLately: (key) => performance.now() - (settled.get(key) ?? -Infinity) < listLagMs,
    lookUp: (principal, key, decisionId) => lookUpDecision(deps, principal, key, decisionId),
  };
}

function isOpen({ run, entry }: GatePlace): boolean {
  return run.closeStatus === undefined && entry?.memo.state === 'pending';
}
