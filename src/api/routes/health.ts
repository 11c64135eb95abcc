// For whoever restarts and balances the process: `livez` says that it runs, `readyz` that it can serve.
import { createRoute, type OpenAPIHono } from '@hono/zod-openapi';
import type { ApiContext, ApiEnv } from '../deps.ts';
import { healthView } from '../schemas.ts';
import { jsonContent, problems } from './route-parts.ts';

const live = createRoute({
  method: 'get',
  path: '/livez',
  responses: { 200: jsonContent(healthView, 'the process runs') },
});

const ready = createRoute({
  method: 'get',
  path: '/readyz',
  responses: { 200: jsonContent(healthView, 'Temporal answers'), ...problems('temporal_unavailable') },
});

export function healthRoutes(app: OpenAPIHono<ApiEnv>, { deps }: ApiContext): void {
  app.openapi(live, (c) => c.json({ status: 'live' }, 200));
  app.openapi(ready, async (c) => {
    await deps.client.checkHealth();
    return c.json({ status: 'ready' }, 200);
  });
}
