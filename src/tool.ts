// What a tool is: the one thing that users write to let countersign act for them. The schema is applied
// once, when the call is frozen; `run` gets exactly the frozen value, never a second parse of it.
import type { z } from 'zod';
import type { Idempotency } from './core/case.ts';

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
  /** Time of one attempt in milliseconds. Default 60,000. */
  timeoutMs?: number;
  /** Attempts at most, `key` and `lookup` only. Default 10. */
  attempts?: number;
  run(context: ToolContext, args: z.output<Schema>): Promise<Output>;
}

export type Tool = ToolDefinition;

/**
 * Thrown by a tool when the target refused and the effect surely did not happen (a 4xx, a declined card).
 * It is not retried, and the run fails with `effect_failed`. Anything else thrown is unclear.
 */
export class ToolRefusedError extends Error {
  override readonly name = 'ToolRefusedError';
}
