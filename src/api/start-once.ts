// What every start has in common. The run id is the idempotency: given, or derived from who asks and their
// Idempotency-Key, so that a repeated request finds the run that the first one started, in any process and
// at any time; the hash of the request tells a repeated one from another.
import { randomUUID } from 'node:crypto';
import type { CountersignClient, RunDescription, StartRunResult } from '../countersign-client.ts';
import { workflowIdProblem } from '../core/approval-key.ts';
import { canonicalize } from '../core/canonical.ts';
import { sha256Hex } from '../core/hash.ts';
import { printable } from '../core/json-value.ts';
import type { Principal } from './auth.ts';
import { ApiProblem } from './problem.ts';

export interface StartIdentity {
  /** chosen by the caller */
  id?: string;
  idempotencyKey?: string;
}

export interface StartPlace {
  runId: string;
  requestHash: string;
}

/** `run` is there when an earlier, equal request had started it. */
export type StartedOnce<Checked> =
  { runId: string; run: RunDescription } | { runId: string; run?: undefined; root: string; checked: Checked };

export interface StartWork<Checked> {
  /** Judges the request. @throws ApiProblem */
  check(): Checked | Promise<Checked>;
  start(checked: Checked): Promise<StartRunResult>;
}

/** Of the ids of runs that webhooks start. */
export const hookRunPrefix = 'hook-';

/** As `runIdOf` makes them. */
const keyedRunId = /^run-[0-9a-f]{26}$/;

/** Lets one request at a time through for each Idempotency-Key. */
export function createStartDesk(client: Pick<CountersignClient, 'describeRun'>) {
  const inFlight = new Set<string>();
  return async function startOnce<Checked>(
    principal: Principal,
    { idempotencyKey }: StartIdentity,
    place: StartPlace,
    work: StartWork<Checked>,
  ): Promise<StartedOnce<Checked>> {
    if (idempotencyKey === undefined) return attempt(client, place, work);
    const request = JSON.stringify([principal.id, idempotencyKey]);
    if (inFlight.has(request)) {
      throw new ApiProblem(
        'idempotency_in_flight',
        'the first request with this Idempotency-Key is still running',
      );
    }
    inFlight.add(request);
    try {
      return await attempt(client, place, work);
    } finally {
      inFlight.delete(request);
    }
  };
}

export type StartDesk = ReturnType<typeof createStartDesk>;

async function attempt<Checked>(
  client: Pick<CountersignClient, 'describeRun'>,
  { runId, requestHash }: StartPlace,
  { check, start }: StartWork<Checked>,
): Promise<StartedOnce<Checked>> {
  let checked: Checked;
  try {
    checked = await check();
  } catch (problem) {
    // spec or tool may have changed since the first request; what that one started is still the answer
    const run = await client.describeRun(runId);
    if (run?.requestHash !== requestHash) throw problem;
    return { runId, run };
  }
  const result = await start(checked);
  if (result.started) return { runId, root: result.root, checked };
  if (result.requestHash !== requestHash) throw reused(runId);
  const run = await client.describeRun(runId);
  // it ended and was deleted between the two calls
  if (run === undefined) throw reused(runId);
  return { runId, run };
}

/** @throws ApiProblem invalid_request for an id that cannot be one */
export function runIdOf(principal: Principal, { id, idempotencyKey }: StartIdentity): string {
  if (id !== undefined) {
    const problem = workflowIdProblem(id) ?? pathProblem(id) ?? reservedProblem(id);
    if (problem !== undefined) throw new ApiProblem('invalid_request', `id: ${problem}`);
    return id;
  }
  if (idempotencyKey === undefined) return randomUUID();
  // 104 bits: no two pairs meet, and it is short enough to be read aloud
  return `run-${sha256Hex(canonicalize([principal.id, idempotencyKey])).slice(0, 26)}`;
}

/** Whoever could take an id that follows from an event or a key would keep its run from being started. */
function reservedProblem(id: string): string | undefined {
  const rule = id.startsWith(hookRunPrefix)
    ? `ids that begin with "${hookRunPrefix}" are those of webhooks`
    : keyedRunId.test(id)
      ? '"run-" and 26 hex digits is an id that is made from an Idempotency-Key'
      : undefined;
  return rule === undefined ? undefined : `"${printable(id, 60)}" is reserved: ${rule}; take another id`;
}

function pathProblem(id: string): string | undefined {
  if (id === '.' || id === '..') return `"${id}" cannot be part of a URL path; take another id`;
  if (/\p{Cc}/u.test(id)) return `"${printable(id, 60)}" has a control character; take it out`;
  return undefined;
}

function reused(runId: string): ApiProblem {
  return new ApiProblem(
    'idempotency_key_reused',
    `a run "${printable(runId, 255)}" exists that another request started`,
    { runId },
  );
}
