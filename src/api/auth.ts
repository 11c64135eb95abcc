// Who calls, and what they may see and decide. Policy has one place each: `maySee` and `mayDecide`; which
// routes a caller may use at all is the table of route-scopes.ts.
import type { MiddlewareHandler } from 'hono';
import type { RunDescription } from '../countersign-client.ts';
import type { Actor } from '../core/verdict.ts';
import { hasScope, type Scope } from '../scopes.ts';
import type { TokenKind } from '../tokens.ts';
import type { ApiDeps, ApiEnv } from './deps.ts';
import { ApiProblem } from './problem.ts';
import { routeScopes, type GuardedRoute } from './route-scopes.ts';

export interface Principal {
  /** stable; stands in decisions and trails */
  id: string;
  name: string;
  roles: string[];
  kind: TokenKind;
  scopes: readonly Scope[];
}

/** As `guarded` in routes/route-parts.ts makes it. */
interface Guarded {
  method: 'get' | 'post';
  path: string;
}

/** RFC 6750: `Authorization: Bearer <token>`, and one of the scopes that the route asks for. */
export function bearerAuth(
  deps: Pick<ApiDeps, 'authenticate'>,
  { method, path }: Guarded,
): MiddlewareHandler<ApiEnv> {
  const route = `${method.toUpperCase()} ${path}` as GuardedRoute;
  const wanted = routeScopes[route];
  if (wanted === undefined) throw new TypeError(`${route} is not in the table of route-scopes.ts`);
  return async (c, next) => {
    const header = c.req.header('authorization');
    if (header === undefined) throw unauthenticated('there is no Authorization header', '');
    const token = /^Bearer +([A-Za-z0-9._~+/=-]+) *$/i.exec(header)?.[1];
    if (token === undefined) throw unauthenticated('the Authorization header is not "Bearer <token>"', '');
    const mayUse = (principal: Principal) => wanted.some((scope) => hasScope(principal.scopes, scope));
    const principal = await deps.authenticate(token);
    if (principal === undefined) {
      throw unauthenticated('the token is unknown, removed or out of date', ', error="invalid_token"');
    }
    c.set('principal', principal);
    if (!mayUse(principal)) throw lacksScope(principal, wanted);
    c.set('mayGoOn', async () => {
      try {
        const now = await deps.authenticate(token);
        return now !== undefined && mayUse(now);
      } catch (error) {
        // nobody can tell now: it goes on as it was
        return error instanceof ApiProblem && error.code === 'issuer_unavailable';
      }
    });
    await next();
  };
}

/** Every authenticated caller sees every run, until policies name who may (issue 6). */
export function maySee(_principal: Principal, _run: RunDescription): boolean {
  return true;
}

/** Every authenticated caller may decide what they see, until policies name who may (issue 6). */
export function mayDecide(_principal: Principal, _run: RunDescription): boolean {
  return true;
}

export function actorOf({ id, name, roles }: Principal): Actor {
  return { id, name, roles: [...roles] };
}

/** RFC 6750 §3: what the challenge says beside the realm. */
export function unauthenticated(detail: string, parameters: string): ApiProblem {
  return new ApiProblem('unauthenticated', detail, {}, challenge(parameters));
}

function lacksScope({ id, scopes: held }: Principal, wanted: readonly Scope[]): ApiProblem {
  const detail =
    `this needs the scope ${wanted.map((scope) => `"${scope}"`).join(' or ')}, ` +
    `and the credentials of ${id} have ${held.length === 0 ? 'none' : held.join(', ')}`;
  const parameters = `, error="insufficient_scope", scope="${wanted[0] ?? ''}"`;
  return new ApiProblem('not_allowed', detail, { scopes: wanted }, challenge(parameters));
}

function challenge(parameters: string): Record<string, string> {
  return { 'www-authenticate': `Bearer realm="countersign"${parameters}` };
}
