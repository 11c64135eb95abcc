// Who calls, and what they may see and decide. Policy has one place each: `maySee` and `mayDecide`.
import type { MiddlewareHandler } from 'hono';
import type { RunDescription } from '../countersign-client.ts';
import type { Actor } from '../core/verdict.ts';
import type { ApiDeps, ApiEnv } from './deps.ts';
import { ApiProblem } from './problem.ts';

export interface Principal {
  /** stable; stands in decisions and trails */
  id: string;
  name: string;
  roles: string[];
  kind: string;
}

/** RFC 6750: `Authorization: Bearer <token>`. */
export function bearerAuth(deps: Pick<ApiDeps, 'authenticate'>): MiddlewareHandler<ApiEnv> {
  return async (c, next) => {
    const header = c.req.header('authorization');
    if (header === undefined) throw unauthenticated('there is no Authorization header', '');
    const token = /^Bearer +([A-Za-z0-9._~+/=-]+) *$/i.exec(header)?.[1];
    if (token === undefined) throw unauthenticated('the Authorization header is not "Bearer <token>"', '');
    const principal = await deps.authenticate(token);
    if (principal === undefined) {
      throw unauthenticated('the token is unknown, removed or out of date', ', error="invalid_token"');
    }
    c.set('principal', principal);
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

function unauthenticated(detail: string, parameters: string): ApiProblem {
  return new ApiProblem(
    'unauthenticated',
    detail,
    {},
    {
      'www-authenticate': `Bearer realm="countersign"${parameters}`,
    },
  );
}
