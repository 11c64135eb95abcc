// Looks at all runs again and again, and hands their new facts to all listeners of this process, in one order.
// Temporal pushes nothing, so a sweep asks each open run for the length of its history (no worker is needed)
// and reads the ones that grew. What a sweep that began at S has not seen became known after S; facts are
// handed out when they are `holdMs` old by then, so that those of other runs cannot come before them.
import { setTimeout as pauseFor } from 'node:timers/promises';
import { TemporalUnavailableError, type RunDescription } from '../countersign-client.ts';
import type { ApiDeps } from './deps.ts';
import { compareFacts, type FactOfRun } from './fact-order.ts';
import { closeLagMs, lookAtRuns } from './look-at-runs.ts';
import type { SkipOdd } from './odd-runs.ts';

export interface HandedFact extends FactOfRun {
  /** its run was in no list when facts like it were handed out: it comes now, and is no place to go on from */
  isLate: boolean;
}

export interface SweepOptions {
  /** How old a fact is when it is handed out: the lag of Temporal's lists, and of clocks. Default 2,000. */
  holdMs?: number;
  /** Between two sweeps at least. Default 500: with `holdMs`, nobody feels the difference. */
  pauseMs?: number;
}

type SweepDeps = Pick<ApiDeps, 'client' | 'log' | 'now' | 'allEvents'> & { skipOdd: SkipOdd };

/** What is known of one execution. */
interface Watched {
  historyLength: number;
  /** the last fact that was taken over */
  seq: number;
  isOver: boolean;
  /** the sweep that saw it last */
  seenAt: number;
}

const defaults = { holdMs: 2_000, pauseMs: 500 };

/** A sweep takes at most a fifth of the time, so its load on Temporal is bounded however many runs there are. */
const restFactor = 4;
/** An execution that the lists do not show any more is remembered so long: they may show it again. */
const forgetAfterMs = 600_000;

export interface Sweep {
  /** All facts that were known by then have been handed out; milliseconds. */
  position(): number;
}

/** Runs until `signal`. `hand` gets the new facts after each sweep, none too. */
export function startSweep(
  deps: SweepDeps,
  hand: (facts: readonly HandedFact[]) => void,
  signal: AbortSignal,
): Sweep {
  const { client, log, now, skipOdd } = deps;
  const { holdMs, pauseMs } = { ...defaults, ...deps.allEvents };
  const startedAt = now() - holdMs;
  const watched = new Map<string, Watched>();
  let pending: FactOfRun[] = [];
  let position = startedAt;
  let closedSince = startedAt;

  async function look(run: RunDescription, sweptAt: number): Promise<void> {
    const known = watched.get(run.temporalRunId);
    if (known?.isOver === true) {
      known.seenAt = sweptAt;
      return;
    }
    const read = await client.readFacts(run, known?.historyLength ?? 0);
    // asked for again: a sweep that failed leaves its calls in flight
    const { historyLength, seq } = watched.get(run.temporalRunId) ?? { historyLength: 0, seq: 0 };
    const facts = (read?.facts ?? []).filter(({ fact }) => fact.seq > seq);
    for (const one of facts) if (one.knownAt > startedAt) pending.push({ ...one, run });
    watched.set(run.temporalRunId, {
      historyLength: Math.max(historyLength, read?.historyLength ?? 0),
      seq: facts.at(-1)?.fact.seq ?? seq,
      // closed before it was read, so that this was the whole of it
      isOver: run.closedAt !== undefined,
      seenAt: sweptAt,
    });
  }

  async function sweep(): Promise<void> {
    const sweptAt = now();
    await lookAtRuns(client, closedSince, (run) => skipOdd(run, () => look(run, sweptAt)));
    closedSince = sweptAt;
    for (const [id, { seenAt, isOver }] of watched) {
      const forgotten = sweptAt - seenAt > (isOver ? 2 * closeLagMs : forgetAfterMs);
      if (forgotten) watched.delete(id);
    }
    const until = Math.max(position, sweptAt - holdMs);
    const due = pending.filter(({ knownAt }) => knownAt <= until).sort(compareFacts);
    pending = pending.filter(({ knownAt }) => knownAt > until);
    const handed = due.map((one) => ({ ...one, isLate: one.knownAt <= position }));
    position = until;
    if (!signal.aborted) hand(handed);
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      const began = performance.now();
      try {
        await sweep();
      } catch (error) {
        const isAway = error instanceof TemporalUnavailableError;
        const message = isAway
          ? 'the runs could not be followed; trying again'
          : 'a sweep over the runs failed';
        log({ level: isAway ? 'warn' : 'error', message, error: String(error) });
      }
      const rest = Math.max(pauseMs, restFactor * (performance.now() - began));
      await pauseFor(rest, undefined, { signal }).catch(() => undefined);
    }
  }

  void run();
  return { position: () => position };
}
