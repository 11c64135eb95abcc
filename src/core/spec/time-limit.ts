// Stops synchronous work that takes too long, such as a regular expression that backtracks or references
// that multiply: both can be written into a few bytes of a schema and would block the process for hours.
// V8 ends the work at a loop or a backtrack; nothing in it is run to its end, `finally` blocks included.
import { createContext, Script } from 'node:vm';

export class TimeLimitError extends Error {
  override readonly name = 'TimeLimitError';
}

const context = createContext({ work: undefined as (() => unknown) | undefined });
const script = new Script('work()');

/** The result of `work`, or what it throws. @throws TimeLimitError after `limitMs` */
export function withinTime<T>(limitMs: number, work: () => T): T {
  context['work'] = work;
  try {
    return script.runInContext(context, { timeout: limitMs }) as T;
  } catch (error) {
    // Made by the host, so only its code tells.
    const { code } = error as { code?: unknown };
    if (code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
    throw new TimeLimitError(`it takes longer than ${limitMs} ms`, { cause: error });
  } finally {
    context['work'] = undefined;
  }
}
