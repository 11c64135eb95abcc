// The target of the effects, a process of its own: what it does is on the disk, with fsync, before anybody is
// answered. It carries out each key once where its path takes keys, and misbehaves as it is told. It knows
// nothing of countersign, and its hash is made by the library itself and not by countersign's code.
import { createHash } from 'node:crypto';
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import canonicalize from 'canonicalize';
import type { LedgerLine } from './evidence.ts';
import type { TargetMode } from './plan-faults.ts';
import { endWithParent, reportReady } from '../support/processes.ts';

/** `/keyed`: each key once. `/lookup`: can be asked for a key. `/plain`: takes none, and each request counts. */
type Path = '/keyed' | '/lookup' | '/plain';

interface Done {
  tool: string;
  hash: string;
  receipt: string;
  at: number;
}

interface Fault {
  mode: TargetMode;
  times: number;
  /** of the payment that it strikes */
  order: string;
}

/** What the harness asks of it, in a POST to /control. */
export interface TargetControl {
  /** the next `times` requests for that order behave so */
  fault?: Fault;
  /** how long keys of `pay.short` are remembered, ms: the tool says so, the others say that theirs are for ever */
  rememberMs?: number;
  /** `/lookup` carries out each key once, too: where requests may be underway while it is asked */
  lookupOnce?: boolean;
  /** as at the start; the ledger stays */
  reset?: true;
}

/** Longer than the tools' time for an attempt, and shorter. */
const hangMs = 7_000;
const slowMs = 1_000;
const inProgressMs = 900;

const lines: LedgerLine[] = [];
const done = new Map<string, Done>();
const underway = new Set<string>();
let faults: Fault[] = [];
const fired: Partial<Record<TargetMode | 'forgotten', number>> = {};
let rememberMs = Infinity;
let lookupOnce = false;
const [, , fileName = ''] = process.argv;
const file = openSync(fileName, 'a');
process.once('exit', () => closeSync(file));

function write(request: Asked, outcome: string): void {
  const { key, body, hash, tool } = request;
  const line = { time: new Date().toISOString(), key, payloadHash: hash, body, outcome, tool };
  writeSync(file, `${JSON.stringify(line)}\n`);
  fsyncSync(file);
  lines.push(line);
}

interface Asked {
  path: Path;
  /** null where the path takes none */
  key: string | null;
  tool: string;
  body: unknown;
  hash: string;
}

interface Answer {
  status: number;
  body: unknown;
  headers?: Record<string, string>;
}

/** Carries it out, or answers as the first time. Synchronous: nothing comes between look and line. */
function carryOut(asked: Asked): Answer {
  const { key, hash, path } = asked;
  const known = key === null ? undefined : recall(key);
  const once = path === '/keyed' || lookupOnce;
  if (known !== undefined && once) {
    if (known.hash !== hash) {
      write(asked, 'conflict');
      return { status: 422, body: { detail: 'this key was used with another body' } };
    }
    write(asked, 'replayed');
    return { status: 200, body: { receipt: known.receipt } };
  }
  const receipt = `r-${lines.length + 1}`;
  write(asked, 'done');
  if (key !== null) done.set(key, { tool: asked.tool, hash, receipt, at: Date.now() });
  console.log(JSON.stringify({ done: asked.body }));
  return { status: 201, body: { receipt } };
}

function recall(key: string): Done | undefined {
  const known = done.get(key);
  if (known?.tool !== 'pay.short' || Date.now() - known.at < rememberMs) return known;
  done.delete(key);
  count('forgotten');
  return undefined;
}

function count(what: TargetMode | 'forgotten'): void {
  fired[what] = (fired[what] ?? 0) + 1;
}

