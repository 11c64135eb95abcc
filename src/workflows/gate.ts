// Sandbox. The gate: a case is frozen and recorded, then the run waits for the first decision in history
// order that is accepted, or for the deadline. Decisions are taken one at a time.
import { CancellationScope, condition, isCancellation, sleep } from '@temporalio/workflow';
import { approvalKey } from '../core/approval-key.ts';
import { caseTextProblem } from '../core/case-text.ts';
import type { CaseRecord, Grant, SpecRef, VerdictRecord } from '../core/case.ts';
import type { Decision } from '../core/decision.ts';
import { judgeDelivery } from '../core/gate-state.ts';
import { jsonValueProblem, utf8Length } from '../core/json-value.ts';
import type { Json } from '../core/json.ts';
import { admitSummary } from '../core/names.ts';
import type { Scope } from '../core/recording.ts';
import type { DecidedBy, GateState, Settlement } from '../core/verdict.ts';
import { showPending, showSettled } from './board.ts';
import { admitPolicy, freezePolicy } from './policies.ts';
import { isRecordingFailure, record } from './record.ts';
import { answer, currentRun, failure, keepReceipt, releasePosition, takePosition } from './run.ts';
import type { OpenGate, QueuedDecision, Run } from './run.ts';

/** What a gate is about. In a spec, `scope` is what its templates may refer to. */
export interface Proposal {
  phase: 'before' | 'step';
  tool?: string;
  arguments?: Json;
  title?: string;
  reasoning?: string;
  ttl?: string | number;
  scope?: Scope;
  spec?: SpecRef;
}

/** How a gate ended. `grant` is there when it was approved in phase `before`. */
export interface GateEnd {
  case: CaseRecord;
  settlement: Settlement;
  decision?: Decision;
  by?: DecidedBy;
  grant?: Grant;
}

/**
 * The payload limit (256 KiB), checked before anything is sent: Temporal would refuse a larger activity
 * input for ever. Defaults may add to it; the activity checks the frozen payload again.
 */
const payloadLimitBytes = 256 * 1024;

/**
 * Opens a gate at `name` and waits for its end. Never throws for a refusal; it throws an
 * ApplicationFailure (core/failures.ts) when the proposal cannot be frozen: then nobody was asked.
 */
export async function openGate(name: string, proposal: Proposal): Promise<GateEnd> {
  const run = currentRun();
  const position = takePosition(run, name);
  try {
    const frozen = await freeze(run, position, proposal);
    const gate: OpenGate = { key: frozen.key, position, state: 'pending', queue: [] };
    run.gates.set(frozen.key, gate);
    showPending(frozen);
    return await waitForEnd(run, gate, frozen);
  } finally {
    releasePosition(run, name);
  }
}

/** @throws ApplicationFailure when a value is not JSON, or too large to travel */
export function checkPayload(position: string, value: unknown): void {
  const problem = jsonValueProblem(value);
  if (problem !== undefined) {
    throw failure('invalid_value', `step "${position}": ${problem.message}`);
  }
  const bytes = utf8Length(JSON.stringify(value));
  if (bytes <= payloadLimitBytes) return;
  const limit = `the limit is ${payloadLimitBytes} bytes`;
  throw failure(
    'payload_too_large',
    `step "${position}": the payload has ${bytes} bytes, ${limit}; pass a reference`,
  );
}

async function freeze(run: Run, position: string, proposal: Proposal): Promise<CaseRecord> {
  const { workflowId, root } = run;
  if (proposal.phase === 'before') checkPayload(position, proposal.arguments);
  const problem = caseTextProblem(proposal);
  if (problem !== undefined) throw failure(problem.code, `step "${position}": ${problem.message}`);
  const key = approvalKey({ workflowId, position, root });
  const frozen = await recorded(
    record(
      'freezeCase',
      { v: 1, ...proposal, position, key, root, step: position, now: Date.now() },
      freezePolicy,
      `freeze ${position} · ${key}`,
    ),
    position,
  );
  if (frozen.kind === 'problem') throw failure(frozen.code as 'invalid_arguments', frozen.message);
  return frozen;
}

/** A recording that used up its attempts fails the run by name; a bug of the workflow's stays one. */
export async function recorded<T>(recording: Promise<T>, position: string): Promise<T> {
  try {
    return await recording;
  } catch (error) {
    if (!isRecordingFailure(error)) throw error;
    const { message } = error.cause ?? error;
    throw failure('preparation_failed', `step "${position}" could not be frozen: ${message}`);
  }
}

async function waitForEnd(run: Run, gate: OpenGate, frozen: CaseRecord): Promise<GateEnd> {
  let passedAt: number | undefined;
  const timer = new CancellationScope();
  const expiry = timer.run(async () => {
    await sleep(frozen.policy.ttlMs, { summary: `expiry of ${gate.position} · ${gate.key}` });
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
  frozen: CaseRecord,
  deadlinePassedAt: () => number | undefined,
): Promise<GateEnd> {
  for (;;) {
    const queued = gate.queue.shift();
    if (queued !== undefined) {
      const verdict = await admit(run, gate, frozen, queued);
      if (verdict?.verdict === 'accepted') return acceptedEnd(frozen, verdict);
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

async function admit(
  run: Run,
  gate: OpenGate,
  frozen: CaseRecord,
  { decision, text }: QueuedDecision,
): Promise<VerdictRecord | undefined> {
  const { position, key, root, phase, tool, payloadHash, expiresAt, spec, policy } = frozen;
  const shown = {
    phase,
    payloadHash,
    expiresAt,
    policy,
    ...(tool === undefined ? {} : { tool }),
    ...(spec === undefined ? {} : { spec }),
  };
  try {
    const verdict = await record(
      'admitDecision',
      { v: 1, position, key, root, case: shown, decision, text, takenUpAt: Date.now() },
      admitPolicy,
      admitSummary(decision.decision, position, key),
    );
    const { code, message } = verdict;
    keepReceipt(run, decision, gate, {
      verdict: verdict.verdict,
      ...(code === undefined ? {} : { code }),
      ...(message === undefined ? {} : { message }),
    });
    return verdict;
  } catch (error) {
    if (!isRecordingFailure(error)) throw error;
    const message = 'the check itself failed; the gate stays open, send the decision again';
    keepReceipt(run, decision, gate, { verdict: 'refused', code: 'check_failed', message });
    return undefined;
  }
}

function acceptedEnd(frozen: CaseRecord, verdict: VerdictRecord): GateEnd {
  const { decision, by, grant } = verdict;
  const state: GateState = decision.decision === 'approve' ? 'approved' : 'rejected';
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
