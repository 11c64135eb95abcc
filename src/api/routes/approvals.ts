// Approvals: what is pending, and the case of one. Both are served while every worker is down.
import { createRoute, type OpenAPIHono } from '@hono/zod-openapi';
import type { RunDescription, RunPage } from '../../countersign-client.ts';
import { approvalRow, approvalView } from '../approval-view.ts';
import { bearerAuth, maySee } from '../auth.ts';
import { notOpen } from '../decision-answer.ts';
import { cursorMember, readCursor } from '../cursor.ts';
import type { ApiContext, ApiDeps, ApiEnv } from '../deps.ts';
import { findGate } from '../find-gate.ts';
import { gateOf } from '../gate-record.ts';
import { approvalNotFound } from '../problem.ts';
import { approvalPage, approvalsQuery, approvalView as approvalSchema, maxPageSize } from '../schemas.ts';
import type { ApprovalRow } from '../schemas.ts';
import { approvalParams, jsonContent, problems, security } from './route-parts.ts';

const list = createRoute({
  method: 'get',
  path: '/approvals',
  security,
  request: { query: approvalsQuery },
  responses: {
    200: jsonContent(approvalPage, 'approvals of up to 20 runs, newest run first'),
    ...problems('invalid_request', 'unauthenticated', 'temporal_unavailable'),
  },
});

const read = createRoute({
  method: 'get',
  path: '/approvals/{key}',
  security,
  request: { params: approvalParams },
  responses: {
    200: jsonContent(approvalSchema, 'the case; its payload hash is the ETag'),
    ...problems('unauthenticated', 'approval_not_found', 'not_open', 'temporal_unavailable'),
  },
});

type Filter = {
  state?: ApprovalRow['state'] | undefined;
  tool?: string | undefined;
  spec?: string | undefined;
  run?: string | undefined;
};

export function approvalRoutes(app: OpenAPIHono<ApiEnv>, { deps }: ApiContext): void {
  const { client, baseUrl } = deps;
  const auth = bearerAuth(deps);
  const setting = () => ({ now: deps.now(), ...(baseUrl === undefined ? {} : { baseUrl }) });

  app.openapi({ ...list, middleware: [auth] as const }, async (c) => {
    const { limit, cursor, ...filter } = c.req.valid('query');
    const pageSize = limit === undefined ? maxPageSize : Number(limit);
    const page = await runsOf(client, filter, { pageSize, ...readCursor(cursor, filter) });
    const approvals = page.runs
      .filter((run) => maySee(c.get('principal'), run))
      .flatMap((run) => run.approvals.map((entry) => approvalRow(run, entry, setting())))
      .filter((row) => fits(row, filter));
    return c.json({ approvals, ...cursorMember(page.cursor, filter) }, 200);
  });

  app.openapi({ ...read, middleware: [auth] as const }, async (c) => {
    const { key } = c.req.valid('param');
    const gate = await findGate(client, c.get('principal'), key);
    const { run, position } = gate;
    const record = gateOf(await client.readTrail(run.runId), key);
    if (record === undefined) {
      throw run.closeStatus === undefined
        ? notOpen({ key, runId: run.runId, position })
        : approvalNotFound(key);
    }
    c.header('etag', `"${record.requested.payloadHash}"`);
    return c.json(approvalView(run, record, setting()), 200);
  });
}

/** The runs whose approvals can fit: one, those that wait, or all. */
async function runsOf(
  client: ApiDeps['client'],
  { state = 'pending', tool, spec, run }: Filter,
  page: { pageSize: number; cursor?: string },
): Promise<RunPage> {
  if (run !== undefined) {
    const found: RunDescription | undefined = await client.describeRun(run);
    return { runs: found === undefined ? [] : [found] };
  }
  const query = { ...page, ...(spec === undefined ? {} : { spec }) };
  if (state !== 'pending') return client.listRuns(query);
  return client.listAwaiting({ ...query, ...(tool === undefined ? {} : { tool }) });
}

function fits(row: ApprovalRow, { state = 'pending', tool, spec }: Filter): boolean {
  return (
    row.state === state &&
    (tool === undefined || row.tool === tool) &&
    (spec === undefined || row.spec === spec)
  );
}
