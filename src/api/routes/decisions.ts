// Decisions: one route a kind, and what became of one.
import { createRoute, type OpenAPIHono } from '@hono/zod-openapi';
import { bearerAuth } from '../auth.ts';
import { decisionBodyLimitBytes, jsonBody, runBodyLimitBytes } from '../body.ts';
import { orderKinds, type OrderKind } from '../decision-order.ts';
import type { ApiContext, ApiEnv } from '../deps.ts';
import { decisionBodies } from '../request-schemas.ts';
import { announceLater, createDecisionHandler, decisionAnswers } from './decision-handler.ts';
import { approvalParams, decisionParams, guarded, problems } from './route-parts.ts';

/** They carry a payload. */
const long: readonly OrderKind[] = ['edit', 'respond', 'amend'];

function decideRoute(kind: OrderKind) {
  return createRoute({
    ...guarded('post', `/approvals/{key}/${kind}` as const),
    request: {
      params: approvalParams,
      body: { required: true, content: { 'application/json': { schema: decisionBodies[kind] } } },
    },
    responses: decisionAnswers,
  });
}

const lookUp = createRoute({
  ...guarded('get', '/approvals/{key}/decisions/{decisionId}'),
  request: { params: decisionParams },
  responses: { ...decisionAnswers, ...problems('decision_not_found', 'approval_not_found') },
});

export function decisionRoutes(app: OpenAPIHono<ApiEnv>, { deps, decider }: ApiContext): void {
  const answer = createDecisionHandler(deps, decider);

  for (const kind of orderKinds) {
    const body = jsonBody(long.includes(kind) ? runBodyLimitBytes : decisionBodyLimitBytes);
    const route = decideRoute(kind);
    app.openapi({ ...route, middleware: [bearerAuth(deps, route), body] as const }, (c) =>
      answer(c, kind, c.req.valid('json'), () => Promise.resolve(c.req.valid('param').key)),
    );
  }

  app.openapi({ ...lookUp, middleware: [bearerAuth(deps, lookUp)] as const }, async (c) => {
    const { key, decisionId } = c.req.valid('param');
    const { status, body } = await decider.lookUp(c.get('principal'), key, decisionId);
    if (status === 202) announceLater(c, deps.baseUrl, key, decisionId);
    return c.json(body, status);
  });
}
