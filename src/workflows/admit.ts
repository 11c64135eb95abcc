// Sandbox. Has one queued decision judged, and keeps the receipt.
import type { CaseRecord, VerdictRecord } from '../core/case.ts';
import { admitSummary } from '../core/names.ts';
import { admitPolicy } from './policies.ts';
import { isRecordingFailure, record } from './record.ts';
import { keepReceipt, type OpenGate, type QueuedDecision, type Run } from './run.ts';

/** The verdict; undefined when the check itself failed: then the gate stays open. */
export async function admit(
  run: Run,
  gate: OpenGate,
  frozen: CaseRecord,
  { decision, text }: QueuedDecision,
): Promise<VerdictRecord | undefined> {
  const { position, key, root, phase, tool, payloadHash, expiresAt, spec, policy, requestedBy, doubt } =
    frozen;
  const shown = {
    phase,
    payloadHash,
    expiresAt,
    policy,
    ...(tool === undefined ? {} : { tool }),
    ...(spec === undefined ? {} : { spec }),
    ...(requestedBy === undefined ? {} : { requestedBy }),
    ...(doubt === undefined ? {} : { doubt }),
  };
  const isAnew = decision.decision === 'edit' || decision.decision === 'amend';
  const place = { position, key, root, ...(run.prefix === undefined ? {} : { prefix: run.prefix }) };
  const whole = isAnew ? { whole: frozen } : {};
  try {
    const verdict = await record(
      'admitDecision',
      { v: 1, ...place, case: shown, ...whole, decision, text, takenUpAt: Date.now() },
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
