// What is done to a run by its id: decide its one pending approval, cancel it.
import { createRoute, type OpenAPIHono } from '@hono/zod-openapi';
import { bearerAuth, maySee } from '../auth.ts';
import { decisionBodyLimitBytes, jsonBody } from '../body.ts';
import type { ApiContext, ApiEnv } from '../deps.ts';
import { findApproval } from '../find-approval.ts';
import { ApiProblem, runNotFound } from '../problem.ts';
import { decisionBody, nothingBody } from '../request-schemas.ts';
import { runRow } from '../run-view.ts';
import { runRow as runSchema } from '../schemas.ts';
import { createDecisionHandler, decisionAnswers } from './decision-handler.ts';
import { guarded, guardedProblems, jsonContent, problems, runParams } from './route-parts.ts';

function decideRoute(kind: 'approve' | 'reject') {
  return createRoute({
    ...guarded('post', `/runs/{id}/${kind}` as const),
    request: {
      params: runParams,
      body: { required: true, content: { 'application/json': { schema: decisionBody } } },
    },
    responses: {
      ...decisionAnswers,
      ...problems(
        'run_not_found',
        'approval_not_found',
        'already_resolved',
        'not_open',
        'spec_changed',
        'ambiguous_approval',
      ),
    },
  });
}

const cancel = createRoute({
  ...guarded('post', '/runs/{id}/cancel'),
  request: {
    params: runParams,
    body: { required: false, content: { 'application/json': { schema: nothingBody } } },
  },
  responses: {
    202: jsonContent(runSchema, 'the cancellation is recorded; open gates are settled as cancelled'),
    ...guardedProblems(
      'invalid_request',
      'run_not_found',
      'run_closed',
      'too_large',
      'unsupported_media_type',
      'temporal_unavailable',
    ),
  },
});

export function runActionRoutes(app: OpenAPIHono<ApiEnv>, { deps, decider }: ApiContext): void {
  const { client, baseUrl } = deps;
  const body = jsonBody(decisionBodyLimitBytes);
  const answer = createDecisionHandler(deps, decider);

  for (const kind of ['approve', 'reject'] as const) {
    const route = decideRoute(kind);
    app.openapi({ ...route, middleware: [bearerAuth(deps, route), body] as const }, (c) =>
      answer(c, kind, c.req.valid('json'), (order) =>
        findApproval(client, c.get('principal'), c.req.valid('param').id, order),
      ),
    );
  }

  app.openapi({ ...cancel, middleware: [bearerAuth(deps, cancel), body] as const }, async (c) => {
    const { id } = c.req.valid('param');
    const run = await client.describeRun(id);
    if (run === undefined || !maySee(c.get('principal'), run)) throw runNotFound(id);
    // one that is closed by an earlier request is what this one asks for
    const isCancelled = run.closeStatus === 'cancelled';
    if (!isCancelled && (run.closeStatus !== undefined || !(await client.cancelRun(id)))) {
      throw new ApiProblem('run_closed', `run ${id.slice(0, 255)} has ended; there is nothing to cancel`, {
        runId: id,
      });
    }
    return c.json(runRow(run, baseUrl), 202);
  });
}
