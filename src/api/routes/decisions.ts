// Decisions: approve, reject, and what became of one.
import { createRoute, type OpenAPIHono } from '@hono/zod-openapi';
import { bearerAuth } from '../auth.ts';
import { decisionBodyLimitBytes, jsonBody } from '../body.ts';
import type { ApiContext, ApiEnv } from '../deps.ts';
import { readIdempotencyKey, readPayloadHash } from '../headers.ts';
import { decisionPath } from '../links.ts';
import { decisionAnswer, decisionBody } from '../schemas.ts';
import { approvalParams, decisionParams, doorOf, jsonContent, problems, security } from './route-parts.ts';

const answers = {
  200: jsonContent(decisionAnswer, 'accepted'),
  202: jsonContent(decisionAnswer, 'recorded; it is judged when a worker is back'),
  ...problems(
    'invalid_request',
    'unauthenticated',
    'not_allowed',
    'unproven',
    'approval_not_found',
    'already_resolved',
    'not_open',
    'spec_changed',
    'payload_changed',
    'temporal_unavailable',
    'check_failed',
  ),
};

function decideRoute<Kind extends 'approve' | 'reject'>(kind: Kind) {
  return createRoute({
    method: 'post',
    path: `/approvals/{key}/${kind}` as const,
    security,
    request: {
      params: approvalParams,
      body: { required: true, content: { 'application/json': { schema: decisionBody } } },
    },
    responses: {
      ...answers,
      ...problems('too_large', 'unsupported_media_type', 'idempotency_key_reused', 'payload_hash_required'),
    },
  });
}

const lookUp = createRoute({
  method: 'get',
  path: '/approvals/{key}/decisions/{decisionId}',
  security,
  request: { params: decisionParams },
  responses: { ...answers, ...problems('approval_not_found', 'decision_not_found') },
});

export function decisionRoutes(app: OpenAPIHono<ApiEnv>, { deps, decider }: ApiContext): void {
  const auth = bearerAuth(deps);
  const body = jsonBody(decisionBodyLimitBytes);

  for (const kind of ['approve', 'reject'] as const) {
    app.openapi({ ...decideRoute(kind), middleware: [auth, body] as const }, async (c) => {
      const { key } = c.req.valid('param');
      const { payloadHash: inBody, reason } = c.req.valid('json');
      const payloadHash = readPayloadHash(c.req.header('if-match'), inBody);
      const idempotencyKey = readIdempotencyKey(c.req.header('idempotency-key'));
      const { status, body: answer } = await decider.decide(c.get('principal'), {
        kind,
        key,
        ...(payloadHash === undefined ? {} : { payloadHash }),
        ...(reason === undefined ? {} : { reason }),
        ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
        via: doorOf(c),
      });
      if (status === 202) announceLater(c, key, answer.decisionId);
      return c.json(answer, status);
    });
  }

  app.openapi({ ...lookUp, middleware: [auth] as const }, async (c) => {
    const { key, decisionId } = c.req.valid('param');
    const { status, body: answer } = await decider.lookUp(c.get('principal'), key, decisionId);
    if (status === 202) announceLater(c, key, decisionId);
    return c.json(answer, status);
  });

  function announceLater(c: { header(name: string, value: string): void }, key: string, decisionId: string) {
    c.header('location', `${deps.baseUrl ?? ''}${decisionPath(key, decisionId)}`);
    // 2 s: a worker that restarts needs about that long
    c.header('retry-after', '2');
  }
}
