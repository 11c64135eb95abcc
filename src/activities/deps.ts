// What the activities are given. Everything in here is in memory: admission uses no network.
import type { GrantKey } from '../core/grant.ts';
import type { ProofKey } from '../core/proof.ts';
import type { Tool } from '../tool.ts';

export interface ActivityDeps {
  namespace: string;
  tools: readonly Tool[];
  /** The hash of the spec that this process has now under that name; undefined: there is none. */
  currentSpecHash: (name: string) => string | undefined;
  /** The first one signs, all of them verify. Read anew at every use, so that a rotation needs no restart. */
  grantKeys: () => readonly GrantKey[];
  proofKeys: () => readonly ProofKey[];
  /** `refuse`: no gate takes a decision without a valid proof. Default `allow`. */
  unsigned?: 'allow' | 'refuse' | undefined;
  /** How long a gate waits when nothing else is said, in milliseconds. Default 7 days. */
  approvalTtlMs?: number | undefined;
  /** Where people find the API, for links. */
  baseUrl?: string | undefined;
  log: (message: string, fields?: Record<string, unknown>) => void;
}
