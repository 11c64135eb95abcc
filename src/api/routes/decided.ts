// GET /decisions: decided cases, as JSON or one a line.
import { createRoute, type OpenAPIHono } from '@hono/zod-openapi';
import { bearerAuth, maySee } from '../auth.ts';
import { cursorMember, readCursor } from '../cursor.ts';
import { decidedIn } from '../decided.ts';
import type { ApiContext, ApiEnv } from '../deps.ts';
import { decisionsQuery, maxPageSize } from '../request-schemas.ts';
import { decisionPage } from '../schemas.ts';
import { guarded, guardedProblems, jsonContent, jsonLines, wantsLines } from './route-parts.ts';

const list = createRoute({
  ...guarded('get', '/decisions'),
  request: { query: decisionsQuery },
  responses: {
    200: jsonContent(
      decisionPage,
      'decided cases of up to 20 runs, open runs first, then those that ended last; one a line as application/jsonl, then the next page is in the Link header',
    ),
    ...guardedProblems('invalid_request', 'temporal_unavailable'),
  },
});

export function decidedRoutes(app: OpenAPIHono<ApiEnv>, { deps, skipOdd }: ApiContext): void {
  const { client, baseUrl } = deps;

  app.openapi({ ...list, middleware: [bearerAuth(deps, list)] as const }, async (c) => {
    const { limit, cursor, ...filters } = c.req.valid('query');
    const { spec, since } = filters;
    const page = await client.listRuns({
      ...(spec === undefined ? {} : { spec }),
      ...(since === undefined ? {} : { since: Date.parse(since) }),
      pageSize: limit === undefined ? maxPageSize : Number(limit),
      ...readCursor(cursor, filters),
    });
    const runs = page.runs.filter((run) => maySee(c.get('principal'), run));
    const decisions = await decidedIn(deps, skipOdd, runs);
    const next = cursorMember(page.cursor, filters);
    c.header('vary', 'accept');
    if (next.cursor !== undefined) {
      const given = { ...filters, limit, cursor: next.cursor };
      const query = Object.entries(given).flatMap(([name, value]) =>
        value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`],
      );
      c.header('link', `<${baseUrl ?? ''}/decisions?${query.join('&')}>; rel="next"`);
    }
    if (wantsLines(c.req.header('accept'))) return jsonLines(c, decisions);
    return c.json({ decisions, ...next }, 200);
  });
}
