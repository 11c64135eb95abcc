// HTTP as the commands need it. A request that may have been lost is sent again, and whatever starts or
// decides something has one Idempotency-Key for all tries, so that it happens once.
import { randomUUID } from 'node:crypto';
import { CliProblem, exitCodeOf, exitCodes } from './exit-codes.ts';
import type { Terminal } from './terminal.ts';
import { packageVersion } from './version.ts';

export interface ApiRequest {
  method?: 'GET' | 'POST';
  path: string;
  query?: Readonly<Record<string, string | undefined>>;
  body?: unknown;
  headers?: Readonly<Record<string, string>>;
  /** for a POST; default: one made for this request */
  idempotencyKey?: string | undefined;
}

export interface ApiAnswer {
  status: number;
  text: string;
  /** the body as JSON; undefined when it is none */
  body: unknown;
}

export interface ApiClient {
  url: string;
  /** @throws CliProblem for everything but a 2xx */
  request(request: ApiRequest): Promise<ApiAnswer>;
}

const defaultUrl = 'http://127.0.0.1:7280';
// A decision is answered within 3 s, a start within the time of a Temporal call; a list may be slow.
const answerBoundMs = 30_000;
// An API that restarts is back in about two seconds.
const pausesMs = [250, 2000];
// Longer than any Retry-After of the API's own table.
const longestPauseMs = 10_000;
const passing = new Set([429, 502, 503, 504]);

/** @throws CliProblem when the environment names no usable API */
export function connectApi(terminal: Terminal): ApiClient {
  const url = apiUrl(terminal.env);
  const token = terminal.env['COUNTERSIGN_TOKEN'];
  if (!token) {
    const remedy = 'set it to an API token: `countersign dev` prints one at its first start';
    throw new CliProblem(exitCodes.notAllowed, `COUNTERSIGN_TOKEN is not set: ${remedy}`, {
      code: 'unauthenticated',
    });
  }
  if (!/^[\x21-\x7e]+$/.test(token)) {
    const rule = 'a token has visible ASCII characters only';
    throw new CliProblem(exitCodes.notAllowed, `COUNTERSIGN_TOKEN is no token: ${rule}`, {
      code: 'unauthenticated',
    });
  }
  const agent = `countersign-cli/${packageVersion()}`;

  async function request({ method = 'GET', path, query = {}, body, headers, idempotencyKey }: ApiRequest) {
    const key = method === 'POST' ? (idempotencyKey ?? randomUUID()) : undefined;
    const target = new URL(url + path);
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) target.searchParams.set(name, value);
    }
    const options = {
      method,
      redirect: 'manual' as const, // a token goes to nobody else
      headers: {
        accept: 'application/json',
        authorization: `Bearer ${token}`,
        'user-agent': agent,
        ...(key === undefined ? {} : { 'idempotency-key': key }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    };
    for (let attempt = 0; ; attempt += 1) {
      const outcome = await send(target, options);
      const pause = pausesMs[attempt];
      if (outcome instanceof Response) {
        const answer = await readAnswer(outcome);
        if (answer !== undefined && outcome.ok) return answer;
        if (pause === undefined || (answer !== undefined && !isPassing(outcome.status, answer))) {
          throw answer === undefined
            ? unreachable(url, 'its answer broke off', key)
            : refusal(url, answer, key);
        }
        await terminal.sleep(retryAfterMs(outcome) ?? pause);
      } else {
        if (pause === undefined) throw unreachable(url, outcome, key);
        await terminal.sleep(pause);
      }
    }
  }

  return { url, request };
}

/** Where the API is, without a slash at the end. @throws CliProblem */
export function apiUrl(env: NodeJS.ProcessEnv): string {
  const text = env['COUNTERSIGN_URL'] || defaultUrl;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username + url.password !== '') {
    const rule = `must be an http or https URL without user and password, such as ${defaultUrl}`;
    throw new CliProblem(exitCodes.usage, `COUNTERSIGN_URL ${rule}`, { code: 'usage' });
  }
  return (url.origin + url.pathname).replace(/\/+$/, '');
}

/** The answer, or why there is none. */
async function send(target: URL, options: RequestInit): Promise<Response | string> {
  try {
    return await fetch(target, { ...options, signal: AbortSignal.timeout(answerBoundMs) });
  } catch (error) {
    const { cause, message, name } = error as Error & { cause?: { code?: string; message?: string } };
    if (name === 'TimeoutError') return `no answer in ${answerBoundMs / 1000} s`;
    return cause?.code ?? cause?.message ?? message;
  }
}

async function readAnswer(response: Response): Promise<ApiAnswer | undefined> {
  const { status } = response;
  const text = await response.text().catch(() => undefined);
  if (text === undefined) return undefined;
  try {
    return { status, text, body: JSON.parse(text) as unknown };
  } catch {
    return { status, text, body: undefined };
  }
}

function isPassing(status: number, { body }: ApiAnswer): boolean {
  return passing.has(status) || (body as { code?: unknown } | undefined)?.code === 'idempotency_in_flight';
}

function retryAfterMs({ headers }: Response): number | undefined {
  const seconds = /^\d{1,6}$/.exec(headers.get('retry-after') ?? '')?.[0];
  return seconds === undefined ? undefined : Math.min(Number(seconds) * 1000, longestPauseMs);
}

/** Where the API's own remedy names a route or a header, the command for it. */
const remedies: Readonly<Record<string, string>> = {
  unauthenticated: 'Set COUNTERSIGN_TOKEN to an API token of this deployment.',
  approval_not_found:
    'Look at `countersign approvals list` for what is pending, or at `countersign trail RUN` for what became of it.',
  not_open: 'Send it again once the approval is in `countersign approvals list`.',
  run_closed: 'Nothing: `countersign runs show RUN` says how it ended.',
  payload_hash_required: 'Name the hash that you saw: --hash sha256:…',
  payload_changed: 'Look at it again with `countersign approvals show KEY`, and decide on what it is now.',
};

function refusal(url: string, { status, body }: ApiAnswer, key: string | undefined): CliProblem {
  if (typeof body !== 'object' || body === null || !('code' in body)) {
    const message = `${url} answered ${status}, and not as countersign does: check COUNTERSIGN_URL`;
    const exitCode = status >= 500 ? exitCodes.unavailable : exitCodes.invalid;
    return new CliProblem(exitCode, message, { code: 'no_problem_json', status });
  }
  const problem = body as Record<string, unknown>;
  const text = (name: string) => (typeof problem[name] === 'string' ? problem[name] : '');
  const exitCode = exitCodeOf({ code: text('code'), status });
  const again = exitCode === exitCodes.unavailable ? repeatHint(key) : '';
  return new CliProblem(
    exitCode,
    `${text('title')} (${text('code')}): ${text('detail')}\n  ${remedies[text('code')] ?? text('remedy')}${again}`,
    problem,
  );
}

function unreachable(url: string, why: string, key: string | undefined): CliProblem {
  const message = `the API at ${url} cannot be reached (${why}): check COUNTERSIGN_URL${repeatHint(key)}`;
  return new CliProblem(exitCodes.unavailable, message, {
    code: 'api_unreachable',
    ...(key === undefined ? {} : { idempotencyKey: key }),
  });
}

function repeatHint(key: string | undefined): string {
  return key === undefined ? '' : `\n  To send the same again: --idempotency-key ${key}`;
}
