// The exit code is the answer that a script reads: one for each problem of the API, and one for each way of
// not getting an answer.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { test } from 'node:test';
import { exitCodeOf } from '../src/cli/exit-codes.ts';
import { errorCodes, errorTable, type ErrorCode } from '../src/core/errors.ts';
import { runCommand } from './support/fake-terminal.ts';
import { startStubApi } from './support/stub-api.ts';

const stub = await startStubApi();
const env = { COUNTERSIGN_URL: stub.url, COUNTERSIGN_TOKEN: 'token-ann' };
const hash = `sha256:${'0'.repeat(64)}`;
const approve = ['approve', 'k', '--yes', '--hash', hash];

const byExitCode: Record<number, ErrorCode[]> = {
  1: [
    ...(['invalid_request', 'method_not_allowed', 'too_large', 'unsupported_media_type'] as const),
    ...(['invalid_edit', 'payload_hash_required'] as const),
  ],
  3: [
    ...(['already_resolved', 'run_closed', 'not_open', 'spec_changed', 'idempotency_in_flight'] as const),
    ...(['ambiguous_approval', 'payload_changed', 'idempotency_key_reused'] as const),
  ],
  4: [
    ...(['unauthenticated', 'invalid_signature', 'stale_timestamp'] as const),
    ...(['not_allowed', 'self_approval', 'unproven'] as const),
  ],
  5: ['not_found', 'trigger_not_found', 'run_not_found', 'approval_not_found', 'decision_not_found'],
  69: ['rate_limited', 'internal_error', 'temporal_unavailable', 'issuer_unavailable', 'check_failed'],
};

function problem(code: ErrorCode) {
  const { status, title, remedy } = errorTable[code];
  const body = { status, title, remedy, code, detail: `detail of ${code}` };
  return { status, body, headers: { 'content-type': 'application/problem+json' } };
}

test('each problem of the API has its exit code, its words on stderr, and leaves stdout empty', async () => {
  const expected = new Map(
    Object.entries(byExitCode).flatMap(([exit, codes]) => codes.map((code) => [code, Number(exit)])),
  );
  for (const code of errorCodes) {
    stub.answer = () => problem(code);
    const { exitCode, stdout, stderr } = await runCommand(approve, { env });
    assert.equal(exitCode, expected.get(code), `exit code of ${code}`);
    assert.equal(stdout, '', code);
    assert.ok(stderr.includes(`detail of ${code}`), stderr);
    // what to do is said in commands, not in routes and headers
    assert.doesNotMatch(stderr, /\b(?:GET|POST) \/|If-Match|Authorization:/);
    assert.notEqual((stderr.split('\n')[1] ?? '').trim(), '', stderr);
  }
});

test('with --json a command line that is wrong is one line of JSON too', async () => {
  for (const args of [
    ['approve', '--json'],
    ['runs', 'show', '--json'],
    ['approve', 'k', '--jsom', '--json'],
  ]) {
    const { exitCode, stdout, stderr } = await runCommand(args, { env });
    assert.deepEqual([exitCode, stdout], [64, '']);
    const said = JSON.parse(stderr);
    assert.deepEqual([said.code, said.exitCode], ['usage', 64]);
    assert.match(said.message, /^(?:missing required argument|unknown option) /);
  }
});

test('with --json a failure is one line of JSON on stderr, with everything that the API said', async () => {
  stub.answer = () => {
    const { body, ...rest } = problem('payload_changed');
    return { ...rest, body: { ...body, currentHash: 'sha256:1' } };
  };
  const { exitCode, stdout, stderr } = await runCommand([...approve, '--json'], { env });
  assert.deepEqual([exitCode, stdout], [3, '']);
  const said = JSON.parse(stderr);
  assert.equal(said.code, 'payload_changed');
  assert.equal(said.currentHash, 'sha256:1');
  assert.equal(said.exitCode, 3);
});

test('a code that this CLI does not know has the exit code of its status', () => {
  const of = (status: number) => exitCodeOf({ code: 'from_the_future', status });
  assert.deepEqual([400, 401, 403, 404, 409, 412, 429, 500, 503].map(of), [1, 4, 4, 5, 3, 3, 69, 69, 69]);
  assert.equal(exitCodeOf({ code: 'toString', status: 404 }), 5);
});

