// Turns a proposed call into exactly what will be shown, hashed and executed: templates resolved, the
// tool's schema with its defaults and coercions applied once, canonicalised, hashed. Used with and
// without a gate, so that both freeze alike.
import { ValueProblemError } from '../core/canonical.ts';
import type { EffectOptions } from '../core/case.ts';
import type { FailureCode } from '../core/failures.ts';
import { hashPayload } from '../core/hash.ts';
import type { Json } from '../core/json.ts';
import type { Scope } from '../core/recording.ts';
import { resolve } from '../core/spec/template.ts';
import type { Tool } from '../tool.ts';

/** One minute: the time most HTTP targets answer in or never. */
const defaultTimeoutMs = 60_000;
/** Ten attempts wait about three minutes in all (policies.ts), and take their own time on top. */
const defaultAttempts = 10;

export interface FrozenCall {
  arguments: Json;
  payloadHash: string;
  effect: EffectOptions;
}

/** A call or case that cannot be frozen; it becomes a recorded `problem`, and nobody is asked. */
export class FreezeProblem extends Error {
  override readonly name = 'FreezeProblem';
  readonly code: FailureCode;

  constructor(code: FailureCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** @throws FreezeProblem */
export async function freezeCall(
  tools: readonly Tool[],
  position: string,
  call: { tool: string; arguments: Json },
  scope: Scope | undefined,
): Promise<FrozenCall> {
  const tool = tools.find(({ name }) => name === call.tool);
  if (tool === undefined) {
    const known = tools.map(({ name }) => name).join(', ') || 'none';
    throw new FreezeProblem('unknown_tool', `step "${position}": no tool "${call.tool}"; known: ${known}`);
  }
  const resolved = resolveIn(position, call.arguments, scope);
  const parsed = await tool.arguments.safeParseAsync(resolved);
  if (!parsed.success) {
    const problems = parsed.error.issues.map(
      ({ path, message }) => `${path.join('.') || 'arguments'}: ${message}`,
    );
    throw new FreezeProblem(
      'invalid_arguments',
      `step "${position}", tool "${call.tool}": ${problems.join('; ')}`,
    );
  }
  const { hash, payload } = frozenHash(position, { tool: call.tool, arguments: parsed.data });
  return {
    arguments: payload.arguments as Json,
    payloadHash: hash,
    effect: effectOptions(tool, payload.arguments),
  };
}

/** Resolves templates; a value without a scope is taken as it is. @throws FreezeProblem */
export function resolveIn(position: string, value: Json, scope: Scope | undefined): Json {
  if (scope === undefined) return value;
  const resolved = resolve(value, scope);
  if ('problem' in resolved) {
    throw new FreezeProblem(resolved.problem.code, `step "${position}": ${resolved.problem.message}`);
  }
  return resolved.value;
}

/** Hashes a payload, naming the step when it cannot be. @throws FreezeProblem */
export function frozenHash(
  position: string,
  payload: Record<string, unknown>,
): { hash: string; payload: Record<string, unknown> } {
  try {
    return hashPayload(payload) as { hash: string; payload: Record<string, unknown> };
  } catch (error) {
    if (!(error instanceof ValueProblemError)) throw error;
    throw new FreezeProblem(error.code, `step "${position}": ${error.message}`);
  }
}

function effectOptions(tool: Tool, args: unknown): EffectOptions {
  // A call that only reads is as harmless to repeat as one that the target recognises by its key.
  const idempotency = tool.safe?.(args) === true ? 'key' : tool.idempotency;
  return {
    idempotency,
    startToCloseMs: tool.timeoutMs ?? defaultTimeoutMs,
    maximumAttempts: idempotency === 'none' ? 1 : (tool.attempts ?? defaultAttempts),
  };
}
