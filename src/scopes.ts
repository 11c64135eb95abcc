// What a credential is for. A scope opens routes (`src/api/route-scopes.ts`); whether a decision counts is the
// gate's own judgement, whatever scopes its sender has.

/** `admin` has every other one; `audit` reads, and sees what others may not. */
export const scopes = ['start', 'read', 'decide', 'admin', 'audit'] as const;
export type Scope = (typeof scopes)[number];

/**
 * Of a token that does not say, as those made before there were scopes: what every token could do then. Never
 * `admin` or `audit`: who sees and does everything has to be written down.
 */
export const defaultScopes: readonly Scope[] = ['start', 'read', 'decide'];

/** Each with itself, and what comes with it. */
const comesWith: Readonly<Record<Scope, readonly Scope[]>> = {
  start: ['start'],
  read: ['read'],
  decide: ['decide'],
  admin: scopes,
  audit: ['audit', 'read'],
};

export function hasScope(held: readonly Scope[], wanted: Scope): boolean {
  return held.some((scope) => comesWith[scope].includes(wanted));
}
