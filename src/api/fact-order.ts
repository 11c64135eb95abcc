// The one order of the facts of all runs: by the time at which they could be known, then run, then seq. It is
// read from histories alone, so every API process comes to the same, and an event id is a place in it.
import type { KnownFact } from '../core/trail-fact.ts';
import type { RunDescription } from '../countersign-client.ts';
import { ApiProblem } from './problem.ts';

/** A place in the order; `runId: ''` is before every fact of its time. */
export interface FactKey {
  /** milliseconds since the epoch */
  time: number;
  runId: string;
  seq: number;
}

export interface FactOfRun extends KnownFact {
  run: RunDescription;
}

export function keyOf({ run, fact, knownAt }: FactOfRun): FactKey {
  return { time: knownAt, runId: run.runId, seq: fact.seq };
}

export function compareKeys(a: FactKey, b: FactKey): number {
  if (a.time !== b.time) return a.time - b.time;
  if (a.runId !== b.runId) return a.runId < b.runId ? -1 : 1;
  return a.seq - b.seq;
}

export function compareFacts(a: FactOfRun, b: FactOfRun): number {
  return compareKeys(keyOf(a), keyOf(b));
}

/** `<time>/<run>/<seq>`, the run id escaped: an event id has no line breaks and no NUL (WHATWG HTML, 9.2). */
export function eventIdOf({ time, runId, seq }: FactKey): string {
  return `${new Date(time).toISOString()}/${encodeURIComponent(runId)}/${seq}`;
}

/** How far an id may be ahead of this process's clock: it has the time of Temporal's servers. */
const mostAheadMs = 3_600_000;

/** Undefined without the header. @throws ApiProblem invalid_request: none of ours, or from after `now` */
export function readLastKey(header: string | undefined, now: number): FactKey | undefined {
  const text = header?.trim() ?? '';
  if (text === '') return undefined;
  const parts = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)\/([^/]*)\/(0|[1-9]\d{0,8})$/.exec(text);
  const time = Date.parse(parts?.[1] ?? '');
  const runId = unescape(parts?.[2]);
  const isOurs = !Number.isNaN(time) && time <= now + mostAheadMs && runId !== undefined;
  if (isOurs) return { time, runId, seq: Number(parts?.[3]) };
  const rule = 'Last-Event-ID must be the id of an event of this stream: `<time>/<run>/<seq>`';
  throw new ApiProblem('invalid_request', rule, { problems: [rule] });
}

function unescape(text: string | undefined): string | undefined {
  try {
    return text === undefined ? undefined : decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
