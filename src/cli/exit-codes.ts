// What a command's exit code says (DESIGN §7), and which one each problem of the API becomes: one table, so
// that a new code without an exit code does not compile.
import { errorTable, type ErrorCode } from '../core/errors.ts';

export const exitCodes = {
  ok: 0,
  invalid: 1,
  runFailed: 2,
  conflict: 3,
  notAllowed: 4,
  notFound: 5,
  usage: 64,
  unavailable: 69,
  pending: 75,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** For the help and docs/cli.md. */
export const exitCodeMeanings: readonly (readonly [ExitCode, string])[] = [
  [exitCodes.ok, 'ok'],
  [exitCodes.invalid, 'invalid: the request, the input, or what the project has'],
  [exitCodes.runFailed, 'the run that was waited for failed, was rejected or was cancelled'],
  [exitCodes.conflict, 'conflict or stale: decided by somebody else, or on something that changed since'],
  [exitCodes.notAllowed, 'not allowed'],
  [exitCodes.notFound, 'not found'],
  [exitCodes.usage, 'the command was called wrongly'],
  [exitCodes.unavailable, 'unavailable: the API, Temporal or a check; the same command can succeed later'],
  [exitCodes.pending, 'still pending: not decided, or recorded and not judged yet'],
];

const { invalid, conflict, notAllowed, notFound, unavailable } = exitCodes;

const ofProblem: Readonly<Record<ErrorCode, ExitCode>> = {
  invalid_request: invalid,
  unauthenticated: notAllowed,
  invalid_signature: notAllowed,
  stale_timestamp: notAllowed,
  not_allowed: notAllowed,
  self_approval: notAllowed,
  unproven: notAllowed,
  not_found: notFound,
  trigger_not_found: notFound,
  run_not_found: notFound,
  approval_not_found: notFound,
  decision_not_found: notFound,
  method_not_allowed: invalid,
  already_resolved: conflict,
  run_closed: conflict,
  not_open: conflict,
  spec_changed: conflict,
  idempotency_in_flight: conflict,
  ambiguous_approval: conflict,
  payload_changed: conflict,
  too_large: invalid,
  unsupported_media_type: invalid,
  idempotency_key_reused: conflict,
  invalid_edit: invalid,
  payload_hash_required: invalid,
  rate_limited: unavailable,
  internal_error: unavailable,
  temporal_unavailable: unavailable,
  issuer_unavailable: unavailable,
  check_failed: unavailable,
};

/** The exit code of a problem; by its status where a newer API has a code that this CLI does not know. */
export function exitCodeOf(problem: { code: string; status: number }): ExitCode {
  const { code, status } = problem;
  if (Object.hasOwn(errorTable, code)) return ofProblem[code as ErrorCode];
  if (status === 401 || status === 403) return notAllowed;
  if (status === 404) return notFound;
  if (status === 409 || status === 412) return conflict;
  return status >= 500 || status === 429 ? unavailable : invalid;
}

/** Ends the command with this exit code; the message is for people, and the fields for `--json`. */
export class CliProblem extends Error {
  override readonly name = 'CliProblem';
  readonly exitCode: ExitCode;
  readonly fields: Record<string, unknown>;

  constructor(exitCode: ExitCode, message: string, fields: Record<string, unknown> = {}) {
    super(message);
    this.exitCode = exitCode;
    this.fields = fields;
  }
}

export function usageProblem(message: string): CliProblem {
  return new CliProblem(exitCodes.usage, message, { code: 'usage' });
}
