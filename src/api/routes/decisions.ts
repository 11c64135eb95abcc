// Decisions: one route a kind, and what became of one.
import { createRoute, type OpenAPIHono } from '@hono/zod-openapi';
import { bearerAuth } from '../auth.ts';
import { decisionBodyLimitBytes, jsonBody, runBodyLimitBytes } from '../body.ts';
import { orderKinds, type OrderKind } from '../decision-order.ts';
import type { ApiContext, ApiEnv } from '../deps.ts';
import { decisionBodies } from '../request-schemas.ts';
import { announceLater, createDecisionHandler, decisionAnswers } from './decision-handler.ts';
import { approvalParams, decisionParams, problems, security } from './route-parts.ts';

/** They carry a payload. */
const long: readonly OrderKind[] = ['edit', 'respond', 'amend'];

function decideRoute(kind: OrderKind) {
  return createRoute({
    method: 'post',
    path: `/approvals/{key}/${kind}` as const,
    security,
    request: {
      params: approvalParams,
      body: { required: true, content: { 'application/json': { schema: decisionBodies[kind] } } },
    },
    responses: decisionAnswers,
  });
}

const lookUp = createRoute({
  method: 'get',
  path: '/approvals/{key}/decisions/{decisionId}',
  security,
  request: { params: decisionParams },
  responses: { ...decisionAnswers, ...problems('decision_not_found', 'approval_not_found') },
});

export function decisionRoutes(app: OpenAPIHono<ApiEnv>, { deps, decider }: ApiContext): void {
  const auth = bearerAuth(deps);
  const answer = createDecisionHandler(deps, decider);

  for (const kind of orderKinds) {
    const body = jsonBody(long.includes(kind) ? runBodyLimitBytes : decisionBodyLimitBytes);
    app.openapi({ ...decideRoute(kind), middleware: [auth, body] as const }, (c) =>
      answer(c, kind, c.req.valid('json'), () => Promise.resolve(c.req.valid('param').key)),
    );
  }

  app.openapi({ ...lookUp, middleware: [auth] as const }, async (c) => {
    const { key, decisionId } = c.req.valid('param');
    const { status, body } = await decider.lookUp(c.get('principal'), key, decisionId);
    if (status === 202) announceLater(c, deps.baseUrl, key, decisionId);
    return c.json(body, status);
  });
}
