// Server-sent events: of one run its trail, then what happens; of all runs what happens from now on.
import { createRoute, z, type OpenAPIHono } from '@hono/zod-openapi';
import { bearerAuth, maySee } from '../auth.ts';
import type { ApiContext, ApiEnv } from '../deps.ts';
import { eventStream, type ServerEvent } from '../event-stream.ts';
import { readLastKey } from '../fact-order.ts';
import { createFollowAll } from '../follow-all.ts';
import { followRun } from '../follow-run.ts';
import { readLastSeq } from '../headers.ts';
import { runNotFound } from '../problem.ts';
import { guarded, guardedProblems, runParams } from './route-parts.ts';

const events = createRoute({
  ...guarded('get', '/runs/{id}/events'),
  request: { params: runParams },
  responses: {
    200: {
      description:
        'the trail from its start, or after Last-Event-ID (a `seq`), then each new fact; ends with the run',
      content: { 'text/event-stream': { schema: z.string() } },
    },
    204: { description: 'the run has ended, and Last-Event-ID was its last fact' },
    ...guardedProblems('invalid_request', 'run_not_found', 'temporal_unavailable'),
  },
});

const allEvents = createRoute({
  ...guarded('get', '/events'),
  responses: {
    200: {
      description:
        'each new fact of every run, with its `runId`, in the order in which they became known: from now, or after Last-Event-ID (`<time>/<run>/<seq>`)',
      content: { 'text/event-stream': { schema: z.string() } },
    },
    ...guardedProblems('invalid_request', 'temporal_unavailable'),
  },
});

export function eventRoutes(app: OpenAPIHono<ApiEnv>, { deps, skipOdd }: ApiContext): void {
  const { client, heartbeatMs } = deps;
  const followAll = createFollowAll({ ...deps, skipOdd });
  const beat = heartbeatMs === undefined ? {} : { heartbeatMs };

  app.openapi({ ...events, middleware: [bearerAuth(deps, events)] as const }, async (c) => {
    const { id } = c.req.valid('param');
    const after = readLastSeq(c.req.header('last-event-id'));
    const run = await client.describeRun(id);
    if (run === undefined || !maySee(c.get('principal'), run)) throw runNotFound(id);
    if (run.closeStatus !== undefined && after !== undefined) {
      const last = (await client.readTrail(id)).at(-1);
      // a browser reconnects after every end but this one
      if (last === undefined || last.seq <= after) return c.body(null, 204);
    }
    async function* follow(signal: AbortSignal): AsyncGenerator<ServerEvent> {
      for await (const fact of followRun(deps, id, after ?? 0, signal)) yield { id: String(fact.seq), fact };
    }
    const onBug = (error: unknown) =>
      deps.log({ level: 'error', message: 'a run could not be followed', runId: id, error: String(error) });
    return eventStream(follow, { ...beat, mayGoOn: c.get('mayGoOn'), onBug });
  });

  app.openapi({ ...allEvents, middleware: [bearerAuth(deps, allEvents)] as const }, async (c) => {
    const after = readLastKey(c.req.header('last-event-id'), deps.now());
    // one that cannot be served is told so, and does not wait for facts that do not come
    await client.checkHealth();
    const principal = c.get('principal');
    const onBug = (error: unknown) =>
      deps.log({ level: 'error', message: 'the runs could not be followed', error: String(error) });
    return eventStream((signal) => followAll(after, ({ run }) => maySee(principal, run), signal), {
      ...beat,
      mayGoOn: c.get('mayGoOn'),
      onBug,
    });
  });
}
