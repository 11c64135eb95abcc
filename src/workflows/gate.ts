// Sandbox. The gate: a case is frozen and recorded, then the run waits for the first decision in history
// order that is accepted and ends it, or for the deadline. Decisions are taken one at a time.
import { CancellationScope, condition, isCancellation, sleep } from '@temporalio/workflow';
import type { CaseRecord, Grant, VerdictRecord } from '../core/case.ts';
import type { Decision } from '../core/decision.ts';
import { judgeDelivery, stateAfter } from '../core/gate-state.ts';
import type { DecidedBy, Settlement } from '../core/verdict.ts';
import { admit } from './admit.ts';
import { showAmended, showPending, showSettled } from './board.ts';
import { freeze, type Proposal } from './freeze.ts';
import { answer, currentRun, releasePosition, takePosition, type OpenGate, type Run } from './run.ts';

/** How a gate ended. `grant` is there when it was approved in a phase that runs something. */
export interface GateEnd {
  /** as it was decided on; after an edit, the edited one */
  case: CaseRecord;
  settlement: Settlement;
  decision?: Decision;
  by?: DecidedBy;
  grant?: Grant;
}

/** Comments and amendments that are remembered, to tell one sent again; more are not a conversation. */
const acceptedKept = 50;

/**
 * Opens a gate at `name` and waits for its end. Never throws for a refusal; it throws an
 * ApplicationFailure (core/failures.ts) when the proposal cannot be frozen: then nobody was asked.
 */
export async function openGate(
  name: string,
  proposal: Proposal,
  options: { isSystemName?: boolean } = {},
): Promise<GateEnd> {
  const run = currentRun();
  const position = takePosition(run, name, options.isSystemName);
  try {
    const frozen = await freeze(run, position, proposal);
    const gate: OpenGate = { key: frozen.key, position, state: 'pending', queue: [] };
    run.gates.set(frozen.key, gate);
    showPending(frozen);
    return await waitForEnd(run, gate, frozen, frozen.policy.ttlMs);
  } finally {
    releasePosition(run, name);
  }
}

/** Waits for the end of a gate that is open and shown. `ttlMs`: what is left of its time. */
export async function waitForEnd(
  run: Run,
  gate: OpenGate,
  frozen: CaseRecord,
  ttlMs: number,
): Promise<GateEnd> {
  let passedAt: number | undefined;
  const timer = new CancellationScope();
  const expiry = timer.run(async () => {
    await sleep(ttlMs, { summary: `expiry of ${gate.position} · ${gate.key}` });
    passedAt = Date.now();
  });
  expiry.catch(() => undefined); // cancelled with the gate's end; it has nothing else to say
  const end = await nextEnd(run, gate, frozen, () => passedAt);
  timer.cancel();
  gate.state = end.settlement.state;
  gate.settlement = end.settlement;
  if (end.decision !== undefined) gate.winner = end.decision;
  for (const { decision } of gate.queue.splice(0)) {
    answer(run, decision, gate, judgeDelivery(decision, run, gate));
  }
  showSettled(gate.position, end.settlement);
  return end;
}

/** Takes decisions one at a time until one ends the gate; those that wait come before a deadline or a cancel. */
async function nextEnd(
  run: Run,
  gate: OpenGate,
  asked: CaseRecord,
  deadlinePassedAt: () => number | undefined,
): Promise<GateEnd> {
  let frozen = asked;
  for (;;) {
    const queued = gate.queue.shift();
    if (queued !== undefined) {
      const delivery = judgeDelivery(queued.decision, run, gate);
      if (delivery.action !== 'take') {
        answer(run, queued.decision, gate, delivery);
        continue;
      }
      const verdict = await admit(run, gate, frozen, queued);
      if (verdict?.verdict !== 'accepted') continue;
      frozen = verdict.case ?? frozen;
      const end = acceptedEnd(frozen, verdict);
      if (end !== undefined) return end;
      gate.accepted = [...(gate.accepted ?? []), verdict.decision].slice(-acceptedKept);
      if (verdict.case !== undefined) showAmended(frozen);
      continue;
    }
    const passedAt = deadlinePassedAt();
    if (passedAt !== undefined) return { case: frozen, settlement: { state: 'expired', at: passedAt } };
    try {
      await condition(() => gate.queue.length > 0 || deadlinePassedAt() !== undefined);
    } catch (error) {
      if (!isCancellation(error)) throw error;
      if (gate.queue.length > 0) continue;
      return { case: frozen, settlement: { state: 'cancelled', at: Date.now() } };
    }
  }
}

function acceptedEnd(frozen: CaseRecord, verdict: VerdictRecord): GateEnd | undefined {
  const { decision, by, grant } = verdict;
  const state = stateAfter(decision.decision);
  if (state === undefined) return undefined;
  // recorded, so that every replay tells the same: after a local activity the clock of a replay is another
  const at = verdict.takenUpAt ?? Date.now();
  return {
    case: frozen,
    settlement: { state, by, decisionId: decision.decisionId, at },
    decision,
    by,
    ...(grant === undefined ? {} : { grant }),
  };
}