/** Undefined: there is no answer, the connection is ended. */
async function pay(asked: Asked, socketGone: () => void): Promise<Answer | 'cut body' | undefined> {
  if (asked.key !== null && underway.has(asked.key)) {
    write(asked, 'refused');
    return { status: 409, body: { detail: 'a request with this key is in progress' } };
  }
  const { order: asksFor } = asked.body as { order?: unknown };
  const fault = faults.find(({ times, order }) => times > 0 && order === asksFor);
  if (fault === undefined) return carryOut(asked);
  fault.times -= 1;
  count(fault.mode);
  switch (fault.mode) {
    case 'slow':
      return later(slowMs, carryOut(asked));
    case 'hang':
      return later(hangMs, carryOut(asked));
    case 'lost':
      carryOut(asked);
      return undefined;
    case '500-after':
      carryOut(asked);
      return { status: 500, body: { detail: 'it was carried out, and then something broke' } };
    case 'cut-body':
      carryOut(asked);
      return 'cut body';
    case 'refuse':
      return undefined;
    case '422':
      write(asked, 'refused');
      return { status: 422, body: { detail: 'no' } };
    case '429':
      write(asked, 'refused');
      return { status: 429, body: { detail: 'too many' }, headers: { 'retry-after': '1' } };
    case 'in-progress':
      if (asked.key !== null) underway.add(asked.key);
      socketGone();
      await later(inProgressMs, undefined);
      if (asked.key !== null) underway.delete(asked.key);
      carryOut(asked);
      return undefined;
  }
}

function later<Value>(ms: number, value: Value): Promise<Value> {
  return new Promise((resolve) => setTimeout(resolve, ms, value));
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString('utf8');
  return text === '' ? {} : (JSON.parse(text) as unknown);
}

function hashOf(payload: unknown): string {
  return `sha256:${createHash('sha256')
    .update(canonicalize(payload) ?? '')
    .digest('hex')}`;
}

async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://target');
  const send = ({ status, body, headers }: Answer): void => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify(body));
  };
  if (pathname === '/ledger') {
    const prefix = searchParams.get('prefix');
    const isAsked = ({ body }: LedgerLine): boolean =>
      prefix !== null && String((body as { order?: unknown }).order).startsWith(prefix);
    return send({ status: 200, body: { lines: lines.filter(isAsked), fired, underway: underway.size } });
  }
  if (pathname === '/lookup' && request.method === 'GET') {
    const key = searchParams.get('key') ?? '';
    const state = underway.has(key) ? 'unknown' : recall(key);
    return send({
      status: 200,
      body: state === 'unknown' ? { found: 'unknown' } : { found: state !== undefined, output: state },
    });
  }
  const body = await readJson(request);
  if (pathname === '/control') {
    control(body as TargetControl);
    return send({ status: 200, body: {} });
  }
  const path = pathname as Path;
  const tool = String(request.headers['x-tool']);
  const key = path === '/plain' ? null : String(request.headers['idempotency-key']);
  const asked: Asked = { path, key, tool, body, hash: hashOf({ tool, arguments: body }) };
  const answer = await pay(asked, () => request.socket.destroy());
  if (answer === undefined) request.socket.destroy();
  else if (answer === 'cut body') {
    response.writeHead(201, { 'content-type': 'application/json', 'content-length': '1000' });
    response.write('{"receipt":', () => request.socket.destroy());
  } else send(answer);
}

function control(asked: TargetControl): void {
  if (asked.reset === true) {
    faults = [];
    rememberMs = Infinity;
    lookupOnce = false;
    for (const name of Object.keys(fired)) delete fired[name as TargetMode];
  }
  if (asked.fault !== undefined) faults.push({ ...asked.fault });
  rememberMs = asked.rememberMs ?? rememberMs;
  lookupOnce = asked.lookupOnce ?? lookupOnce;
}

endWithParent();
const server = createServer((request, response) => {
  request.on('error', () => undefined);
  handle(request, response).catch((error: unknown) => {
    process.stderr.write(`target: ${String(error)}\n`);
    request.socket.destroy();
  });
});
server.listen(0, '127.0.0.1', () => reportReady({ port: (server.address() as AddressInfo).port }));
