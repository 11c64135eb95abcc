// The facts of one run as they come: the trail from a place in it, then what is added, until the run's end.
// Temporal pushes nothing, so a run is looked at (one cheap call) and its trail read when it has changed.
import { setTimeout as pauseFor } from 'node:timers/promises';
import { TemporalUnavailableError, type RunDescription } from '../countersign-client.ts';
import type { TrailFact } from '../core/trail-fact.ts';
import type { ApiDeps } from './deps.ts';

type FollowDeps = Pick<ApiDeps, 'client' | 'log' | 'followPausesMs'>;

/**
 * Milliseconds between two looks: 200 while something happens, which nobody sees as a delay; growing to 2 s
 * while a run waits, so that a thousand listeners cost Temporal 500 small calls a second.
 */
const defaultPausesMs = { first: 200, longest: 2_000 };
const growth = 1.5;

/** Facts with a higher `seq` than `after`, each once. Ends with the run, and when `signal` does. */
export async function* followRun(
  { client, log, followPausesMs: pauses = defaultPausesMs }: FollowDeps,
  runId: string,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<TrailFact> {
  let seen = after;
  let last: RunDescription | undefined;
  let pauseMs = pauses.first;
  while (!signal.aborted) {
    let facts: TrailFact[] = [];
    let isOver = false;
    try {
      const run = await client.describeRun(runId);
      // nothing is kept of it any more
      if (run === undefined) return;
      if (hasChanged(last, run)) {
        facts = (await client.readTrail(runId)).filter(({ seq }) => seq > seen);
        last = run;
        pauseMs = pauses.first;
      }
      // closed before its trail was read, so that the trail was the whole of it
      isOver = run.closeStatus !== undefined;
    } catch (error) {
      if (!(error instanceof TemporalUnavailableError)) throw error;
      log({
        level: 'warn',
        message: 'a run could not be followed; trying again',
        runId,
        error: error.message,
      });
    }
    for (const fact of facts) {
      seen = fact.seq;
      yield fact;
    }
    if (isOver) return;
    await pauseFor(pauseMs, undefined, { signal }).catch(() => undefined);
    pauseMs = Math.min(pauseMs * growth, pauses.longest);
  }
}

function hasChanged(last: RunDescription | undefined, run: RunDescription): boolean {
  return (
    last === undefined ||
    last.temporalRunId !== run.temporalRunId ||
    last.historyLength !== run.historyLength ||
    last.closeStatus !== run.closeStatus
  );
}
