// POST /approvals. The API itself freezes and hashes, before any wait: the run that it starts has the case in
// its start call, so the gate is open from the first event. The worker must come to the same hash.
import type { CaseRecord } from '../core/case.ts';
import { canonicalize, ValueProblemError } from '../core/canonical.ts';
import { hashPayload, hashText } from '../core/hash.ts';
import type { Json } from '../core/json.ts';
import { actorOf, type Principal } from './auth.ts';
import type { ApiDeps } from './deps.ts';
import { ApiProblem } from './problem.ts';
import type { ApprovalRequest } from './request-schemas.ts';
import { runIdOf, type StartDesk, type StartedOnce } from './start-once.ts';

export type FrozenCase = Omit<CaseRecord, 'key' | 'root'>;

export function createRequester(
  { client, freezeRequest, now }: Pick<ApiDeps, 'client' | 'freezeRequest' | 'now'>,
  startOnce: StartDesk,
) {
  return async function request(
    principal: Principal,
    asked: ApprovalRequest,
    idempotencyKey: string | undefined,
  ): Promise<StartedOnce<FrozenCase>> {
    const identity = idempotencyKey === undefined ? {} : { idempotencyKey };
    const { requestHash, arguments: args } = hashRequest(asked);
    const place = { runId: runIdOf(principal, identity), requestHash };
    const startedBy = actorOf(principal);
    const { tool, title, reasoning, policy } = asked;
    return startOnce(principal, identity, place, {
      check: async () => {
        const frozen = await freezeRequest({
          tool,
          arguments: args,
          ...(title === undefined ? {} : { title }),
          ...(reasoning === undefined ? {} : { reasoning }),
          ...(policy?.ttl === undefined ? {} : { ttl: policy.ttl }),
          requestedBy: startedBy,
          now: now(),
        });
        if ('case' in frozen) return frozen.case;
        throw freezeProblem(frozen);
      },
      start: (frozen) =>
        client.startApproval({ ...place, case: frozen, trigger: { kind: 'api' }, startedBy }),
    });
  };
}

/** Two requests are the same when they ask for the same call with the same words. */
function hashRequest(asked: ApprovalRequest): { requestHash: string; arguments: Json } {
  try {
    const { hash, payload } = hashPayload(asked.arguments);
    const { tool, title, reasoning, policy } = asked;
    const words = [title ?? null, reasoning ?? null, policy?.ttl ?? null];
    return { requestHash: hashText(canonicalize(['approval', tool, hash, ...words])), arguments: payload };
  } catch (error) {
    if (!(error instanceof ValueProblemError)) throw error;
    const code = error.code === 'payload_too_large' ? 'too_large' : 'invalid_request';
    throw new ApiProblem(code, error.message, { pointer: error.pointer });
  }
}

function freezeProblem({ code, message }: { code: string; message: string }): ApiProblem {
  return code === 'payload_too_large'
    ? new ApiProblem('too_large', message)
    : new ApiProblem('invalid_request', message, { problems: [message] });
}
