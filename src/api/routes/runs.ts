// Runs: start, list, read, and the trail.
import { createRoute, type OpenAPIHono } from '@hono/zod-openapi';
import type { RunDescription } from '../../countersign-client.ts';
import type { JsonObject } from '../../core/json.ts';
import { bearerAuth, maySee, type Principal } from '../auth.ts';
import { jsonBody, runBodyLimitBytes } from '../body.ts';
import { cursorMember, readCursor } from '../cursor.ts';
import type { ApiContext, ApiEnv } from '../deps.ts';
import { readIdempotencyKey } from '../headers.ts';
import { runLinks, runPath } from '../links.ts';
import { runNotFound } from '../problem.ts';
import { iso, runDetails, runRow } from '../run-view.ts';
import { maxPageSize, runsQuery, runStartBody } from '../request-schemas.ts';
import { runPage, runView, trailView } from '../schemas.ts';
import { createStarter } from '../start-run.ts';
import { guarded, guardedProblems, jsonContent, jsonLines, runParams, wantsLines } from './route-parts.ts';

const start = createRoute({
  ...guarded('post', '/runs'),
  request: { body: { required: true, content: { 'application/json': { schema: runStartBody } } } },
  responses: {
    200: jsonContent(runView, 'the run that an earlier, equal request started'),
    201: jsonContent(runView, 'started'),
    ...guardedProblems(
      'invalid_request',
      'idempotency_in_flight',
      'idempotency_key_reused',
      'too_large',
      'unsupported_media_type',
      'temporal_unavailable',
    ),
  },
});

const list = createRoute({
  ...guarded('get', '/runs'),
  request: { query: runsQuery },
  responses: {
    200: jsonContent(runPage, 'runs: the open ones, newest first, then those that ended last'),
    ...guardedProblems('invalid_request', 'temporal_unavailable'),
  },
});

const read = createRoute({
  ...guarded('get', '/runs/{id}'),
  request: { params: runParams },
  responses: {
    200: jsonContent(runView, 'the run'),
    ...guardedProblems('run_not_found', 'temporal_unavailable'),
  },
});

const trail = createRoute({
  ...guarded('get', '/runs/{id}/trail'),
  request: { params: runParams },
  responses: {
    200: jsonContent(trailView, 'the facts of the run, in order; one a line as application/jsonl'),
    ...guardedProblems('run_not_found', 'temporal_unavailable'),
  },
});

export function runRoutes(app: OpenAPIHono<ApiEnv>, { deps, startOnce, skipOdd }: ApiContext): void {
  const { client, baseUrl } = deps;
  const startRun = createStarter(deps, startOnce);

  const find = async (principal: Principal, runId: string): Promise<RunDescription> => {
    const run = await client.describeRun(runId);
    if (run === undefined || !maySee(principal, run)) throw runNotFound(runId);
    return run;
  };

  app.openapi(
    { ...start, middleware: [bearerAuth(deps, start), jsonBody(runBodyLimitBytes)] as const },
    async (c) => {
      const { spec, input, id } = c.req.valid('json');
      const idempotencyKey = readIdempotencyKey(c.req.header('idempotency-key'));
      const started = await startRun(c.get('principal'), {
        spec,
        input: input === undefined ? {} : input,
        ...(id === undefined ? {} : { id }),
        ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
      });
      c.header('location', `${baseUrl ?? ''}${runPath(started.runId)}`);
      if (started.run !== undefined) {
        const facts = await client.readTrail(started.runId);
        return c.json(runDetails(started.run, facts, baseUrl), 200);
      }
      // from what was asked: the run is started, whatever becomes of a second call
      const { spec: begun, specRef } = started.checked;
      const view = {
        id: started.runId,
        status: 'running' as const,
        spec: begun.name,
        ...(specRef === undefined ? {} : { specHash: specRef.hash }),
        trigger: { kind: 'api' },
        createdAt: iso(deps.now()),
        steps: [],
        pendingApprovals: [],
        links: runLinks(baseUrl, started.runId),
      };
      return c.json(view, 201);
    },
  );

  app.openapi({ ...list, middleware: [bearerAuth(deps, list)] as const }, async (c) => {
    const { limit, cursor, ...filters } = c.req.valid('query');
    const { status, spec, since } = filters;
    const page = await client.listRuns({
      ...(status === undefined ? {} : { status }),
      ...(spec === undefined ? {} : { spec }),
      ...(since === undefined ? {} : { since: Date.parse(since) }),
      pageSize: limit === undefined ? maxPageSize : Number(limit),
      ...readCursor(cursor, filters),
    });
    const seen = page.runs.filter((run) => maySee(c.get('principal'), run));
    const rows = await Promise.all(seen.map((run) => skipOdd(run, () => runRow(run, baseUrl))));
    const runs = rows.filter((row) => row !== undefined);
    return c.json({ runs, ...cursorMember(page.cursor, filters) }, 200);
  });

  app.openapi({ ...read, middleware: [bearerAuth(deps, read)] as const }, async (c) => {
    const { id } = c.req.valid('param');
    const run = await find(c.get('principal'), id);
    return c.json(runDetails(run, await client.readTrail(id), baseUrl), 200);
  });

  app.openapi({ ...trail, middleware: [bearerAuth(deps, trail)] as const }, async (c) => {
    const { id } = c.req.valid('param');
    await find(c.get('principal'), id);
    const facts = await client.readTrail(id);
    c.header('vary', 'accept');
    if (wantsLines(c.req.header('accept'))) return jsonLines(c, facts);
    return c.json({ runId: id, trail: facts as unknown as JsonObject[] }, 200);
  });
}
