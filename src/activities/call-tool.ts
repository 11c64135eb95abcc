// One attempt of one call, and what its end means. Three ends: it happened, it surely did not (`effect_failed`),
// or nobody can know (P5). An end is only as sure as the attempts before it, so each leaves word for the next in
// the heartbeat details; what left none (a killed worker) counts as unclear.
import { ApplicationFailure, type Context } from '@temporalio/activity';
import type { FailureCode } from '../core/failures.ts';
import type { Json } from '../core/json.ts';
import {
  keyTtlMs,
  ToolInDoubtError,
  ToolRefusedError,
  ToolRetryError,
  type Found,
  type Tool,
  type ToolContext,
} from '../tool.ts';

/** A quarter of the heartbeat timeout of policies.ts, so that three lost ones are no death. */
const heartbeatEveryMs = 1_000;

export interface ToolCall {
  tool: Tool;
  /** of the effect in its run */
  position: string;
  args: Json;
  key: string;
  context: Context;
  /** after a workflow reset: since when the key may have been used already, in milliseconds since the epoch */
  keysSince?: number;
  log: ToolContext['log'];
}

/** What an attempt leaves for the next one, as heartbeat details. */
interface Progress {
  v: 1;
  /** for who describes the run (src/run-description.ts): which effect it is that is tried */
  position: string;
  /** when the first attempt started, in milliseconds since the epoch */
  startedAt: number;
  attempt: number;
  /** this attempt and all before it surely changed nothing */
  clear: boolean;
}

interface Attempt extends ToolCall {
  toolContext: ToolContext;
  /** all attempts before this one surely changed nothing */
  clearBefore: boolean;
  firstStartedAt: number;
  /** Tells the server, and with that the next attempt, how things stand. */
  beat: (clear: boolean) => void;
}

/** The tool's output. @throws what ends the attempt; what may be tried again is retryable */
export async function callTool(call: ToolCall): Promise<unknown> {
  const attempt = openAttempt(call);
  const timer = setInterval(() => attempt.beat(false), heartbeatEveryMs);
  try {
    return await runAttempt(attempt);
  } finally {
    clearInterval(timer);
  }
}

/** @throws ApplicationFailure `effect_in_doubt`, never retried */
export function inDoubt(message: string): ApplicationFailure {
  return refusal('effect_in_doubt', message);
}

export function refusal(code: FailureCode, message: string): ApplicationFailure {
  return ApplicationFailure.nonRetryable(message, code);
}

function openAttempt(call: ToolCall): Attempt {
  const { context, key, log, position } = call;
  const { attempt, scheduledTimestampMs } = context.info;
  const before = progressOf(context.info.heartbeatDetails);
  // The schedule is never later than the first start, so without word of it the key only looks older.
  const firstStartedAt = before?.startedAt ?? (attempt === 1 ? Date.now() : scheduledTimestampMs);
  const beat = (clear: boolean) => {
    context.heartbeat({ v: 1, position, startedAt: firstStartedAt, attempt, clear } satisfies Progress);
  };
  return {
    ...call,
    firstStartedAt,
    // a first attempt that finds word of another is one of a reset activity
    clearBefore: before === undefined ? attempt === 1 : before.clear && before.attempt === attempt - 1,
    beat,
    toolContext: {
      idempotencyKey: key,
      signal: context.cancellationSignal,
      attempt,
      log,
      heartbeat: () => beat(false),
    },
  };
}

function progressOf(details: unknown): Progress | undefined {
  const progress = details as Partial<Progress> | null | undefined;
  return progress?.v === 1 && Number.isSafeInteger(progress.startedAt) ? (progress as Progress) : undefined;
}

async function runAttempt(attempt: Attempt): Promise<unknown> {
  const { tool, args, toolContext } = attempt;
  if (tool.safe?.(args) === true) return readOnly(attempt);
  if (tool.idempotency === 'lookup') {
    const found = await askBefore(attempt);
    if (found.found === true) return found.output;
  }
  checkRepeat(attempt);
  checkKeyAge(attempt);
  // A lookup tool was just told that no earlier attempt happened.
  const clearBefore = attempt.clearBefore || tool.idempotency === 'lookup';
  try {
    return await tool.run(toolContext, args);
  } catch (error) {
    if (error instanceof ToolRefusedError) throw refused(error, attempt, clearBefore);
    const clear = error instanceof ToolRetryError && error.clear;
    if (tool.idempotency === 'lookup' && !clear) return askAfter(attempt, error);
    throw unfinished(error, attempt, clear && clearBefore);
  }
}

/** A call that only reads cannot be in doubt: whatever goes wrong, nothing happened. */
async function readOnly(attempt: Attempt): Promise<unknown> {
  try {
    return await attempt.tool.run(attempt.toolContext, attempt.args);
  } catch (error) {
    if (error instanceof ToolRefusedError || error instanceof ToolInDoubtError) {
      throw refusal('effect_failed', error.message);
    }
    throw unfinished(error, attempt, true);
  }
}

