// From a request that decides to its answer: by whichever route it came, it is one order and one decider.
import type { Context, TypedResponse } from 'hono';
import type { Decider } from '../decide.ts';
import type { DecisionOrder, OrderKind } from '../decision-order.ts';
import type { ApiDeps, ApiEnv } from '../deps.ts';
import { readIdempotencyKey, readPayloadHash } from '../headers.ts';
import { decisionPath } from '../links.ts';
import type { DecisionFields } from '../request-schemas.ts';
import { decisionAnswer, type DecisionAnswer } from '../schemas.ts';
import { doorOf, guardedProblems, jsonContent } from './route-parts.ts';

export const decisionAnswers = {
  200: jsonContent(decisionAnswer, 'accepted; after an amendment the ETag is the new payload hash'),
  202: jsonContent(decisionAnswer, 'recorded; it is judged when a worker is back'),
  ...guardedProblems(
    'invalid_request',
    'self_approval',
    'unproven',
    'approval_not_found',
    'already_resolved',
    'not_open',
    'spec_changed',
    'payload_changed',
    'too_large',
    'unsupported_media_type',
    'idempotency_key_reused',
    'invalid_edit',
    'payload_hash_required',
    'temporal_unavailable',
    'check_failed',
  ),
};

type Answer = Promise<TypedResponse<DecisionAnswer, 200 | 202, 'json'> & Response>;

/** @param keyOf finds the approval key that the order is for */
export function createDecisionHandler({ baseUrl }: Pick<ApiDeps, 'baseUrl'>, decider: Decider) {
  return async function answer(
    c: Context<ApiEnv>,
    kind: OrderKind,
    fields: DecisionFields,
    keyOf: (order: Omit<DecisionOrder, 'key'>) => Promise<string>,
  ): Answer {
    const { payloadHash: inBody, reason, arguments: args, result } = fields;
    const payloadHash = readPayloadHash(c.req.header('if-match'), inBody);
    const idempotencyKey = readIdempotencyKey(c.req.header('idempotency-key'));
    const order = {
      kind,
      ...(payloadHash === undefined ? {} : { payloadHash }),
      ...(reason === undefined ? {} : { reason }),
      ...(args === undefined ? {} : { arguments: args }),
      ...(result === undefined ? {} : { result }),
      ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
      via: doorOf(c),
    };
    const key = await keyOf(order);
    const { status, body } = await decider.decide(c.get('principal'), { ...order, key });
    if (status === 202) announceLater(c, baseUrl, key, body.decisionId);
    const isNewPayload = kind === 'amend' && status === 200 && body.payloadHash !== undefined;
    if (isNewPayload) c.header('etag', `"${body.payloadHash}"`);
    return c.json(body, status);
  };
}

export function announceLater(
  c: { header(name: string, value: string): void },
  baseUrl: string | undefined,
  key: string,
  decisionId: string,
): void {
  c.header('location', `${baseUrl ?? ''}${decisionPath(key, decisionId)}`);
  // 2 s: a worker that restarts needs about that long
  c.header('retry-after', '2');
}
