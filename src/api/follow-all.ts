// GET /events: the facts of all runs as they become known. One sweep serves all listeners of this process; it
// starts with the first and stops with the last. Who comes back with a Last-Event-ID first gets what was missed,
// read from the histories, so it does not matter which process that was, or for how long there was none.
import { setTimeout as pauseFor } from 'node:timers/promises';
import { TemporalUnavailableError } from '../countersign-client.ts';
import type { ApiDeps } from './deps.ts';
import type { ServerEvent } from './event-stream.ts';
import { defaultHeartbeatMs } from './event-stream.ts';
import { compareFacts, compareKeys, eventIdOf, keyOf, type FactKey, type FactOfRun } from './fact-order.ts';
import { startSweep, type HandedFact, type Sweep } from './fact-sweep.ts';
import { lookAtRuns } from './look-at-runs.ts';
import type { SkipOdd } from './odd-runs.ts';

type FollowDeps = Pick<ApiDeps, 'client' | 'log' | 'now' | 'allEvents' | 'heartbeatMs'> & {
  skipOdd: SkipOdd;
};

interface Listener {
  waiting: HandedFact[];
  wake: () => void;
  leave: () => void;
  isBehind: boolean;
}

/** A listener that is this far behind is let go: it comes back with its Last-Event-ID, from the histories. */
const mostWaiting = 10_000;
/** Facts of a catch-up that are held at a time, a few kilobytes each at most for most. */
const caughtUpAtOnce = 5_000;
/** Temporal away during a catch-up: asked again after this. */
const retryMs = 1_000;

export type FollowAll = (
  after: FactKey | undefined,
  isVisible: (fact: FactOfRun) => boolean,
  signal: AbortSignal,
) => AsyncGenerator<ServerEvent>;

export function createFollowAll(deps: FollowDeps): FollowAll {
  const listeners = new Set<Listener>();
  let current: { sweep: Sweep; stop: AbortController } | undefined;

  function hand(facts: readonly HandedFact[]): void {
    for (const listener of listeners) {
      // one that does not read must cost no more than this, so it is not left to its next read
      if (listener.waiting.length > mostWaiting) {
        listener.isBehind = true;
        listener.waiting = [];
        listener.leave();
        continue;
      }
      for (const fact of facts) listener.waiting.push(fact);
      listener.wake();
    }
  }

  function join(signal: AbortSignal): { listener: Listener; sweep: Sweep; joinedAt: number } {
    const listener: Listener = { waiting: [], wake: () => undefined, leave, isBehind: false };
    listeners.add(listener);
    if (current === undefined) {
      const stop = new AbortController();
      current = { stop, sweep: startSweep(deps, hand, stop.signal) };
    }
    const { sweep } = current;
    if (signal.aborted) leave();
    else signal.addEventListener('abort', leave, { once: true });
    return { listener, sweep, joinedAt: sweep.position() };

    // not at the end of the generator: nobody asks one whose listener is gone for its end
    function leave(): void {
      listeners.delete(listener);
      listener.wake();
      if (listeners.size > 0) return;
      current?.stop.abort();
      current = undefined;
    }
  }

  // joined when it is called, not when its first event is asked for
  return (after, isVisible, signal) => follow(join(signal), after, isVisible, signal);

  async function* follow(
    { listener, sweep, joinedAt }: ReturnType<typeof join>,
    ...[after, isVisible, signal]: Parameters<FollowAll>
  ): ReturnType<FollowAll> {
    const from = after ?? placeAfter(joinedAt);
    const caughtUp = new Map<string, number>();
    if (after === undefined) yield { id: eventIdOf(from) };
    else {
      for await (const found of catchUp(deps, after, joinedAt, signal)) {
        caughtUp.set(found.fact.temporalRunId, found.fact.seq);
        if (isVisible(found)) yield eventOf(found);
      }
    }
    const isNew = (one: HandedFact): boolean =>
      // another process may be ahead of this one, and have told it
      compareKeys(keyOf(one), from) > 0 && one.fact.seq > (caughtUp.get(one.fact.temporalRunId) ?? 0);
    let marked = performance.now();
    while (!signal.aborted) {
      if (listener.isBehind) return;
      const facts = listener.waiting.splice(0);
      const position = sweep.position();
      for (const fact of facts) {
        if (!isNew(fact) || !isVisible(fact)) continue;
        yield fact.isLate ? { fact: withRun(fact) } : eventOf(fact);
        marked = performance.now();
      }
      // where nothing happened: so that who comes back does not have to search from the last fact on
      if (performance.now() - marked >= (deps.heartbeatMs ?? defaultHeartbeatMs) && position > from.time) {
        marked = performance.now();
        yield { id: eventIdOf(placeAfter(position)) };
      }
      if (listener.waiting.length === 0 && !listener.isBehind && !signal.aborted) {
        await new Promise<void>((resolve) => (listener.wake = resolve));
      }
    }
  }
}

/** The facts after a place that were known by `until`, in order, from the histories. */
async function* catchUp(
  deps: FollowDeps,
  after: FactKey,
  until: number,
  signal: AbortSignal,
): AsyncGenerator<FactOfRun> {
  let from = after;
  while (!signal.aborted && from.time <= until) {
    let found: { facts: FactOfRun[]; isWhole: boolean };
    try {
      found = await collect(deps, from, until, signal);
    } catch (error) {
      if (!(error instanceof TemporalUnavailableError)) throw error;
      deps.log({
        level: 'warn',
        message: 'a listener could not catch up; trying again',
        error: String(error),
      });
      await pauseFor(retryMs, undefined, { signal }).catch(() => undefined);
      continue;
    }
    yield* found.facts;
    const last = found.facts.at(-1);
    if (found.isWhole || last === undefined) return;
    from = keyOf(last);
  }
}

/** The first of them, so that a listener that was away for a month costs no more memory than others. */
async function collect(
  { client, skipOdd }: FollowDeps,
  from: FactKey,
  until: number,
  signal: AbortSignal,
): Promise<{ facts: FactOfRun[]; isWhole: boolean }> {
  let facts: FactOfRun[] = [];
  let bound: FactOfRun | undefined;
  await lookAtRuns(client, from.time, async (run) => {
    if (signal.aborted) return;
    const read = await skipOdd(run, () => client.readFacts(run, 0));
    for (const one of read?.facts ?? []) {
      const fact = { ...one, run };
      const isWanted = bound === undefined || compareFacts(fact, bound) < 0;
      if (isWanted && one.knownAt <= until && compareKeys(keyOf(fact), from) > 0) facts.push(fact);
    }
    if (facts.length <= 2 * caughtUpAtOnce) return;
    facts = facts.sort(compareFacts).slice(0, caughtUpAtOnce);
    bound = facts.at(-1);
  });
  return { facts: facts.sort(compareFacts), isWhole: bound === undefined };
}

/** After everything that was known by then. */
function placeAfter(time: number): FactKey {
  return { time: time + 1, runId: '', seq: 0 };
}

function eventOf(fact: FactOfRun): ServerEvent {
  return { id: eventIdOf(keyOf(fact)), fact: withRun(fact) };
}

function withRun({ run, fact }: FactOfRun) {
  return { runId: run.runId, ...fact };
}
