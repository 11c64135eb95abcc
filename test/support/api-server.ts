// A real API for tests on a real server: the app of `countersign api` with the real client, behind HTTP on a
// port of the system's choice. Several of them on one Temporal stand for several API processes.
import assert from 'node:assert/strict';
import { Client } from '@temporalio/client';
import { buildApp } from '../../src/api/app.ts';
import { createAuthenticate } from '../../src/api/authenticate.ts';
import type { ApiDeps } from '../../src/api/deps.ts';
import { createClient } from '../../src/client.ts';
import type { CountersignClient } from '../../src/countersign-client.ts';
import { signProof } from '../../src/core/proof.ts';
import { inputProblems } from '../../src/core/spec/input.ts';
import { checkSpecObject } from '../../src/core/spec/load.ts';
import { createFreezeRequest } from '../../src/freeze-request.ts';
import { addToken, openSecrets } from '../../src/secrets.ts';
import { connectTemporal } from '../../src/temporal-connection.ts';
import { serveApp, type Answer } from './api-harness.ts';
import { closeAfterFile } from './cleanup.ts';
import { eventually } from './eventually.ts';
import { fetchHistory } from './history.ts';
import type { TestTemporal } from './temporal.ts';
import { testTools } from './tools.ts';

export interface ApiServerOptions {
  secretsFile: string;
  /** ids of those who get a token; default `ann` and `bob` */
  people?: readonly string[];
  /** Default 30 s, so that a slow machine makes no 202 of what a fast one answers; the product's is 3 s. */
  receiptBudgetMs?: number;
  /** Of each Temporal call. Default 30 s, so that a slow machine makes no 503; the product's is 5 s. */
  deadlineMs?: number;
  /** of the event streams; default: the product's own */
  events?: Pick<ApiDeps, 'heartbeatMs' | 'allEvents' | 'followPausesMs'>;
  /** puts something between the API and Temporal */
  wrapClient?: (client: CountersignClient) => CountersignClient;
  /** in place of no named specs and no triggers */
  deps?: Partial<Pick<ApiDeps, 'specs' | 'triggers' | 'dropHeaders'>>;
}

export interface HttpCall {
  /** a person's id, or `nobody`: no credentials; default `ann` */
  as?: string;
  headers?: Record<string, string>;
  idempotencyKey?: string;
  /** sent as JSON; a string, bytes or a stream as they are */
  body?: unknown;
}

export interface ApiServer {
  url: string;
  /** what the API logged */
  logged: Record<string, unknown>[];
  call(method: string, path: string, more?: HttpCall): Promise<Answer>;
  /** The answer unread: an event stream. */
  open(path: string, as?: string, lastEventId?: string): Promise<Response>;
  approve(gate: { key: string; hash: string }, more?: HttpCall): Promise<Answer>;
  reject(gate: { key: string }, more?: HttpCall): Promise<Answer>;
  /** The answer; where it was 202, what its Location says in the end. Needs a worker. */
  final(answer: Answer, more?: HttpCall): Promise<Answer>;
  /** The fitting rows of a list, of the first page that has any: other tests' runs are in it too. Waits for them. */
  find(path: string, fits: (row: Record<string, unknown>) => boolean): Promise<Record<string, unknown>[]>;
  close(): Promise<void>;
}

/** A request that takes this long hangs: none comes near the sum of its deadlines. */
const hangMs = 120_000;
const patientMs = 30_000;