test('an answer that is not of countersign says to check the address', async () => {
  for (const [status, exit] of [
    [302, 1],
    [404, 1],
    [500, 69],
  ] as const) {
    stub.answer = () => ({ status, body: '<html>', headers: { location: 'http://127.0.0.1:1/' } });
    const { exitCode, stderr } = await runCommand(['runs', 'list'], { env });
    assert.equal(exitCode, exit, String(status));
    assert.match(stderr, new RegExp(`answered ${status}.*check COUNTERSIGN_URL`));
  }
});

test('an API that cannot be reached is tried again, then 69 with the key to send the same again', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  const nobody = { ...env, COUNTERSIGN_URL: `http://127.0.0.1:${port}` };
  const { exitCode, stderr, sleeps } = await runCommand(approve, { env: nobody });
  assert.deepEqual([exitCode, sleeps.length], [69, 2]);
  assert.match(stderr, /cannot be reached \(ECONNREFUSED\).*\n.*--idempotency-key [0-9a-f-]{36}/);
});

test('every try of one call has the same Idempotency-Key, and the next call another', async () => {
  const broken = [{ breakOff: true }, problem('temporal_unavailable')];
  const seen = new Set<string>();
  for (let call = 0; call < 2; call += 1) {
    stub.requests.length = 0;
    const script = [...broken];
    stub.answer = () => script.shift() ?? { body: { key: 'k', verdict: 'accepted', decisionId: 'd' } };
    const { exitCode, sleeps } = await runCommand(approve, { env });
    assert.deepEqual([exitCode, sleeps.length], [0, 2]);
    const keys = stub.requests.map(({ headers }) => headers['idempotency-key']);
    assert.equal(keys.length, 3);
    assert.equal(new Set(keys).size, 1);
    seen.add(String(keys[0]));
  }
  assert.equal(seen.size, 2);
});

test('--idempotency-key is sent as it is, and Retry-After is respected up to ten seconds', async () => {
  stub.requests.length = 0;
  const script = [{ ...problem('rate_limited'), headers: { 'retry-after': '3600' } }];
  stub.answer = () => script.shift() ?? { body: { key: 'k', verdict: 'accepted', decisionId: 'd' } };
  const args = [...approve, '--idempotency-key', 'mine-1'];
  const { exitCode, sleeps } = await runCommand(args, { env });
  assert.deepEqual([exitCode, sleeps], [0, [10_000]]);
  assert.deepEqual(
    stub.requests.map(({ headers }) => headers['idempotency-key']),
    ['mine-1', 'mine-1'],
  );
});

test('every request says who it is from, and carries the token', async () => {
  stub.requests.length = 0;
  stub.answer = () => ({ body: { runs: [] } });
  await runCommand(['runs', 'list'], { env });
  const headers = stub.requests[0]?.headers;
  assert.match(String(headers?.['user-agent']), /^countersign-cli\/\d+\.\d+\.\d+$/);
  assert.equal(headers?.authorization, 'Bearer token-ann');
});

test('without a token nothing is sent, and a bad address is a matter of usage', async () => {
  stub.requests.length = 0;
  for (const [more, exit] of [
    [{ COUNTERSIGN_TOKEN: '' }, 4],
    [{ COUNTERSIGN_TOKEN: 'two words' }, 4],
    [{ COUNTERSIGN_URL: 'ftp://x' }, 64],
    [{ COUNTERSIGN_URL: 'http://ann:secret@127.0.0.1' }, 64],
  ] as const) {
    const { exitCode, stderr } = await runCommand(['runs', 'list'], { env: { ...env, ...more } });
    assert.equal(exitCode, exit, JSON.stringify(more));
    assert.ok(!stderr.includes('secret'), stderr);
  }
  assert.equal(stub.requests.length, 0);
});

test('what is called wrongly is 64, help and version are 0', async () => {
  const calls: [string[], number][] = [
    [[], 64],
    [['nope'], 64],
    [['runs'], 64],
    [['runs', 'nope'], 64],
    [['run'], 64],
    [['run', 'refund', '--nope'], 64],
    [['run', 'refund', '--timeout', 'soon'], 64],
    [['edit', 'k'], 64],
    [['--help'], 0],
    [['approve', '--help'], 0],
    [['--version'], 0],
  ];
  for (const [args, exit] of calls) {
    const { exitCode, stdout } = await runCommand(args, { env });
    assert.equal(exitCode, exit, args.join(' '));
    assert.equal(stdout === '', exit === 64, `stdout of ${args.join(' ')}`);
  }
});
