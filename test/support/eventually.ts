// Waiting for a condition instead of for a time.
import { setTimeout as sleep } from 'node:timers/promises';

/** Between two looks: short against what is waited for, long against a query's cost (about 5 ms). */
const pauseMs = 25;
/** Far above what any awaited thing needs, so that a slow machine never decides a test. */
const defaultTimeoutMs = 180_000;

export interface EventuallyOptions {
  timeoutMs?: number;
  /** Between two looks, where one costs more than usual. */
  pauseMs?: number;
  /** what is being waited for; said when it does not come */
  message?: string;
}

/**
 * Calls `check` until it gives something truthy and returns that. A throw counts as "not yet", so assertions
 * may stand in it before a final `return true`; the last throw is the cause of the error when time is up.
 */
export async function eventually<Result extends NonNullable<unknown> | null | undefined>(
  check: () => Result | Promise<Result>,
  options: EventuallyOptions = {},
): Promise<Truthy<Result>> {
  const timeoutMs = options.timeoutMs ?? defaultTimeoutMs;
  const deadline = performance.now() + timeoutMs;
  let last: unknown;
  for (;;) {
    try {
      const result = await check();
      if (result) return result as Truthy<Result>;
      last = result;
    } catch (error) {
      last = error;
    }
    if (performance.now() > deadline) {
      const said = last instanceof Error ? last.message : JSON.stringify(last);
      throw new Error(
        `${options.message ?? 'the awaited condition'} did not come within ${String(timeoutMs)} ms; last: ${said}`,
        { cause: last },
      );
    }
    await sleep(options.pauseMs ?? pauseMs);
  }
}

type Truthy<Value> = Exclude<Value, undefined | null | false | 0 | ''>;