export async function startApi(
  { address, namespace, taskQueue }: Pick<TestTemporal, 'address' | 'namespace' | 'taskQueue'>,
  options: ApiServerOptions,
): Promise<ApiServer> {
  const { secretsFile, people = ['ann', 'bob'], wrapClient } = options;
  const { receiptBudgetMs = patientMs, deadlineMs = patientMs } = options;
  const tokens = new Map<string, string>();
  for (const id of people) {
    tokens.set(id, await addToken(secretsFile, { id, name: id.toUpperCase(), roles: ['finance'] }));
  }
  // opened after the tokens were made: an open one sees a change only within a second
  const { secrets } = await openSecrets({ path: secretsFile, create: false });
  const { connection } = connectTemporal({ address, namespace });
  const client = createClient({
    client: new Client({ connection, namespace }),
    namespace,
    taskQueue,
    deadlineMs,
  });
  const tools = testTools('http://127.0.0.1:9');
  const logged: Record<string, unknown>[] = [];
  const deps: ApiDeps = {
    client: wrapClient?.(client) ?? client,
    specs: { get: () => undefined, names: () => [], problemOf: () => undefined },
    checkInlineSpec: (value) => {
      const checked = checkSpecObject(value, { tools });
      return 'spec' in checked ? checked : { problems: checked.problems.map(({ message }) => message) };
    },
    checkInput: (spec, input) => inputProblems(spec.input, input),
    freezeRequest: createFreezeRequest({ tools }),
    authenticate: createAuthenticate(secrets),
    sign: (decision, { workflowId }) => signProof(decision, { namespace, workflowId }, secrets.signingKey()),
    log: (fields) => logged.push(fields),
    now: () => Date.now(),
    receiptBudgetMs,
    ...options.events,
    ...options.deps,
  };
  const server = await serveApp(buildApp(deps));
  let closed: Promise<void> | undefined;
  const close = (): Promise<void> =>
    (closed ??= Promise.resolve(server.close()).then(() => connection.close()));
  closeAfterFile(close);

  async function call(method: string, path: string, more: HttpCall = {}): Promise<Answer> {
    const { as = 'ann', headers = {}, idempotencyKey, body } = more;
    const raw = typeof body === 'string' || body instanceof Uint8Array || body instanceof ReadableStream;
    const token = tokens.get(as);
    if (token === undefined && as !== 'nobody') throw new Error(`"${as}" has no token at this API`);
    const response = await fetch(server.url + path, {
      method,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: raw ? (body as string) : JSON.stringify(body), duplex: 'half' }),
      signal: AbortSignal.timeout(hangMs),
    });
    const text = await response.text();
    const isJson = /json$/.test(response.headers.get('content-type') ?? '');
    const parsed: unknown = isJson && text !== '' ? JSON.parse(text) : {};
    return { status: response.status, headers: response.headers, body: parsed as Answer['body'], text };
  }

  return {
    url: server.url,
    logged,
    call,
    open: (path, as = 'ann', lastEventId) =>
      fetch(server.url + path, {
        headers: {
          authorization: `Bearer ${tokens.get(as)}`,
          ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
        },
      }),
    approve: ({ key, hash }, more = {}) =>
      call('POST', `/approvals/${key}/approve`, {
        ...more,
        headers: { 'if-match': `"${hash}"`, ...more.headers },
      }),
    reject: ({ key }, more = {}) => call('POST', `/approvals/${key}/reject`, more),
    async final(answer, more = {}) {
      if (answer.status !== 202) return answer;
      const location = answer.headers.get('location');
      if (location === null) throw new Error(`202 without a Location: ${answer.text}`);
      return eventually(
        async () => {
          const later = await call('GET', location, { as: more.as ?? 'ann' });
          return later.status === 202 ? undefined : later;
        },
        { message: `an answer other than 202 at ${location}` },
      );
    },
    find: (path, fits) =>
      eventually(
        async () => {
          let cursor: string | undefined;
          do {
            const more = cursor === undefined ? '' : `${path.includes('?') ? '&' : '?'}cursor=${cursor}`;
            const { status, body, text } = await call('GET', path + more);
            if (status !== 200) throw new Error(`GET ${path}: ${status} ${text}`);
            const rows = Object.values(body).find(Array.isArray) as Record<string, unknown>[];
            const found = rows.filter(fits);
            if (found.length > 0) return found;
            cursor = body['cursor'] as string | undefined;
          } while (cursor !== undefined);
          return undefined;
        },
        { message: `the rows in ${path}` },
      ),
    close,
  };
}

/**
 * How often each decision id stands in the history of the run's current execution, as a signal. What any
 * door answered with 2xx must be in there.
 */
export async function signalledIds(client: Client, runId: string): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const { workflowExecutionSignaledEventAttributes: signal } of (await fetchHistory(client, runId))
    .events ?? []) {
    const data = signal?.signalName === 'decide' ? signal.input?.payloads?.[0]?.data : undefined;
    if (data === undefined || data === null) continue;
    const { decisionId } = JSON.parse(Buffer.from(data).toString()) as { decisionId: string };
    counts.set(decisionId, (counts.get(decisionId) ?? 0) + 1);
  }
  return counts;
}

/** What was answered with 2xx stands in the history of the run, as the decision that the answer names. */
export async function assertInHistory(
  client: Client,
  runId: string,
  answers: readonly Answer[],
): Promise<void> {
  const ids = await signalledIds(client, runId);
  for (const { status, body, text } of answers) {
    if (status >= 300) continue;
    assert.ok(ids.has(String(body['decisionId'])), `answered ${status}, not in history: ${text}`);
  }
}
