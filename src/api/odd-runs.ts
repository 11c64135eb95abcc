// Runs that cannot be read, for a reason that is in the run and not in Temporal: what serves all runs leaves
// them out, and says so once a run.
import { TemporalUnavailableError, type RunDescription } from '../countersign-client.ts';
import { createBoundedMap } from './bounded-map.ts';
import type { ApiDeps } from './deps.ts';

/** Runs that are remembered as told of. */
const remembered = 10_000;

export type SkipOdd = <T>(
  run: Pick<RunDescription, 'runId' | 'temporalRunId'>,
  read: () => T | Promise<T>,
) => Promise<T | undefined>;

/** @returns what `read` gives; undefined, and one line in the log, where the run makes it throw */
export function createSkipOdd(log: ApiDeps['log']): SkipOdd {
  const told = createBoundedMap<true>(remembered);
  return async ({ runId, temporalRunId }, read) => {
    try {
      return await read();
    } catch (error) {
      if (error instanceof TemporalUnavailableError) throw error;
      if (told.get(temporalRunId) === undefined) {
        told.set(temporalRunId, true);
        const message = 'a run cannot be read and is left out';
        log({ level: 'error', message, runId, temporalRunId, error: String(error) });
      }
      return undefined;
    }
  };
}
