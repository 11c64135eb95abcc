// Everything that goes wrong is thrown as an ApiProblem and leaves as application/problem+json (RFC 9457).
import { errorTable, type ErrorCode } from '../core/errors.ts';

/** Extension members of a problem; `undefined` ones are left out. */
export type ProblemMembers = Record<string, unknown>;

export class ApiProblem extends Error {
  override readonly name = 'ApiProblem';
  readonly code: ErrorCode;
  readonly members: ProblemMembers;
  readonly headers: Record<string, string>;

  constructor(
    code: ErrorCode,
    detail: string,
    members: ProblemMembers = {},
    headers: Record<string, string> = {},
  ) {
    super(detail);
    this.code = code;
    this.members = members;
    this.headers = headers;
  }
}

export function problemResponse(problem: ApiProblem, path: string): Response {
  const { status, title, remedy, retryAfter } = errorTable[problem.code];
  const body = {
    type: `urn:countersign:error:${problem.code}`,
    title,
    status,
    code: problem.code,
    detail: problem.message,
    remedy,
    instance: path,
    ...problem.members,
  };
  return new Response(JSON.stringify(body), {
    status,
    headers: {
      'content-type': 'application/problem+json',
      ...(retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }),
      ...problem.headers,
    },
  });
}

/** The same words for unknown, invisible, gone and expired, so that nothing can be told from them. */
export function approvalNotFound(key: string): ApiProblem {
  const shown = key.slice(0, 640);
  return new ApiProblem(
    'approval_not_found',
    `No pending approval ${shown}: it was already resolved, or it expired`,
    { key: shown },
  );
}

export function runNotFound(runId: string): ApiProblem {
  return new ApiProblem(
    'run_not_found',
    `No run ${runId.slice(0, 255)}: there never was one, or it is no longer kept`,
  );
}

export function temporalUnavailable(): ApiProblem {
  return new ApiProblem('temporal_unavailable', 'not confirmed; send it again with the same Idempotency-Key');
}
