// The ledger: a payments target in its own process. It writes one line per request to a file, with fsync,
// before it answers, so that no kill can lose what it did; and it carries out each Idempotency-Key once.
// It knows nothing of countersign. Faults are conditions that a test or the demo sets and clears
// (`POST /hold`, `/release`, `/fail`), never sleeps.
import { createHash } from 'node:crypto';
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, truncateSync, writeSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname } from 'node:path';
import { parseArgs } from 'node:util';
import canonicalize from 'canonicalize';

/** What a request came to: carried out, answered from the first one, or not carried out at all. */
type Outcome = 'refunded' | 'replayed' | 'conflict' | 'refused';

interface LedgerLine {
  time: string;
  path: string;
  /** null on the target that takes no key */
  key: string | null;
  /** of the body alone */
  payloadHash: string;
  body: unknown;
  outcome: Outcome;
  /** with `refunded` and `replayed`: what the requester is told */
  refund?: string;
}

interface Answer {
  status: number;
  body: unknown;
  headers?: Record<string, string>;
}

/** Larger than any payload that countersign lets pass (256 KiB). */
const maxBodyBytes = 1024 * 1024;

const { values: flags } = parseArgs({
  options: {
    file: { type: 'string', default: process.env['LEDGER_FILE'] ?? '.countersign/ledger.jsonl' },
    port: { type: 'string', default: process.env['LEDGER_PORT'] ?? '0' },
    /** not 127.0.0.1 only where the network is one's own, as in docker-compose.yml */
    host: { type: 'string', default: '127.0.0.1' },
    /** start with every answer held back, until `POST /release` */
    hold: { type: 'boolean', default: process.env['LEDGER_HOLD'] === '1' },
    /** end when stdin ends, that is, when the process that started this one is gone */
    'end-with-stdin': { type: 'boolean', default: false },
  },
});

const lines = readLines(flags.file);
const file = openSync(flags.file, 'a');
const firstByKey = new Map<string, LedgerLine>();
for (const line of lines) remember(line);

let holding = flags.hold;
const held: (() => void)[] = [];
const fail = { status: 503, times: 0 };

/** Reads what an earlier process wrote; a line that its kill tore was never answered, and goes. */
function readLines(path: string): LedgerLine[] {
  mkdirSync(dirname(path), { recursive: true });
  closeSync(openSync(path, 'a'));
  const content = readFileSync(path);
  const whole = content.lastIndexOf(0x0a) + 1;
  if (whole < content.length) truncateSync(path, whole);
  return content
    .subarray(0, whole)
    .toString('utf8')
    .split('\n')
    .filter((text) => text !== '')
    .map((text) => JSON.parse(text) as LedgerLine);
}

function remember(line: LedgerLine): void {
  if (line.key !== null && line.outcome === 'refunded') firstByKey.set(line.key, line);
}

/** The one way in: on the disk first, then in memory, and only then may anybody be answered. */
function write(line: LedgerLine): void {
  writeSync(file, `${JSON.stringify(line)}\n`);
  fsyncSync(file);
  lines.push(line);
  remember(line);
}

/** Judges, records and answers one request for a refund. Synchronous: no second request can come between. */
function carryOut(path: string, key: string | null, body: unknown): Answer {
  const line = (outcome: Outcome, refund?: string): LedgerLine => ({
    time: new Date().toISOString(),
    path,
    key,
    payloadHash: hashOf(body),
    body,
    outcome,
    ...(refund === undefined ? {} : { refund }),
  });
  if (fail.times > 0) {
    fail.times -= 1;
    write(line('refused'));
    return problem(fail.status, 'refused: this ledger was told to fail');
  }
  const first = key === null ? undefined : firstByKey.get(key);
  if (!first) {
    const refund = `re_${String(counts().refunds + 1)}`;
    write(line('refunded', refund));
    return { status: 201, body: { refund } };
  }
  if (first.payloadHash !== hashOf(body)) {
    write(line('conflict'));
    return problem(422, `Idempotency-Key ${first.key ?? ''} was used with another body before`);
  }
  write(line('replayed', first.refund));
  return { status: 201, body: { refund: first.refund }, headers: { 'Idempotent-Replayed': 'true' } };
}

function counts(): { requests: number; keys: number; refunds: number } {
  return {
    requests: lines.length,
    keys: new Set(lines.flatMap((line) => (line.key === null ? [] : [line.key]))).size,
    refunds: lines.filter((line) => line.outcome === 'refunded').length,
  };
}

function hashOf(body: unknown): string {
  return `sha256:${createHash('sha256')
    .update(canonicalize(body) ?? '')
    .digest('hex')}`;
}

function problem(status: number, detail: string): Answer {
  return { status, body: { status, detail } };
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBodyBytes) throw new Error(`the body is over ${String(maxBodyBytes)} bytes`);
    chunks.push(chunk);
  }
  return size === 0 ? {} : (JSON.parse(Buffer.concat(chunks).toString('utf8')) as unknown);
}

async function answer(request: IncomingMessage): Promise<Answer> {
  const route = `${request.method ?? ''} ${new URL(request.url ?? '/', 'http://ledger').pathname}`;
  if (route === 'GET /ledger') return { status: 200, body: { lines, counts: counts(), held: held.length } };

  let body: unknown;
  try {
    body = await readJson(request);
  } catch (error) {
    return problem(400, `the body is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  switch (route) {
    case 'POST /refunds': {
      const key = request.headers['idempotency-key'];
      if (typeof key !== 'string' || key === '') {
        return problem(400, 'POST /refunds needs an Idempotency-Key header');
      }
      return afterHold(carryOut('/refunds', key, body));
    }
    case 'POST /plain':
      return afterHold(carryOut('/plain', null, body));
    case 'POST /hold':
      holding = true;
      return { status: 200, body: { holding } };
    case 'POST /release':
      holding = false;
      for (const release of held.splice(0)) release();
      return { status: 200, body: { holding } };
    case 'POST /fail':
      // {"status": 503, "times": 1}: the next ones are written down, not carried out, and answered so.
      Object.assign(fail, { times: 1 }, body);
      return { status: 200, body: fail };
    default:
      return problem(404, `there is no ${route} here`);
  }
}

/** The refund is carried out and written down; the answer stays here while the ledger holds. */
async function afterHold(done: Answer): Promise<Answer> {
  if (holding) await new Promise<void>((release) => held.push(release));
  return done;
}

const server = createServer((request: IncomingMessage, response: ServerResponse) => {
  answer(request)
    .catch((error: unknown) => problem(500, String(error)))
    .then(({ status, body, headers }) => {
      response.writeHead(status, { 'content-type': 'application/json', ...headers });
      response.end(JSON.stringify(body));
    })
    .catch((error: unknown) => {
      process.stderr.write(`ledger: ${String(error)}\n`);
    });
});

server.listen(Number(flags.port), flags.host, () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(
    `${JSON.stringify({ ready: true, port, url: `http://127.0.0.1:${String(port)}`, file: flags.file })}\n`,
  );
});

// Held answers are dropped, as by a target that is shut down: their requests are on the disk.
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => process.exit(0));
if (flags['end-with-stdin']) process.stdin.on('end', () => process.exit(0)).resume();
