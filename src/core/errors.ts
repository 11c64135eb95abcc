// Sandbox-safe, pure. The one table of what an API answer can say is wrong: code → status, title, remedy.
// docs/errors.md is checked against it both ways by a test; clients match on `code`, so a rename is breaking.
import type { RefusalCode } from './verdict.ts';

export interface ErrorRow {
  status: number;
  /** RFC 9457 `title`: the same for every occurrence */
  title: string;
  /** what the reader can do about it */
  remedy: string;
  /** `Retry-After` in seconds, where the same request can succeed later */
  retryAfter?: number;
}

const table = {
  invalid_request: {
    status: 400,
    title: 'The request is malformed',
    remedy: 'Correct what `detail` and `problems` name, and send it again.',
  },
  unauthenticated: {
    status: 401,
    title: 'No or bad credentials',
    remedy: 'Send `Authorization: Bearer <token>` with a token of this deployment.',
  },
  invalid_signature: {
    status: 401,
    title: 'No valid signature',
    remedy: 'Sign the raw body as Standard Webhooks says, with a secret of this trigger; see docs/hooks.md.',
  },
  stale_timestamp: {
    status: 401,
    title: 'The signature is not of now',
    remedy: 'Sign each delivery anew, with the time of its sending; if it stays, compare the clocks.',
  },
  not_allowed: {
    status: 403,
    title: 'Your credentials do not allow this',
    remedy: 'Use credentials with a scope that `detail` names, or ask somebody whom the policy names.',
  },
  self_approval: {
    status: 403,
    title: 'Who asked may not decide',
    remedy: 'Ask somebody else: the policy separates requester and approver.',
  },
  unproven: {
    status: 403,
    title: 'The decision has no valid proof',
    remedy: 'Decide over HTTP with a token, so that the API signs the decision.',
  },
  not_found: {
    status: 404,
    title: 'No such route',
    remedy: 'Check the path; the API is described in the README.',
  },
  trigger_not_found: {
    status: 404,
    title: 'No such trigger',
    remedy: 'Check the name in the path: triggers are those of the config that the API was started with.',
  },
  run_not_found: {
    status: 404,
    title: 'No such run',
    remedy: 'Check the id; a run is kept for the retention time of the Temporal namespace after it ends.',
  },
  approval_not_found: {
    status: 404,
    title: 'No such pending approval',
    remedy: 'Look at `GET /approvals` for what is pending, or at the trail of the run for what became of it.',
  },
  decision_not_found: {
    status: 404,
    title: 'No such decision',
    remedy: 'Check the id; only decisions that reached an open run are kept.',
  },
  method_not_allowed: {
    status: 405,
    title: 'The route does not take this method',
    remedy: 'Use one of the methods in the `Allow` header.',
  },
  already_resolved: {
    status: 409,
    title: 'Already decided',
    remedy: 'Nothing: `winner` says who decided, what and when; it does not change any more.',
  },
  run_closed: {
    status: 409,
    title: 'The run has ended',
    remedy: 'Nothing: `GET /runs/:id` says how it ended.',
  },
  not_open: {
    status: 409,
    title: 'The run has not asked yet',
    remedy: 'Send it again once the approval is in `GET /approvals`.',
    retryAfter: 2,
  },
  spec_changed: {
    status: 409,
    title: 'The spec changed since the run paused',
    remedy: 'Restore the spec and approve, or reject: the approval stays in place.',
  },
  idempotency_in_flight: {
    status: 409,
    title: 'The first request with this Idempotency-Key is still running',
    remedy: 'Send the same request again in a moment.',
    retryAfter: 1,
  },
  ambiguous_approval: {
    status: 409,
    title: 'More than one approval is pending in this run',
    remedy: 'Name one of the approval keys in `keys`.',
  },
  payload_changed: {
    status: 412,
    title: 'Decided on another payload than the current one',
    remedy: 'Read the approval again, and decide on `currentHash` if it is right.',
  },
  too_large: {
    status: 413,
    title: 'Too large',
    remedy: 'Send less: the limit is in `detail`.',
  },
  unsupported_media_type: {
    status: 415,
    title: 'The body is not JSON',
    remedy: 'Send `Content-Type: application/json` and an uncompressed body.',
  },
  idempotency_key_reused: {
    status: 422,
    title: 'This Idempotency-Key or id was used for another request',
    remedy: 'Take a new key for a new request; repeat a request with the body that it first had.',
  },
  invalid_edit: {
    status: 422,
    title: 'The edited arguments break the schema or the policy',
    remedy: 'Correct the arguments; the approval is still pending.',
  },
  payload_hash_required: {
    status: 428,
    title: 'An approval names what it approves',
    remedy: 'Send the hash that you saw: `If-Match` with the ETag of the approval, or `payloadHash`.',
  },
  rate_limited: {
    status: 429,
    title: 'Too many requests',
    remedy: 'Wait as long as `Retry-After` says.',
    retryAfter: 10,
  },
  internal_error: {
    status: 500,
    title: 'The API failed',
    remedy: 'Send it again with the same Idempotency-Key; if it stays, look into the log of the API.',
  },
  temporal_unavailable: {
    status: 503,
    title: 'Temporal cannot be reached, or its answer was lost',
    remedy: 'Send it again; what starts or decides something, with the same Idempotency-Key.',
    retryAfter: 5,
  },
  issuer_unavailable: {
    status: 503,
    title: 'Who you are cannot be checked now',
    remedy: 'Send it again; if it stays, look into the log of the API: it cannot reach the OIDC issuer.',
    retryAfter: 5,
  },
  check_failed: {
    status: 503,
    title: 'The decision could not be checked',
    remedy: 'Send it again; if it stays, look into the log of the worker. The approval is still pending.',
    retryAfter: 2,
  },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof table;

export const errorTable: Readonly<Record<ErrorCode, ErrorRow>> = table;

/** A table of records has no order of its own; this is the one of docs/errors.md. */
export const errorCodes = Object.keys(table) as ErrorCode[];

const refusals: Readonly<Record<RefusalCode, ErrorCode>> = {
  malformed: 'invalid_request',
  unknown_key: 'approval_not_found',
  not_open: 'not_open',
  payload_changed: 'payload_changed',
  spec_changed: 'spec_changed',
  unproven: 'unproven',
  not_allowed: 'not_allowed',
  self_approval: 'self_approval',
  invalid_edit: 'invalid_edit',
  already_resolved: 'already_resolved',
  // an expired approval is not told from an unknown one to who decides: both are past deciding
  expired: 'approval_not_found',
  too_large: 'too_large',
  check_failed: 'check_failed',
};

/** What HTTP answers where a gate refused with `code`. */
export function errorOfRefusal(code: RefusalCode): ErrorCode {
  return refusals[code];
}
