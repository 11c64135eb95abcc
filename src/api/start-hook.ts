// A verified delivery starts the run of its event. The run id follows from the event, so that a re-delivery, in
// any process and as long as the run is kept, finds what the first one started, and is answered alike.
import { canonicalize, freeze, ValueProblemError } from '../core/canonical.ts';
import { hashText, sha256Hex } from '../core/hash.ts';
import type { Json, JsonObject } from '../core/json.ts';
import { maxDepth, maxNodes, printable } from '../core/json-value.ts';
import { followPath, kindOf } from '../core/spec/path.ts';
import type { Trigger } from '../core/trail-fact.ts';
import type { HookTrigger } from '../triggers.ts';
import { actorOf, type Principal } from './auth.ts';
import type { ApiDeps } from './deps.ts';
import type { HookEvent } from './hook-event.ts';
import type { KeptHeaders } from './hook-headers.ts';
import { ApiProblem } from './problem.ts';
import { hookRunPrefix, type StartDesk } from './start-once.ts';
import { checkNamedStart } from './start-run.ts';

export interface HookDelivery {
  trigger: HookTrigger;
  event: HookEvent;
  kept: KeptHeaders;
}

export interface HookStarted {
  runId: string;
  trigger: Pick<Trigger, 'kind' | 'name' | 'id' | 'source'>;
}

type HookDeps = Pick<ApiDeps, 'client' | 'specs' | 'checkInput'>;

/** Who started it, in trails and as the one who asks. */
export function hookPrincipal(name: string): Principal {
  return { id: `hook:${name}`, name, roles: [], kind: 'service', scopes: ['start'] };
}

export function createHookStarter(deps: HookDeps, startOnce: StartDesk) {
  return async function startHook({ trigger, event, kept }: HookDelivery): Promise<HookStarted> {
    const { name } = trigger;
    const { id, source, content } = event;
    const runId = hookRunId(name, event);
    // over what was sent, not over what is made of it: the mapping may change between two deliveries
    const requestHash = hashDelivery(name, content);
    const origin = { kind: 'hook', name, id, ...(source === undefined ? {} : { source }) };
    const principal = hookPrincipal(name);
    await startOnce(
      principal,
      {},
      { runId, requestHash },
      {
        check: () => {
          const input = mapInput(trigger, content);
          return { input, ...checkNamedStart(deps, trigger.spec, input) };
        },
        start: (checked) =>
          deps.client.startRun({
            runId,
            ...checked,
            trigger: { ...origin, ...kept },
            startedBy: actorOf(principal),
            requestHash,
          }),
      },
    );
    return { runId, trigger: origin };
  };
}

/** @throws ApiProblem for a body at the limits of JSON: the trigger is a level around it, and values beside it */
function hashDelivery(name: string, content: Json): string {
  try {
    return hashText(canonicalize(['hook', name, content]));
  } catch (error) {
    if (!(error instanceof ValueProblemError)) throw error;
    const detail = `the body is refused: a webhook may have ${maxDepth - 2} levels and ${maxNodes - 4} values`;
    throw new ApiProblem('invalid_request', `${detail}; make it flatter, or send a reference to the data`);
  }
}

/** 104 bits of the event's identity, as in other run ids; the name before it is for people. */
export function hookRunId(name: string, { id, source }: Pick<HookEvent, 'id' | 'source'>): string {
  const identity = source === undefined ? ['delivery', id] : ['event', source, id];
  return `${hookRunPrefix}${name}-${sha256Hex(canonicalize([name, ...identity])).slice(0, 26)}`;
}

/** @throws ApiProblem naming every path that leads nowhere */
function mapInput({ name, input }: HookTrigger, content: Json): Json {
  const problems: string[] = [];
  const fields: JsonObject = {};
  for (const { field, path, source, optional } of input) {
    const found = followPath(content, path);
    if ('value' in found) {
      // not an assignment: that would set the prototype for the field __proto__
      Object.defineProperty(fields, field, { value: found.value, enumerable: true });
    } else if (!optional) {
      const missing = printable(path[found.at] ?? '', 60);
      problems.push(`${printable(source, 200)}: there is ${kindOf(found.reached)} without "${missing}"`);
    }
  }
  if (problems.length > 0) {
    const detail = `the body lacks what trigger "${name}" takes from it: ${problems.join('; ')}`;
    throw new ApiProblem('invalid_request', detail, { problems });
  }
  try {
    return freeze(fields).value;
  } catch (error) {
    if (!(error instanceof ValueProblemError)) throw error;
    throw new ApiProblem('too_large', `the input: ${error.message}`);
  }
}
