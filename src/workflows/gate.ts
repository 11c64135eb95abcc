// Sandbox. The gate: a case is frozen and recorded, then the run waits for the first decision in history
// order that is accepted and ends it, or for the deadline. Decisions are taken one at a time.
import { CancellationScope, condition, isCancellation, sleep } from '@temporalio/workflow';
import type { GateEnd } from '../core/carried.ts';
import type { CaseRecord, VerdictRecord } from '../core/case.ts';
import { acceptedKept, judgeDelivery, stateAfter } from '../core/gate-state.ts';
import { admit } from './admit.ts';
import { showAmended, showPending, showSettled } from './board.ts';
import { freeze, type Proposal } from './freeze.ts';
import {
  answer,
  currentRun,
  releasePosition,
  takePosition,
  type OpenGate,
  type QueuedDecision,
  type ResumedGate,
  type Run,
} from './run.ts';
import { beginMotion, endMotion, isClosed, whileOpen, working } from './standstill.ts';

export type { GateEnd } from '../core/carried.ts';

type AskingGate = OpenGate & { frozen: CaseRecord };

interface Clock {
  /** when the deadline passed */
  passedAt?: number;
  stop: () => void;
}

/**
 * Opens a gate at `name`, or goes on with one that was carried here, waits for its end and gives that to
 * `use`. Never throws for a refusal; it throws an ApplicationFailure (core/failures.ts) when the proposal
 * cannot be frozen: then nobody was asked.
 */
export async function openGate<Used>(
  name: string,
  proposal: Proposal,
  use: (end: GateEnd) => Used | Promise<Used>,
  options: { isSystemName?: boolean } = {},
): Promise<Used> {
  if (isClosed()) await whileOpen();
  const run = currentRun();
  const resumed = run.resumed.get(name);
  let gate: OpenGate;
  let end: GateEnd;
  if (resumed === undefined) {
    const asking = await ask(run, name, proposal, options.isSystemName);
    gate = asking;
    end = await waitForEnd(run, asking, asking.frozen, asking.frozen.policy.ttlMs);
  } else {
    gate = resumed.gate;
    end = await endOf(run, name, resumed);
  }
  // while the run is being carried the end stays with the gate, for the caller in the next execution
  if (isClosed()) await whileOpen();
  delete gate.end;
  releasePosition(run, name);
  return working(() => use(end));
}

/** @returns the gate, open and shown */
async function ask(run: Run, name: string, proposal: Proposal, isSystemName?: boolean) {
  const position = takePosition(run, name, isSystemName === true ? 'system' : undefined);
  beginMotion();
  try {
    const frozen = await freeze(run, position, proposal);
    const gate: AskingGate = { key: frozen.key, position, state: 'pending', name, frozen, queue: [] };
    run.gates.set(frozen.key, gate);
    showPending(frozen);
    return gate;
  } catch (error) {
    releasePosition(run, name);
    throw error;
  } finally {
    endMotion();
  }
}

/** A carried gate has waited since the execution began; from here on its caller's scope can cancel it. */
function endOf(run: Run, name: string, { end, scope }: ResumedGate): Promise<GateEnd> {
  run.resumed.delete(name);
  const caller = CancellationScope.current();
  if (caller.consideredCancelled) scope.cancel();
  else caller.cancelRequested.catch(() => scope.cancel());
  return end;
}

/** Waits for the end of a gate that is open and shown. `ttlMs`: what is left of its time. */
export async function waitForEnd(
  run: Run,
  gate: OpenGate,
  frozen: CaseRecord,
  ttlMs: number,
): Promise<GateEnd> {
  const timer = new CancellationScope();
  const clock: Clock = { stop: () => timer.cancel() };
  const expiry = timer.run(() => sleep(ttlMs, { summary: `expiry of ${gate.position} · ${gate.key}` }));
  const pass = (): void => void (clock.passedAt = Date.now());
  expiry.then(pass, () => undefined); // cancelled with the gate's end; it has nothing else to say
  gate.frozen = frozen;
  return nextEnd(run, gate as AskingGate, clock);
}

/** Takes decisions one at a time until one ends the gate; those that wait come before a deadline or a cancel. */
async function nextEnd(run: Run, gate: AskingGate, clock: Clock): Promise<GateEnd> {
  for (;;) {
    const queued = isClosed() ? undefined : gate.queue.shift();
    if (queued !== undefined) {
      const end = await takeUp(run, gate, queued, clock);
      if (end !== undefined) return end;
      continue;
    }
    const { passedAt } = clock;
    if (passedAt !== undefined && !isClosed()) {
      return settle(run, gate, { case: gate.frozen, settlement: { state: 'expired', at: passedAt } }, clock);
    }
    try {
      await condition(() => !isClosed() && (gate.queue.length > 0 || clock.passedAt !== undefined));
    } catch (error) {
      if (!isCancellation(error)) throw error;
      if (isClosed()) await whileOpen();
      if (gate.queue.length > 0) continue;
      const settlement = { state: 'cancelled' as const, at: Date.now() };
      return settle(run, gate, { case: gate.frozen, settlement }, clock);
    }
  }
}

/** Has a decision judged. @returns the gate's end, when that was it */
async function takeUp(
  run: Run,
  gate: AskingGate,
  queued: QueuedDecision,
  clock: Clock,
): Promise<GateEnd | undefined> {
  const delivery = judgeDelivery(queued.decision, run, gate);
  if (delivery.action !== 'take') {
    answer(run, queued.decision, gate, delivery);
    return undefined;
  }
  beginMotion();
  try {
    const verdict = await admit(run, gate, gate.frozen, queued);
    if (verdict?.verdict !== 'accepted') return undefined;
    gate.frozen = verdict.case ?? gate.frozen;
    const end = acceptedEnd(gate.frozen, verdict);
    if (end !== undefined) return settle(run, gate, end, clock);
    gate.accepted = [...(gate.accepted ?? []), verdict.decision].slice(-acceptedKept);
    if (verdict.case !== undefined) showAmended(gate.frozen);
    return undefined;
  } finally {
    endMotion();
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

function settle(run: Run, gate: OpenGate, end: GateEnd, clock: Clock): GateEnd {
  clock.stop();
  gate.state = end.settlement.state;
  gate.settlement = end.settlement;
  if (end.decision !== undefined) gate.winner = end.decision;
  gate.end = end;
  delete gate.frozen;
  for (const { decision } of gate.queue.splice(0)) {
    answer(run, decision, gate, judgeDelivery(decision, run, gate));
  }
  showSettled(gate.position, end.settlement);
  return end;
}
