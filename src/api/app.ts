// The API as one fetch handler. Mounts anywhere, listens nowhere: the caller gives it a server.
import { inspect } from 'node:util';
import { OpenAPIHono } from '@hono/zod-openapi';
import { HTTPException } from 'hono/http-exception';
import type { Context } from 'hono';
import type { ZodError } from 'zod';
import { TemporalUnavailableError } from '../countersign-client.ts';
import { errorTable } from '../core/errors.ts';
import { printable } from '../core/json-value.ts';
import { createDecider } from './decide.ts';
import type { ApiDeps, ApiEnv } from './deps.ts';
import { dropCredentials } from './hook-headers.ts';
import { createSkipOdd } from './odd-runs.ts';
import { ApiProblem, problemResponse, temporalUnavailable } from './problem.ts';
import { approvalRoutes } from './routes/approvals.ts';
import { decidedRoutes } from './routes/decided.ts';
import { decisionRoutes } from './routes/decisions.ts';
import { eventRoutes } from './routes/events.ts';
import { healthRoutes } from './routes/health.ts';
import { hookRoutes } from './routes/hooks.ts';
import { openapiRoute } from './routes/openapi.ts';
import { runActionRoutes } from './routes/run-actions.ts';
import { runRoutes } from './routes/runs.ts';
import { createStartDesk } from './start-once.ts';

export function buildApp(deps: ApiDeps): OpenAPIHono<ApiEnv> {
  const app = new OpenAPIHono<ApiEnv>({
    // paths are matched as they came and each parameter is decoded once: `a%2Fb` and `a%252Fb` are two runs
    getPath: rawPath,
    defaultHook: (result) => {
      if (!result.success) throw invalid(result.target, result.error);
    },
  });
  // before all else: nothing else sees a credential of somebody else's
  app.use('/hooks/*', dropCredentials(deps.dropHeaders));
  app.use(async (c, next) => {
    await next();
    // decisions and people's names: for nobody's cache
    c.res.headers.set('cache-control', 'no-store');
    c.res.headers.set('x-content-type-options', 'nosniff');
  });
  app.openAPIRegistry.registerComponent('securitySchemes', 'bearer', { type: 'http', scheme: 'bearer' });
  const context = {
    deps,
    decider: createDecider(deps),
    startOnce: createStartDesk(deps.client),
    skipOdd: createSkipOdd(deps.log),
  };
  healthRoutes(app, context);
  runRoutes(app, context);
  approvalRoutes(app, context);
  decisionRoutes(app, context);
  runActionRoutes(app, context);
  decidedRoutes(app, context);
  eventRoutes(app, context);
  hookRoutes(app, context);
  openapiRoute(app);
  refuseOtherMethods(app);
  app.notFound((c) => {
    const problem = new ApiProblem('not_found', `there is no route ${printable(c.req.path, 200)}`);
    return problemResponse(problem, c.req.path);
  });
  app.onError((error, c) => {
    const problem = problemOf(error, c.req.method, c.req.path);
    report(deps, c, problem, error);
    return problemResponse(problem, c.req.path);
  });
  return app;
}

function rawPath(request: Request): string {
  return new URL(request.url).pathname;
}

/** After all routes: a path that is there, with a method that it does not take. */
function refuseOtherMethods(app: OpenAPIHono<ApiEnv>): void {
  const methods = new Map<string, Set<string>>();
  for (const { path, method } of app.routes) {
    if (method === 'ALL') continue;
    methods.set(path, (methods.get(path) ?? new Set()).add(method));
  }
  for (const [path, taken] of methods) {
    if (taken.has('GET')) taken.add('HEAD');
    const allow = [...taken].sort().join(', ');
    app.all(path, (c) => {
      const detail = `${c.req.path} does not take ${c.req.method}, only ${allow}`;
      throw new ApiProblem('method_not_allowed', detail, { allow: [...taken].sort() }, { allow });
    });
  }
}

function problemOf(error: Error, method: string, path: string): ApiProblem {
  if (error instanceof ApiProblem) return error;
  if (error instanceof TemporalUnavailableError) {
    if (path.startsWith('/hooks/')) {
      return new ApiProblem('temporal_unavailable', 'not confirmed; deliver it again');
    }
    return method === 'POST' ? temporalUnavailable() : new ApiProblem('temporal_unavailable', error.message);
  }
  if (error instanceof HTTPException && error.status === 415) {
    return new ApiProblem('unsupported_media_type', 'Content-Type must be application/json');
  }
  // what it was stays in the log: a message may hold what the caller must not see
  return new ApiProblem('internal_error', 'the API failed; its log says how');
}

function report(deps: ApiDeps, c: Context<ApiEnv>, problem: ApiProblem, error: Error): void {
  const principal = c.get('principal') as ApiEnv['Variables']['principal'] | undefined;
  const { status } = errorTable[problem.code];
  deps.log({
    level: status >= 500 ? 'error' : 'info',
    message: 'request refused',
    method: c.req.method,
    path: c.req.path,
    status,
    code: problem.code,
    ...(principal === undefined ? {} : { by: principal.id }),
    ...(problem.code === 'internal_error' ? { error: error.stack ?? String(error) } : {}),
    ...(error instanceof TemporalUnavailableError
      ? { error: error.message, cause: inspect(error.cause) }
      : {}),
  });
}

const foreign: Record<string, string> = {
  by: 'who decides is the caller of the request',
  via: 'the door is set by the API',
  arguments: 'a decision never carries arguments; what was shown is what runs',
};

/** A validator's findings in people's words: where, what, and for some fields why not. */
function invalid(target: string, error: ZodError): ApiProblem {
  const problems = error.issues.slice(0, 20).flatMap((issue) => {
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.slice(0, 20).map((key) => {
        const why = Object.hasOwn(foreign, key) ? `: ${foreign[key]}` : '';
        return `unknown ${target === 'query' ? 'parameter' : 'field'} "${printable(key, 60)}"${why}`;
      });
    }
    const place = issue.path.map(String).join('.');
    return [`${place === '' ? 'the body' : `"${printable(place, 100)}"`}: ${issue.message}`];
  });
  return new ApiProblem('invalid_request', problems.join('; '), { problems });
}