/** Whether an earlier attempt, or one before a reset, carried the key out already. */
async function askBefore(attempt: Attempt): Promise<Found> {
  let found: Found;
  try {
    found = await ask(attempt);
  } catch (error) {
    // Only the question failed, and whatever it says is no word about the effect: it is asked again.
    attempt.beat(attempt.clearBefore);
    throw retryable(
      `could not ask whether it was carried out already: ${messageOf(error)}`,
      'lookup_failed',
      delayOf(error, attempt),
    );
  }
  if (found.found === 'unknown')
    throw inDoubt('before the attempt: the target cannot tell whether it happened');
  return found;
}

/** After an unclear failure: the answer decides; without one the next attempt asks again. */
async function askAfter(attempt: Attempt, error: unknown): Promise<unknown> {
  let found: Found | undefined;
  try {
    found = await ask(attempt);
  } catch {
    throw unfinished(error, attempt, false);
  }
  if (found.found === true) return found.output;
  if (found.found === false) throw unfinished(error, attempt, true);
  throw inDoubt(`${messageOf(error)}; and the target cannot tell whether it happened`);
}

async function ask({ tool, toolContext, args }: Attempt): Promise<Found> {
  const found = await tool.find?.(toolContext, args);
  // A tool without find(), or an answer that is none: only a person can tell.
  if (found?.found === true || found?.found === false) return found;
  return { found: 'unknown' };
}

/**
 * The retry policy is of the tool as it was frozen; a worker that was deployed since may know it as `none`.
 * @throws ApplicationFailure `effect_in_doubt` when nothing would keep this attempt from being a second effect
 */
function checkRepeat({ tool, context, clearBefore }: Attempt): void {
  if (tool.idempotency !== 'none' || clearBefore) return;
  throw inDoubt(
    `attempt ${context.info.attempt} was not made: an earlier one ended unclear, and "${tool.name}" says ` +
      `that its target takes no key (idempotency 'none')`,
  );
}

/**
 * A reset run does not see the attempts that it was reset from, so after one each key may be as old as the run.
 * @throws ApplicationFailure `effect_in_doubt` when the target may have forgotten the key of an earlier attempt
 */
function checkKeyAge({ tool, context, firstStartedAt, clearBefore, keysSince }: Attempt): void {
  const ttl = keyTtlMs(tool.keyTtl);
  if (ttl === undefined || (clearBefore && keysSince === undefined)) return;
  const age = Date.now() - Math.min(keysSince ?? Infinity, firstStartedAt);
  if (age < ttl) return;
  const since = `${Math.round(age / 1_000)} s ago`;
  const why =
    keysSince === undefined
      ? `the first one started ${since}`
      : `the run was reset and began ${since}, so the key may have been used since then`;
  throw inDoubt(
    `attempt ${context.info.attempt} was not made: ${why}, and ` +
      `"${tool.name}" says that its target may forget a key after ${Math.round(ttl / 1_000)} s`,
  );
}

function refused(error: ToolRefusedError, { context }: Attempt, clearBefore: boolean): ApplicationFailure {
  if (clearBefore) return refusal('effect_failed', error.message);
  const { attempt } = context.info;
  return inDoubt(`attempt ${attempt} was refused (${error.message}), an earlier one ended unclear`);
}

/** An attempt that may be followed by another; its type is what remains when none does. */
function unfinished(error: unknown, attempt: Attempt, clear: boolean): unknown {
  if (error instanceof ToolInDoubtError && !clear) return inDoubt(error.message);
  attempt.beat(clear);
  const delay = delayOf(error, attempt);
  if (clear) return retryable(messageOf(error), 'effect_failed', delay);
  return error instanceof ToolRetryError ? retryable(error.message, error.name, delay) : error;
}

function retryable(message: string, type: string, nextRetryDelay: number | undefined): ApplicationFailure {
  return ApplicationFailure.create({
    message,
    type,
    nonRetryable: false,
    ...(nextRetryDelay === undefined ? {} : { nextRetryDelay }),
  });
}

/** A target's wish for a later attempt, never sooner than the policy's own backoff. */
function delayOf(error: unknown, { context }: Attempt): number | undefined {
  const wish = error instanceof ToolRetryError ? error.retryAfterMs : undefined;
  if (wish === undefined || !Number.isFinite(wish) || wish <= 0) return undefined;
  return Math.ceil(Math.max(wish, backoffMs(context)));
}

/** As the server computes it from the policy, which comes with the task in milliseconds. */
function backoffMs({ info }: Context): number {
  const policy: { initialInterval?: unknown; maximumInterval?: unknown } = info.retryPolicy ?? {};
  const factor = info.retryPolicy?.backoffCoefficient ?? 2;
  const backoff = Number(policy.initialInterval ?? 0) * factor ** (info.attempt - 1);
  return Math.min(backoff, Number(policy.maximumInterval ?? Infinity)) || 0;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
