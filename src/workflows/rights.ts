// Sandbox. The approvals of this run that were not used yet, by position: what `effect()` needs beside the grant.
// A grant is the right to one effect, so using one takes it away.
import type { UnusedRight } from '../core/carried.ts';
import type { CaseRecord } from '../core/case.ts';

/** A workflow that asks without acting would collect them for ever; at 400 bytes each these are carried easily. */
const rightsCarried = 500;

const unused = new Map<string, UnusedRight>();

/** @param position of the effect, as the grant has it */
export function keepRight(position: string, { root, effect, policy }: CaseRecord): void {
  if (effect !== undefined) unused.set(position, { position, root, effect, ttlMs: policy.ttlMs });
}

export function rightAt(position: string): UnusedRight | undefined {
  return unused.get(position);
}

export function useRight(position: string): void {
  unused.delete(position);
}

export function rightsToCarry(): UnusedRight[] {
  return [...unused.values()].slice(-rightsCarried);
}

export function restoreRights(rights: readonly UnusedRight[]): void {
  for (const right of rights) unused.set(right.position, right);
}
