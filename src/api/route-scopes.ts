// Which route asks for which scope: the one table. A route that is not in it does not compile with `guarded`,
// and test/api-scopes.test.ts holds it against the routes that are there, both ways.
import type { Scope } from '../scopes.ts';

/** One of these is enough. */
const table = {
  'POST /runs': ['start'],
  'GET /runs': ['read'],
  'GET /runs/{id}': ['read'],
  'GET /runs/{id}/trail': ['read'],
  'GET /runs/{id}/events': ['read'],
  // whoever may start a run may end it
  'POST /runs/{id}/cancel': ['start'],
  'POST /runs/{id}/approve': ['decide'],
  'POST /runs/{id}/reject': ['decide'],
  'POST /approvals': ['start'],
  'GET /approvals': ['read'],
  'GET /approvals/{key}': ['read'],
  'POST /approvals/{key}/approve': ['decide'],
  'POST /approvals/{key}/reject': ['decide'],
  'POST /approvals/{key}/edit': ['decide'],
  'POST /approvals/{key}/respond': ['decide'],
  // the requester's: the gate takes them of nobody else, of an admin at most
  'POST /approvals/{key}/amend': ['start', 'decide'],
  'POST /approvals/{key}/withdraw': ['start', 'decide'],
  // of those who ask and those who answer
  'POST /approvals/{key}/comment': ['decide', 'start'],
  // where a 202 sends whoever decided
  'GET /approvals/{key}/decisions/{decisionId}': ['read', 'decide', 'start'],
  'GET /decisions': ['read'],
  'GET /events': ['read'],
} as const satisfies Record<string, readonly [Scope, ...Scope[]]>;

export type GuardedRoute = keyof typeof table;

export const routeScopes: Readonly<Record<GuardedRoute, readonly [Scope, ...Scope[]]>> = table;

/** Routes without a token, and why. */
export const openRoutes: Readonly<Record<string, string>> = {
  'GET /livez': 'says nothing but that the process runs',
  'GET /readyz': 'says nothing but that Temporal answers',
  'GET /openapi.json': 'is the same for everybody',
  'POST /hooks/{trigger}': 'asks for a signature over the body',
};
