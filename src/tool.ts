// What a tool is: the one thing that users write to let countersign act for them. The schema is applied
// once, when the call is frozen; `run` gets exactly the frozen value, never a second parse of it.
import type { z } from 'zod';
import type { Idempotency } from './core/case.ts';
import { durationRule, maxDurationMs, parseDuration } from './core/duration.ts';

/** Handed to every `run`. */
export interface ToolContext {
  /** Send this downstream: the same over retry, crash, replay, reset and redeploy; another call has another. */
  idempotencyKey: string;
  /** Aborted when the run is cancelled, the attempt's time is up or the worker shuts down. */
  signal: AbortSignal;
  /** From 1. Never put it into anything that the target sees. */
  attempt: number;
  log: (message: string, fields?: Record<string, unknown>) => void;
  /** Says that work goes on; also sent automatically every second. */
  heartbeat: () => void;
}

/**
 * What the target says of an idempotency key. `false` is the word that it was not carried out and will not be:
 * while an earlier request may still be on its way, the answer is `'unknown'`.
 */
export type Found<Output = unknown> =
  { found: true; output: Output } | { found: false } | { found: 'unknown' };

export interface ToolDefinition<Schema extends z.ZodType = z.ZodType, Output = unknown> {
  name: string;
  description?: string;
  arguments: Schema;
  /**
   * `key`: the target carries out each idempotency key once. `lookup`: it can be asked whether a key was
   * carried out. `none`: neither; then there is one attempt, and an unclear end is in doubt (P5).
   * No default: a wrong guess pays twice.
   */
  idempotency: Idempotency;
  /** Never run without a grant, whoever schedules the activity. Default false. */
  requiresApproval?: boolean;
  /** The longest idempotency key that the target takes, in characters (at least 43). */
  keyMaxLength?: number;
  /**
   * How long the target remembers a key, in milliseconds or as "24h": after that, counted from the start of
   * the first attempt, there is no automatic attempt, and the effect is in doubt. Give less than the target
   * keeps: an attempt that starts just before the end may arrive `timeoutMs` later.
   */
  keyTtl?: string | number;
  /** Time of one attempt in milliseconds. Default 60,000. */
  timeoutMs?: number;
  /** Attempts at most, where there may be more than one. Default 10. */
  attempts?: number;
  /**
   * `lookup` only, and there required: whether `context.idempotencyKey` was carried out. Asked before every
   * attempt, the first too (a reset may have come after it happened), and after every unclear failure.
   */
  find?(context: ToolContext, args: z.output<Schema>): Promise<Found<Output>>;
  /**
   * Whether this call only reads, so that repeating it changes nothing (RFC 9110 §9.2.1): then it may have
   * several attempts whatever the target takes. Absent: no call does.
   */
  safe?(args: z.output<Schema>): boolean;
  run(context: ToolContext, args: z.output<Schema>): Promise<Output>;
}

export type Tool = ToolDefinition;

/**
 * Checks a tool's definition and returns it. @throws TypeError for a bad name, a missing `idempotency`,
 * `lookup` without `find`, a `keyTtl` that is no duration, or a `keyMaxLength` under 43 (a SHA-256 in base64url)
 */
export function defineTool<Schema extends z.ZodType, Output>(
  definition: ToolDefinition<Schema, Output>,
): Tool {
  const { name, idempotency, keyMaxLength } = definition;
  const badName = toolNameProblem(name);
  if (badName !== undefined) throw new TypeError(`tool ${JSON.stringify(name)}: ${badName}`);
  if (!['key', 'lookup', 'none'].includes(idempotency)) {
    throw new TypeError(
      `tool "${name}": idempotency must be "key", "lookup" or "none"; a guess would pay twice`,
    );
  }
  if (keyMaxLength !== undefined && keyMaxLength < 43) {
    throw new TypeError(`tool "${name}": keyMaxLength must be at least 43, got ${keyMaxLength}`);
  }
  const problem = repeatProblem(definition);
  if (problem !== undefined) throw new TypeError(`tool "${name}": ${problem}`);
  return definition;
}

/** Models take names of up to 64 of these characters, and a tool may be offered to one. */
export function toolNameProblem(name: unknown): string | undefined {
  const isName = typeof name === 'string' && /^[A-Za-z0-9._-]{1,64}$/.test(name);
  return isName ? undefined : 'its name must be 1 to 64 characters of A-Z a-z 0-9 . _ -';
}

/** What is wrong with how a tool says it may be repeated, or undefined. */
export function repeatProblem(
  tool: Partial<Record<'idempotency' | 'find' | 'keyTtl', unknown>>,
): string | undefined {
  const { idempotency, find, keyTtl } = tool;
  if (idempotency === 'lookup' && typeof find !== 'function') {
    return "idempotency 'lookup' needs find(context, arguments), which says whether a key was carried out";
  }
  if (idempotency !== 'lookup' && find !== undefined) {
    return `find() is asked only with idempotency 'lookup', got ${JSON.stringify(idempotency)}`;
  }
  if (keyTtl === undefined) return undefined;
  if (idempotency === 'none') return "keyTtl is for targets that take a key, and idempotency is 'none'";
  if (keyTtlMs(keyTtl) === undefined) {
    return `keyTtl must be ${durationRule}, or as many milliseconds, got ${JSON.stringify(keyTtl)}`;
  }
  return undefined;
}

/** A tool's `keyTtl` in milliseconds; undefined when it is none. */
export function keyTtlMs(keyTtl: unknown): number | undefined {
  const ms = typeof keyTtl === 'string' ? parseDuration(keyTtl) : keyTtl;
  const isDuration = Number.isSafeInteger(ms) && (ms as number) > 0 && (ms as number) <= maxDurationMs;
  return isDuration ? (ms as number) : undefined;
}

/**
 * Thrown by a tool when the target refused and this call surely did not happen (a 4xx, a declined card). It
 * is not retried, and the run fails with `effect_failed`; after an attempt that ended unclear it is in doubt,
 * since a refusal now (an expired token) says nothing of what happened then.
 */
export class ToolRefusedError extends Error {
  override readonly name = 'ToolRefusedError';
}

/** Thrown by a tool to be tried again, where its idempotency allows a second attempt. */
export class ToolRetryError extends Error {
  override readonly name = 'ToolRetryError';
  /** Not before so many milliseconds; the retry policy's own backoff when that is longer. */
  readonly retryAfterMs: number | undefined;
  /** This attempt surely changed nothing: nothing was sent, or it was turned away unread (a 429). */
  readonly clear: boolean;

  constructor(message: string, options: { retryAfterMs?: number | undefined; clear?: boolean } = {}) {
    super(message);
    this.retryAfterMs = options.retryAfterMs;
    this.clear = options.clear ?? false;
  }
}

/**
 * Thrown by a tool when it cannot know whether the effect happened, and another attempt would not tell: a
 * person is asked. Any other error is unclear too, but tried again where the tool's idempotency allows.
 */
export class ToolInDoubtError extends Error {
  override readonly name = 'ToolInDoubtError';
}
