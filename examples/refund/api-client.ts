// How a program talks to countersign's API, with plain fetch: start a run, see what it asks, decide, look.
// Its one rule is that of every decision: the hash of what was shown goes with it.
import { randomUUID } from 'node:crypto';
import { until } from './until.ts';

export interface Answer {
  status: number;
  body: Record<string, unknown>;
}

/** What a person is shown: GET /approvals/:key. */
export interface Shown {
  key: string;
  runId: string;
  title: string;
  tool: string;
  arguments: Record<string, unknown>;
  payloadHash: string;
  state: string;
}

export interface Fact {
  seq: number;
  at: string;
  type: string;
  position?: string;
  temporalRunId: string;
  [member: string]: unknown;
}

export interface ApiClient {
  url: string;
  token: string;
  startRefund(order: string, amount: string): Promise<string>;
  /** What the run asks; waits until it asks. */
  shown(runId: string): Promise<Shown>;
  /** The answer to a decision, sent again where the API asks for that. */
  decide(kind: 'approve' | 'reject', key: string, body: object): Promise<Answer>;
  /** The case as it is now; undefined while the API cannot reach Temporal. */
  approval(key: string): Promise<Shown | undefined>;
  /** How the run ended; undefined while it has not. */
  ending(runId: string): Promise<string | undefined>;
  trail(runId: string): Promise<Fact[]>;
}

export function apiClient(url: string, token: string): ApiClient {
  const call = async (method: string, path: string, body?: object, headers = {}): Promise<Answer> => {
    const response = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: (await response.json()) as Answer['body'] };
  };

  /** Undefined while Temporal is away (503); anything else that is not 200 is an error. */
  const read = async (path: string): Promise<Answer['body'] | undefined> => {
    const { status, body } = await call('GET', path);
    if (status === 200) return body;
    if (status === 503) return undefined;
    throw new Error(`GET ${path} answered ${status}: ${String(body['detail'])}`);
  };
  const approval = async (key: string) => (await read(`/approvals/${key}`)) as Shown | undefined;

  return {
    url,
    token,
    approval,
    async startRefund(order, amount) {
      const run = { spec: 'refund', id: `refund-${order}`, input: { orderId: order, amount } };
      const { status, body } = await call('POST', '/runs', run);
      if (status !== 201) throw new Error(`POST /runs answered ${status}: ${String(body['detail'])}`);
      return String(body['id']);
    },
    async shown(runId) {
      const key = await until(`${runId} to ask`, async () => {
        const page = await read(`/approvals?run=${encodeURIComponent(runId)}`);
        return (page?.['approvals'] as { key: string }[] | undefined)?.[0]?.key;
      });
      return until(`the case of ${key}`, () => approval(key));
    },
    async decide(kind, key, body) {
      // 503 says "not confirmed": sent again under the same Idempotency-Key it is still one decision.
      const headers = { 'idempotency-key': randomUUID() };
      const answer = await until(`an answer to ${kind}`, async () => {
        const sent = await call('POST', `/approvals/${key}/${kind}`, body, headers);
        return sent.status === 503 ? undefined : sent;
      });
      if (answer.status !== 202) return answer;
      // 202 says "recorded, not judged yet": the verdict comes with the next worker.
      const path = `/approvals/${key}/decisions/${String(answer.body['decisionId'])}`;
      return until('the verdict', async () => {
        const verdict = await call('GET', path);
        return [202, 503].includes(verdict.status) ? undefined : verdict;
      });
    },
    async ending(runId) {
      const status = (await read(`/runs/${encodeURIComponent(runId)}`))?.['status'];
      return ['completed', 'rejected', 'failed', 'cancelled'].find((end) => end === status);
    },
    async trail(runId) {
      return (await read(`/runs/${encodeURIComponent(runId)}/trail`))?.['trail'] as Fact[];
    },
  };
}
