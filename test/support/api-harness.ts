// The API over the fake client: three callers with tokens, one spec, a clock that stands still.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { z } from 'zod';
import { getRequestListener } from '@hono/node-server';
import { buildApp } from '../../src/api/app.ts';
import type { Principal } from '../../src/api/auth.ts';
import type { ApiDeps } from '../../src/api/deps.ts';
import type { Spec } from '../../src/core/spec/spec.ts';
import { createFreezeRequest } from '../../src/freeze-request.ts';
import { defaultScopes } from '../../src/scopes.ts';
import { defineTool } from '../../src/tool.ts';
import { createFakeClient } from './fake-client.ts';

export const refundSpec: Spec = {
  version: 1,
  name: 'refund',
  steps: [{ id: 'refund', tool: 'refund', with: {}, before: { approve: {} } }],
};

const refund = defineTool({
  name: 'refund',
  arguments: z.object({ order: z.string(), amount: z.string(), currency: z.string().default('EUR') }),
  idempotency: 'key',
  requiresApproval: true,
  run: async () => null,
});

const fields = { kind: 'person', scopes: defaultScopes } as const;
const people: Record<string, Principal> = {
  'token-ann': { ...fields, id: 'ann', name: 'Ann', roles: ['finance'] },
  'token-bob': { ...fields, id: 'bob', name: 'Bob', roles: ['finance'] },
};

export interface Call {
  as?: 'ann' | 'bob' | 'nobody';
  headers?: Record<string, string>;
  /** sent as JSON; a string or bytes as they are */
  body?: unknown;
}

export interface Answer {
  status: number;
  headers: Headers;
  body: Record<string, unknown>;
  text: string;
}

export function createApiHarness(more: Partial<ApiDeps> = {}) {
  const clock = { now: Date.parse('2026-11-02T10:00:00.000Z') };
  const now = () => clock.now;
  const fake = createFakeClient(now);
  const logged: Record<string, unknown>[] = [];
  const app = buildApp({
    client: fake.client,
    specs: {
      get: (name) => (name === 'refund' ? { spec: refundSpec, hash: `sha256:${'a'.repeat(64)}` } : undefined),
      names: () => ['refund'],
      problemOf: (name) => (name === 'broken' ? 'broken.yaml:3:5 error unknown key "stepz"' : undefined),
    },
    checkInlineSpec: (value) =>
      typeof value === 'object' && value !== null && 'name' in value
        ? { spec: value as unknown as Spec }
        : { problems: ['/name: a spec has a name'] },
    checkInput: (_spec, input) =>
      typeof input === 'object' && input !== null && 'bad' in input ? ['/bad: is not taken'] : [],
    freezeRequest: createFreezeRequest({ tools: [refund] }),
    authenticate: (token) => people[token],
    sign: async ({ decisionId }, { workflowId }) =>
      `proof-of-${decisionId}-in-${encodeURIComponent(workflowId)}`,
    log: (fields) => logged.push(fields),
    now,
    receiptBudgetMs: 2000,
    ...more,
  });

  async function call(
    method: string,
    path: string,
    { as = 'ann', headers = {}, body }: Call = {},
  ): Promise<Answer> {
    const raw = typeof body === 'string' || body instanceof Uint8Array || body instanceof ReadableStream;
    const response = await app.request(path, {
      method,
      headers: {
        ...(as === 'nobody' ? {} : { authorization: `Bearer token-${as}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: raw ? body : JSON.stringify(body), duplex: 'half' }),
    });
    const text = await response.text();
    const isJson = /json$/.test(response.headers.get('content-type') ?? '');
    const parsed: unknown = isJson && text !== '' ? JSON.parse(text) : {};
    return { status: response.status, headers: response.headers, body: parsed as Answer['body'], text };
  }

  return {
    app,
    fake,
    clock,
    logged,
    call,
    approve: (key: string, hash: string, more: Call = {}) =>
      call('POST', `/approvals/${key}/approve`, {
        ...more,
        headers: { 'if-match': `"${hash}"`, ...more.headers },
      }),
    reject: (key: string, more: Call = {}) => call('POST', `/approvals/${key}/reject`, more),
  };
}

/** The app behind a real HTTP server on a port of the system's choice. */
export async function serveApp(app: Pick<ReturnType<typeof buildApp>, 'fetch'>) {
  const listener = getRequestListener(app.fetch);
  const server = createServer((request, response) => void listener(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
