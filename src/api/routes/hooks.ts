// Webhooks: a signed delivery starts a run. No token; the signature over the raw bytes is the credential, and
// nothing of the body is read before it holds.
import { createRoute, z, type OpenAPIHono } from '@hono/zod-openapi';
import { printable } from '../../core/json-value.ts';
import { hookBodyLimitBytes, readBytes } from '../body.ts';
import type { ApiContext, ApiEnv } from '../deps.ts';
import { readEvent } from '../hook-event.ts';
import { keepHeaders } from '../hook-headers.ts';
import { signatureProblem, toleranceSeconds } from '../hook-signature.ts';
import { runLinks, runPath } from '../links.ts';
import { ApiProblem } from '../problem.ts';
import { hookStarted } from '../schemas.ts';
import { createHookStarter, hookPrincipal } from '../start-hook.ts';
import { jsonContent, problems } from './route-parts.ts';

const anyJson = z.unknown().openapi({ description: 'any JSON value' });

const deliver = createRoute({
  method: 'post',
  path: '/hooks/{trigger}',
  description:
    'Starts a run from a signed webhook (Standard Webhooks), JSON or a CloudEvent. A re-delivery is answered ' +
    'like the first one, as long as the run is kept: while it is open, and after its end for the retention of the Temporal namespace.',
  security: [{ webhookSignature: [] }],
  request: {
    params: z.object({ trigger: z.string().openapi({ description: 'its name in the config' }) }),
    headers: z.object({
      'webhook-id': z.string(),
      'webhook-timestamp': z.string().openapi({ description: 'seconds since the epoch' }),
    }),
    body: {
      required: true,
      content: {
        'application/json': { schema: anyJson },
        'application/cloudevents+json': { schema: anyJson },
      },
    },
  },
  responses: {
    200: jsonContent(hookStarted, 'the run of this event, whichever delivery started it'),
    ...problems(
      'invalid_request',
      'invalid_signature',
      'stale_timestamp',
      'trigger_not_found',
      'too_large',
      'unsupported_media_type',
      'idempotency_key_reused',
      'temporal_unavailable',
    ),
  },
});

export function hookRoutes(app: OpenAPIHono<ApiEnv>, { deps, startOnce }: ApiContext): void {
  const { baseUrl, triggers } = deps;
  const startHook = createHookStarter(deps, startOnce);
  const scheme = { type: 'apiKey', in: 'header', name: 'webhook-signature' } as const;
  app.openAPIRegistry.registerComponent('securitySchemes', 'webhookSignature', scheme);
  // described, not validated: a validator would read the body before the signature
  app.openAPIRegistry.registerPath(deliver);

  app.post('/hooks/:trigger', async (c) => {
    const name = c.req.param('trigger');
    const trigger = triggers?.get(name);
    if (trigger === undefined) {
      throw new ApiProblem('trigger_not_found', `there is no trigger "${printable(name, 100)}"`);
    }
    const { headers } = c.req.raw;
    const body = await readBytes(c.req.raw, hookBodyLimitBytes);
    const id = headers.get('webhook-id') ?? '';
    const timestamp = headers.get('webhook-timestamp') ?? '';
    const delivery = { id, timestamp, signature: c.get('webhookSignature'), body };
    const problem = signatureProblem(delivery, trigger.secrets, deps.now());
    if (problem !== undefined) throw refused(name, problem, deps.now());
    c.set('principal', hookPrincipal(name));
    const started = await startHook({
      trigger,
      event: readEvent(headers, body, id),
      kept: keepHeaders(headers),
    });
    c.header('location', `${baseUrl ?? ''}${runPath(started.runId)}`);
    return c.json(
      { id: started.runId, trigger: started.trigger, links: runLinks(baseUrl, started.runId) },
      200,
    );
  });
}

/** RFC 9110 §15.5.2: a 401 names a scheme; this one is registered nowhere, and says what is missing. */
const challenge = { 'www-authenticate': 'StandardWebhooks realm="countersign"' };

function refused(trigger: string, problem: 'invalid' | 'stale', nowMs: number): ApiProblem {
  if (problem === 'invalid') {
    const detail =
      'webhook-id, webhook-timestamp and webhook-signature do not sign this body with a secret of ' +
      `trigger "${trigger}"`;
    return new ApiProblem('invalid_signature', detail, {}, challenge);
  }
  const now = Math.floor(nowMs / 1000);
  const detail = `webhook-timestamp is more than ${toleranceSeconds} s from now, which is ${now}`;
  return new ApiProblem('stale_timestamp', detail, {}, challenge);
}
