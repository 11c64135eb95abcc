// Sandbox. Freezing: a proposal becomes the recorded case, or the run fails by name and nobody was asked.
import { approvalKey } from '../core/approval-key.ts';
import { caseTextProblem } from '../core/case-text.ts';
import type { CaseRecord, Doubt, EffectOptions, SpecRef } from '../core/case.ts';
import { jsonValueProblem, utf8Length } from '../core/json-value.ts';
import type { Json } from '../core/json.ts';
import type { Scope } from '../core/recording.ts';
import type { Actor } from '../core/verdict.ts';
import { freezePolicy } from './policies.ts';
import { isRecordingFailure, record } from './record.ts';
import { failure, type Run } from './run.ts';

/** What a gate is about. In a spec, `scope` is what its templates may refer to. */
export interface Proposal {
  phase: CaseRecord['phase'];
  tool?: string;
  arguments?: Json;
  title?: string;
  reasoning?: string;
  ttl?: string | number;
  scope?: Scope;
  spec?: SpecRef;
  requestedBy?: Actor;
  doubt?: Doubt;
  effect?: EffectOptions;
}

/**
 * The payload limit (256 KiB), checked before anything is sent: Temporal would refuse a larger activity
 * input for ever. Defaults may add to it; the activity checks the frozen payload again.
 */
const payloadLimitBytes = 256 * 1024;

/** @throws ApplicationFailure when a value is not JSON, or too large to travel */
export function checkPayload(position: string, value: unknown): void {
  const problem = jsonValueProblem(value);
  if (problem !== undefined) throw failure('invalid_value', `step "${position}": ${problem.message}`);
  const bytes = utf8Length(JSON.stringify(value));
  if (bytes <= payloadLimitBytes) return;
  const limit = `the limit is ${payloadLimitBytes} bytes`;
  throw failure(
    'payload_too_large',
    `step "${position}": the payload has ${bytes} bytes, ${limit}; pass a reference`,
  );
}

/** @throws ApplicationFailure with a code of core/failures.ts */
export async function freeze(run: Run, position: string, proposal: Proposal): Promise<CaseRecord> {
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
