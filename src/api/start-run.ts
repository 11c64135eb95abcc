// POST /runs. The run id is the idempotency: given, or derived from who asks and their Idempotency-Key, so
// that a repeated request finds the run that the first one started, in any process and at any time.
import { randomUUID } from 'node:crypto';
import type { RunDescription, StartRunRequest } from '../countersign-client.ts';
import { workflowIdProblem } from '../core/approval-key.ts';
import { canonicalize, ValueProblemError } from '../core/canonical.ts';
import { hashPayload, hashText, sha256Hex } from '../core/hash.ts';
import type { Json, JsonObject } from '../core/json.ts';
import { printable } from '../core/json-value.ts';
import type { Spec } from '../core/spec/spec.ts';
import { actorOf, type Principal } from './auth.ts';
import type { ApiDeps } from './deps.ts';
import { ApiProblem } from './problem.ts';

export interface StartOrder {
  spec: string | JsonObject;
  input: Json;
  id?: string;
  idempotencyKey?: string;
}

/** `run` is there when an earlier request had started it. */
export type Started =
  | { runId: string; run: RunDescription }
  | { runId: string; run?: undefined; spec: { name: string; hash?: string } };

type StartDeps = Pick<ApiDeps, 'client' | 'specs' | 'checkInlineSpec' | 'checkInput'>;
type CheckedSpec = Pick<StartRunRequest, 'spec' | 'specRef'>;

export function createStarter(deps: StartDeps) {
  const inFlight = new Set<string>();
  return async function start(principal: Principal, order: StartOrder): Promise<Started> {
    const runId = runIdOf(principal, order);
    const { requestHash, input } = hashRequest(order);
    if (order.idempotencyKey === undefined)
      return startOnce(deps, principal, order, { runId, requestHash, input });
    const request = JSON.stringify([principal.id, order.idempotencyKey]);
    if (inFlight.has(request)) {
      throw new ApiProblem(
        'idempotency_in_flight',
        'the first request with this Idempotency-Key is still running',
      );
    }
    inFlight.add(request);
    try {
      return await startOnce(deps, principal, order, { runId, requestHash, input });
    } finally {
      inFlight.delete(request);
    }
  };
}

async function startOnce(
  deps: StartDeps,
  principal: Principal,
  order: StartOrder,
  { runId, requestHash, input }: { runId: string; requestHash: string; input: Json },
): Promise<Started> {
  let checked: CheckedSpec;
  try {
    checked = checkOrder(deps, order, input);
  } catch (problem) {
    // the spec may have gone bad since the first request; what that one started is still the answer
    const run = await startedBefore(deps, runId, requestHash);
    if (run === undefined) throw problem;
    return { runId, run };
  }
  const result = await deps.client.startRun({
    runId,
    ...checked,
    input,
    trigger: { kind: 'api' },
    startedBy: actorOf(principal),
    requestHash,
  });
  if (result.started) {
    const { spec, specRef } = checked;
    return { runId, spec: { name: spec.name, ...(specRef === undefined ? {} : { hash: specRef.hash }) } };
  }
  if (result.requestHash !== requestHash) throw reused(runId);
  const run = await deps.client.describeRun(runId);
  // it ended and was deleted between the two calls
  if (run === undefined) throw reused(runId);
  return { runId, run };
}

async function startedBefore(
  { client }: StartDeps,
  runId: string,
  requestHash: string,
): Promise<RunDescription | undefined> {
  const run = await client.describeRun(runId);
  return run?.requestHash === requestHash ? run : undefined;
}

function runIdOf(principal: Principal, { id, idempotencyKey }: StartOrder): string {
  if (id !== undefined) {
    const problem = workflowIdProblem(id) ?? pathProblem(id);
    if (problem !== undefined) throw new ApiProblem('invalid_request', `id: ${problem}`);
    return id;
  }
  if (idempotencyKey === undefined) return randomUUID();
  // 104 bits: no two pairs meet, and it is short enough to be read aloud
  return `run-${sha256Hex(canonicalize([principal.id, idempotencyKey])).slice(0, 26)}`;
}

function pathProblem(id: string): string | undefined {
  if (id === '.' || id === '..') return `"${id}" cannot be part of a URL path; take another id`;
  if (/\p{Cc}/u.test(id)) return `"${printable(id, 60)}" has a control character; take it out`;
  return undefined;
}

/** Two requests are the same when they ask for the same: spec as named or written, and input. */
function hashRequest({ spec, input }: StartOrder): { requestHash: string; input: Json } {
  try {
    const asked = typeof spec === 'string' ? spec : { inline: hashPayload(spec).hash };
    const { hash, payload } = hashPayload(input);
    return { requestHash: hashText(canonicalize([asked, hash])), input: payload };
  } catch (error) {
    if (!(error instanceof ValueProblemError)) throw error;
    const code = error.code === 'payload_too_large' ? 'too_large' : 'invalid_request';
    throw new ApiProblem(code, error.message, { pointer: error.pointer });
  }
}

function checkOrder(deps: StartDeps, { spec }: StartOrder, input: Json): CheckedSpec {
  const checked = typeof spec === 'string' ? namedSpec(deps, spec) : inlineSpec(deps, spec);
  const problems = deps.checkInput(checked.spec, input);
  if (problems.length === 0) return checked;
  const name = printable(checked.spec.name, 60);
  throw new ApiProblem('invalid_request', `input does not fit spec "${name}": ${problems.join('; ')}`, {
    problems,
  });
}

function namedSpec({ specs }: StartDeps, name: string): CheckedSpec {
  const problem = specs.problemOf(name);
  const shown = printable(name, 60);
  if (problem !== undefined) {
    throw new ApiProblem('invalid_request', `spec "${shown}" went bad and is not started: ${problem}`, {
      problems: [problem],
    });
  }
  const found = specs.get(name);
  if (found === undefined) {
    const names = specs.names();
    const known = names.length === 0 ? 'there are none' : `there are: ${names.slice(0, 20).join(', ')}`;
    throw new ApiProblem('invalid_request', `there is no spec "${shown}"; ${known}`, { specs: names });
  }
  return { spec: found.spec, specRef: { name: found.spec.name, hash: found.hash } };
}

function inlineSpec({ checkInlineSpec }: StartDeps, value: JsonObject): { spec: Spec } {
  const checked = checkInlineSpec(value);
  if ('spec' in checked) return { spec: checked.spec };
  throw new ApiProblem('invalid_request', `the spec is refused: ${checked.problems.join('; ')}`, {
    problems: checked.problems,
  });
}

function reused(runId: string): ApiProblem {
  return new ApiProblem(
    'idempotency_key_reused',
    `a run "${printable(runId, 255)}" exists that another request started`,
    { runId },
  );
}
