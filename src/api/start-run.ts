// POST /runs: which spec is meant, and whether it can be started with that input.
import type { StartRunRequest } from '../countersign-client.ts';
import { canonicalize, ValueProblemError } from '../core/canonical.ts';
import { hashPayload, hashText } from '../core/hash.ts';
import type { Json, JsonObject } from '../core/json.ts';
import { printable } from '../core/json-value.ts';
import type { Spec } from '../core/spec/spec.ts';
import { actorOf, type Principal } from './auth.ts';
import type { ApiDeps } from './deps.ts';
import { ApiProblem } from './problem.ts';
import { runIdOf, type StartDesk, type StartedOnce, type StartIdentity } from './start-once.ts';

export interface StartOrder extends StartIdentity {
  spec: string | JsonObject;
  input: Json;
}

type StartDeps = Pick<ApiDeps, 'client' | 'specs' | 'checkInlineSpec' | 'checkInput'>;
type CheckedSpec = Pick<StartRunRequest, 'spec' | 'specRef'>;

export function createStarter(deps: StartDeps, startOnce: StartDesk) {
  return async function start(principal: Principal, order: StartOrder): Promise<StartedOnce<CheckedSpec>> {
    const runId = runIdOf(principal, order);
    const { requestHash, input } = hashRequest(order);
    return startOnce(
      principal,
      order,
      { runId, requestHash },
      {
        check: () => checkOrder(deps, order, input),
        start: (checked) =>
          deps.client.startRun({
            runId,
            ...checked,
            input,
            trigger: { kind: 'api' },
            startedBy: actorOf(principal),
            requestHash,
          }),
      },
    );
  };
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
  if (typeof spec === 'string') return checkNamedStart(deps, spec, input);
  const checked = inlineSpec(deps, spec);
  fitInput(deps, checked.spec, input);
  return checked;
}

/** @throws ApiProblem invalid_request: no such spec, a bad one, or an input that it does not take */
export function checkNamedStart(
  deps: Pick<StartDeps, 'specs' | 'checkInput'>,
  name: string,
  input: Json,
): CheckedSpec {
  const checked = namedSpec(deps, name);
  fitInput(deps, checked.spec, input);
  return checked;
}

function fitInput({ checkInput }: Pick<StartDeps, 'checkInput'>, spec: Spec, input: Json): void {
  const problems = checkInput(spec, input);
  if (problems.length === 0) return;
  const name = printable(spec.name, 60);
  throw new ApiProblem('invalid_request', `input does not fit spec "${name}": ${problems.join('; ')}`, {
    problems,
  });
}

function namedSpec({ specs }: Pick<StartDeps, 'specs'>, name: string): CheckedSpec {
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

function inlineSpec(
  { checkInlineSpec }: Pick<StartDeps, 'checkInlineSpec'>,
  value: JsonObject,
): { spec: Spec } {
  const checked = checkInlineSpec(value);
  if ('spec' in checked) return { spec: checked.spec };
  throw new ApiProblem('invalid_request', `the spec is refused: ${checked.problems.join('; ')}`, {
    problems: checked.problems,
  });
}
