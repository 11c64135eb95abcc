// Approvals: what is pending, and the case of one. Both are served while every worker is down.
import { createRoute, type OpenAPIHono } from '@hono/zod-openapi';
import type { RunDescription, RunPage } from '../../countersign-client.ts';
import { approvalKey } from '../../core/approval-key.ts';
import { requestPosition } from '../../freeze-request.ts';
import { approvalRow, approvalView, askedCase } from '../approval-view.ts';
import { bearerAuth, maySee, type Principal } from '../auth.ts';
import { jsonBody, runBodyLimitBytes } from '../body.ts';
import { notOpen } from '../decision-answer.ts';
import { cursorMember, readCursor } from '../cursor.ts';
import type { ApiContext, ApiDeps, ApiEnv } from '../deps.ts';
import { findGate } from '../find-gate.ts';
import { gateOf } from '../gate-record.ts';
import { readIdempotencyKey } from '../headers.ts';
import { approvalPath } from '../links.ts';
import { approvalNotFound } from '../problem.ts';
import { createRequester } from '../request-approval.ts';
import { approvalRequestBody, approvalsQuery, maxPageSize } from '../request-schemas.ts';
import { approvalPage, approvalView as approvalSchema, type ApprovalRow } from '../schemas.ts';
import { approvalParams, guarded, guardedProblems, jsonContent } from './route-parts.ts';

const request = createRoute({
  ...guarded('post', '/approvals'),
  request: { body: { required: true, content: { 'application/json': { schema: approvalRequestBody } } } },
  responses: {
    200: jsonContent(approvalSchema, 'the approval that an earlier, equal request asked for'),
    201: jsonContent(approvalSchema, 'asked for; its payload hash is the ETag'),
    ...guardedProblems(
      'invalid_request',
      'approval_not_found',
      'not_open',
      'idempotency_in_flight',
      'idempotency_key_reused',
      'too_large',
      'unsupported_media_type',
      'temporal_unavailable',
    ),
  },
});

const list = createRoute({
  ...guarded('get', '/approvals'),
  request: { query: approvalsQuery },
  responses: {
    200: jsonContent(approvalPage, 'approvals of up to 20 runs, newest run first'),
    ...guardedProblems('invalid_request', 'temporal_unavailable'),
  },
});

const read = createRoute({
  ...guarded('get', '/approvals/{key}'),
  request: { params: approvalParams },
  responses: {
    200: jsonContent(approvalSchema, 'the case; its payload hash is the ETag'),
    ...guardedProblems('approval_not_found', 'not_open', 'temporal_unavailable'),
  },
});

type Filter = {
  state?: ApprovalRow['state'] | undefined;
  tool?: string | undefined;
  spec?: string | undefined;
  run?: string | undefined;
};

export function approvalRoutes(
  app: OpenAPIHono<ApiEnv>,
  { deps, startOnce, decider, skipOdd }: ApiContext,
): void {
  const { client, baseUrl } = deps;
  const requestApproval = createRequester(deps, startOnce);
  const setting = () => ({ now: deps.now(), ...(baseUrl === undefined ? {} : { baseUrl }) });

  app.openapi({ ...list, middleware: [bearerAuth(deps, list)] as const }, async (c) => {
    const { limit, cursor, ...filter } = c.req.valid('query');
    const pageSize = limit === undefined ? maxPageSize : Number(limit);
    const page = await runsOf(client, filter, { pageSize, ...readCursor(cursor, filter) });
    const seen = page.runs.filter((run) => maySee(c.get('principal'), run));
    const rows = await Promise.all(
      seen.map((run) => skipOdd(run, () => run.approvals.map((entry) => approvalRow(run, entry, setting())))),
    );
    const approvals = rows
      .flatMap((ofRun) => ofRun ?? [])
      .filter((row) => fits(row, filter))
      .filter(({ state, key }) => state !== 'pending' || !decider.settledLately(key));
    return c.json({ approvals, ...cursorMember(page.cursor, filter) }, 200);
  });

  const readApproval = async (principal: Principal, key: string) => {
    const { run, position } = await findGate(client, principal, key);
    const record = gateOf(await client.readTrail(run.runId), key);
    if (record !== undefined) return approvalView(run, record, setting());
    throw run.closeStatus === undefined
      ? notOpen({ key, runId: run.runId, position })
      : approvalNotFound(key);
  };

  app.openapi(
    { ...request, middleware: [bearerAuth(deps, request), jsonBody(runBodyLimitBytes)] as const },
    async (c) => {
      const principal = c.get('principal');
      const idempotencyKey = readIdempotencyKey(c.req.header('idempotency-key'));
      const asked = await requestApproval(principal, c.req.valid('json'), idempotencyKey);
      const { runId, run } = asked;
      const root = run === undefined ? asked.root : run.root;
      const key = approvalKey({ workflowId: runId, position: requestPosition, root });
      c.header('location', `${baseUrl ?? ''}${approvalPath(key)}`);
      if (run !== undefined) {
        const view = await readApproval(principal, key);
        c.header('etag', `"${view.payloadHash}"`);
        return c.json(view, 200);
      }
      // from what was frozen: the run is started, whatever becomes of a second call
      const requested = askedCase({ ...asked.checked, key, root });
      c.header('etag', `"${requested.payloadHash}"`);
      return c.json(approvalView({ runId, root, approvals: [] }, { requested }, setting()), 201);
    },
  );

  app.openapi({ ...read, middleware: [bearerAuth(deps, read)] as const }, async (c) => {
    const view = await readApproval(c.get('principal'), c.req.valid('param').key);
    c.header('etag', `"${view.payloadHash}"`);
    return c.json(view, 200);
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
