// Freezes what somebody asks for over HTTP, by the code by which the worker freezes it again: an API and a
// worker with the same tools come to the same hash.
import { createFreezeCase } from './activities/freeze-case.ts';
import type { CaseRecord } from './core/case.ts';
import type { Json } from './core/json.ts';
import type { Actor } from './core/verdict.ts';
import type { Tool } from './tool.ts';

/** The position of the one gate in a run of `POST /approvals`. */
export const requestPosition = 'request';

export interface RequestProposal {
  tool: string;
  arguments: Json;
  title?: string;
  reasoning?: string;
  ttl?: string | number;
  requestedBy: Actor;
  /** milliseconds since the epoch */
  now: number;
}

/** The case, or a code of core/failures.ts and what is wrong. */
export type FrozenRequest = { case: Omit<CaseRecord, 'key' | 'root'> } | { code: string; message: string };

export type FreezeRequest = (proposal: RequestProposal) => Promise<FrozenRequest>;

export function createFreezeRequest(deps: { tools: readonly Tool[]; approvalTtlMs?: number }): FreezeRequest {
  const freezeCase = createFreezeCase(deps);
  return async function freezeRequest(proposal) {
    const place = { v: 1, position: requestPosition, phase: 'before' } as const;
    // key and root are those of the run that is not started yet
    const frozen = await freezeCase({ ...place, key: '', root: '', ...proposal });
    if (frozen.kind === 'problem') return { code: frozen.code, message: frozen.message };
    const { key: _key, root: _root, ...rest } = frozen;
    return { case: { ...rest, requestedByApi: true } };
  };
}
