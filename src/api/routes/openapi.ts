// GET /openapi.json: the document of this API, derived from the routes themselves.
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { ApiEnv } from '../deps.ts';

/** Of the API, not of the package: it changes when what is here stops being compatible. */
const version = '1';

export function openapiRoute(app: OpenAPIHono<ApiEnv>): void {
  let text: string | undefined;
  app.get('/openapi.json', (c) => {
    // made once, when it is first asked for: by then every route is there
    text ??= JSON.stringify(
      app.getOpenAPI31Document({ openapi: '3.1.0', info: { title: 'countersign', version } }),
    );
    return c.body(text, 200, { 'content-type': 'application/json' });
  });
}
