// Sandbox. One gated effect that somebody asked for over HTTP (`POST /approvals`). The API froze the case and
// put it into the start call, so the gate is open from the run's first event; the worker must freeze the
// same arguments to the same hash, else the run ends before any decision is judged.
import { workflowInfo } from '@temporalio/workflow';
import { approvalKey } from '../core/approval-key.ts';
import type { CaseRecord } from '../core/case.ts';
import type { Json } from '../core/json.ts';
import { nameProblem } from '../core/position.ts';
import type { RequestApprovalInput } from '../core/recording.ts';
import { showStatus, takeOverPending } from './board.ts';
import { recorded } from './freeze.ts';
import { waitForEnd } from './gate.ts';
import { freezePolicy } from './policies.ts';
import { record } from './record.ts';
import { currentRun, failure, takePosition, type OpenGate, type Run } from './run.ts';
import { endStep, performApproved, type RunSpecResult } from './run-spec.ts';

/** @throws ApplicationFailure `freeze_mismatch`, or another code of core/failures.ts; CancelledFailure */
export async function requestApproval(input: RequestApprovalInput): Promise<RunSpecResult> {
  if (!isStart(input)) throw failure('invalid_start', 'the start input must be {v: 1, case, …}');
  // before anything is recorded: after a local activity the clock of a replay is another
  const ttlMs = Math.max(1, input.case.expiresAt - Date.now());
  const opened: { gate?: OpenGate; frozen?: CaseRecord } = {};
  const run = currentRun((fresh) => {
    const key = approvalKey({
      workflowId: fresh.workflowId,
      position: input.case.position,
      root: fresh.root,
    });
    opened.frozen = { ...input.case, key, root: fresh.root };
    const { position } = input.case;
    opened.gate = { key, position, name: position, state: 'pending', queue: [] };
    fresh.gates.set(key, opened.gate);
  });
  const { gate, frozen } = opened;
  if (gate === undefined || frozen === undefined) throw new TypeError('the run had begun before its gate');
  takePosition(run, frozen.position);
  takeOverPending(frozen);
  await checkFreeze(run, frozen);
  const end = await waitForEnd(run, gate, frozen, ttlMs);
  const step = await endStep(end, () => performApproved(end));
  return 'end' in step ? step.end : { status: 'completed', output: step.output };
}

/** @throws ApplicationFailure `freeze_mismatch` */
async function checkFreeze(run: Run, frozen: CaseRecord): Promise<void> {
  const { position, tool = '', payloadHash } = frozen;
  const what = { tool, arguments: frozen.arguments as Json };
  const prepared = await recorded(
    record('prepareStep', { v: 1, position, root: run.root, what }, freezePolicy, `check ${position}`),
    position,
  );
  if (prepared.kind === 'prepared' && prepared.payloadHash === payloadHash) return;
  showStatus('failed');
  const why = prepared.kind === 'problem' ? prepared.message : 'this worker freezes it to another hash';
  throw failure('freeze_mismatch', `approval "${position}" in run "${workflowInfo().workflowId}": ${why}`);
}

/** Whatever of a faulty case would throw later would fail the workflow's tasks for ever. */
function isStart(input: unknown): boolean {
  const start = input as
    { v?: unknown; case?: Partial<Record<keyof CaseRecord, unknown>> } | null | undefined;
  const given = start?.case ?? {};
  return (
    start?.v === 1 &&
    nameProblem(given.position) === undefined &&
    given.phase === 'before' &&
    given.doubt === undefined &&
    [given.payloadHash, given.title, given.tool, given.reasoning ?? ''].every(
      (text) => typeof text === 'string',
    ) &&
    [given.expiresAt, (given.policy as { ttlMs?: unknown } | undefined)?.ttlMs].every(isTime) &&
    typeof given.effect === 'object' &&
    given.effect !== null
  );
}

/** Milliseconds that a Date can hold. */
function isTime(value: unknown): boolean {
  return typeof value === 'number' && Math.abs(value) <= 8.64e15;
}
