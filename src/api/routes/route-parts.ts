// What the route definitions share: path parameters, problem answers, and what of a request they all read.
import { z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { errorTable, type ErrorCode } from '../../core/errors.ts';
import type { ApiEnv } from '../deps.ts';
import { routeScopes, type GuardedRoute } from '../route-scopes.ts';
import { problemSchema } from '../schemas.ts';

export const runParams = z.object({ id: z.string().openapi({ description: 'the run id, percent-encoded' }) });
export const approvalParams = z.object({ key: z.string().openapi({ description: 'the approval key' }) });
export const decisionParams = approvalParams.extend({ decisionId: z.string() });

/**
 * The method and path of a route that asks for a token, and the scopes that one needs: a bearer token with any
 * one of them. `bearerAuth(deps, route)` holds it.
 */
export function guarded<const Method extends 'get' | 'post', const Path extends string>(
  method: Method,
  path: `${Uppercase<Method>} ${Path}` extends GuardedRoute ? Path : never,
) {
  const wanted = routeScopes[`${method.toUpperCase()} ${path}` as GuardedRoute];
  return { method, path, security: wanted.map((scope) => ({ bearer: [scope] })) };
}

/** The problems of a guarded route: its own, and those of its guard. */
export function guardedProblems(...codes: ErrorCode[]) {
  return problems('unauthenticated', 'not_allowed', 'issuer_unavailable', ...codes);
}

/** Documents the problems of a route by their codes; they are thrown, so no handler returns one. */
export function problems(...codes: ErrorCode[]) {
  const content = { 'application/problem+json': { schema: problemSchema } };
  const responses: Record<string, { description: string; content: typeof content }> = {};
  for (const code of codes) {
    const { status, title } = errorTable[code];
    const earlier = responses[status]?.description;
    responses[status] = {
      description: `${earlier === undefined ? '' : `${earlier}; `}${title} (${code})`,
      content,
    };
  }
  return responses;
}

export function jsonContent<Schema extends z.ZodType>(schema: Schema, description: string) {
  return { description, content: { 'application/json': { schema } } };
}

/** By which door a decision came. */
export function doorOf(c: Context<ApiEnv>): 'api' | 'cli' {
  return (c.req.header('user-agent') ?? '').startsWith('countersign-cli/') ? 'cli' : 'api';
}

/** True when the caller names JSON lines; JSON is what everybody else gets. */
export function wantsLines(accept: string | undefined): boolean {
  return /(^|[\s,])application\/(jsonl|x-ndjson)([\s,;]|$)/i.test(accept ?? '');
}

/** One value a line. */
export function jsonLines(c: Context<ApiEnv>, values: readonly unknown[]): never {
  const lines = values.map((value) => `${JSON.stringify(value)}\n`).join('');
  // the routes' types know JSON only
  return c.body(lines, 200, { 'content-type': 'application/jsonl' }) as never;
}
