// Runs from the command line: start, show, cancel, the trail. `run` prints the id and nothing else.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { createApiHarness, serveApp } from './support/api-harness.ts';
import { runCommand, type FakeTerminalOptions } from './support/fake-terminal.ts';
import { startStubApi } from './support/stub-api.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

const { app, fake } = createApiHarness();
const server = await serveApp(app);
after(() => server.close());
const folder = temporaryFolder();

const env = { COUNTERSIGN_URL: server.url, COUNTERSIGN_TOKEN: 'token-ann' };

function command(args: string[], options: FakeTerminalOptions = {}) {
  return runCommand(args, { env, ...options });
}

test('run prints the id and nothing else; the same id again gives the same run', async () => {
  const file = join(folder, 'input.json');
  writeFileSync(file, '{"order": "ord-1001"}');
  const first = await command(['run', 'refund', '--input', file, '--id', 'one']);
  assert.deepEqual([first.exitCode, first.stdout, first.stderr], [0, 'one\n', '']);
  const again = await command(['run', 'refund', '--input', '-', '--id', 'one'], {
    stdin: '{"order":"ord-1001"}',
  });
  assert.deepEqual([again.exitCode, again.stdout], [0, 'one\n']);
  assert.match(again.stderr, /earlier, equal request/);
  const other = await command(['run', 'refund', '--id', 'one']);
  assert.deepEqual([other.exitCode, other.stdout], [3, '']);
});

test('run without an id prints one that show knows', async () => {
  const { exitCode, stdout } = await command(['run', 'refund']);
  assert.equal(exitCode, 0);
  assert.match(stdout, /^\S+\n$/);
  const { stdout: shown } = await command(['runs', 'show', stdout.trim(), '--json']);
  assert.equal(JSON.parse(shown).id, stdout.trim());
});

test('run refuses an unknown spec and bad input with 1, naming the place', async () => {
  const unknown = await command(['run', 'nope']);
  assert.deepEqual([unknown.exitCode, unknown.stdout], [1, '']);
  const bad = await command(['run', 'refund', '--input', '-'], { stdin: '{"a": 1,\n}' });
  assert.deepEqual([bad.exitCode, bad.stdout], [1, '']);
  assert.match(bad.stderr, /stdin: line 2, column 1/);
});

test('show says which attempt of an effect comes next, and why the one before failed', async () => {
  fake.ask({ runId: 'retrying' });
  const run = fake.must('retrying');
  const place = {
    seq: 2,
    at: '2026-01-02T03:04:05.000Z',
    temporalRunId: run.root,
    eventId: 9,
    position: 'pay',
  };
  const effect = { tool: 'pay', arguments: {}, payloadHash: 'sha256:0', idempotencyKey: `${run.root}:pay` };
  run.facts.push({ ...place, type: 'effect_started', ...effect });
  const nextAttemptAt = Date.parse('2026-01-02T03:04:09.000Z');
  run.retries = [{ position: 'pay', attempt: 3, lastError: 'the till is closed', nextAttemptAt }];
  const { stdout } = await command(['runs', 'show', 'retrying']);
  const line = 'pay running, attempt 3 at 2026-01-02T03:04:09.000Z; the one before: the till is closed';
  assert.ok(
    stdout.split('\n').some((row) => /^Step /.test(row) && row.endsWith(line)),
    stdout,
  );
  const json = JSON.parse((await command(['runs', 'show', 'retrying', '--json'])).stdout);
  const {
    attempt,
    lastError,
    nextAttemptAt: next,
  } = json.steps.find(({ position }: { position: string }) => position === 'pay');
  assert.deepEqual([attempt, lastError, next], [3, 'the till is closed', '2026-01-02T03:04:09.000Z']);
});

test('show and trail say what the API says, and 5 for a run that is not there', async () => {
  fake.ask({ runId: 'shown' });
  const { stdout } = await command(['runs', 'show', 'shown']);
  assert.match(stdout, /^Run +shown\nStatus +awaiting_approval\n/);
  const trail = await command(['trail', 'shown']);
  assert.match(trail.stdout, /^1\t\S+\t\trun_started\t/);
  const lines = (await command(['trail', 'shown', '--jsonl'])).stdout.trim().split('\n');
  const json = JSON.parse((await command(['trail', 'shown', '--json'])).stdout);
  assert.deepEqual(
    lines.map((line) => JSON.parse(line)),
    json.trail,
  );
  for (const args of [
    ['runs', 'show', 'absent'],
    ['trail', 'absent'],
  ]) {
    assert.equal((await command(args)).exitCode, 5);
  }
});

test('ids of any text go through: slashes, percent signs, spaces, right to left, 255 bytes', async () => {
  for (const id of ['a/b', 'a%2Fb', '?x=#y&+', ' two words ', 'שלום', '🧾~.', 'x'.repeat(255)]) {
    const started = await command(['run', 'refund', '--id', id]);
    assert.deepEqual([started.exitCode, started.stdout], [0, `${id}\n`]);
    const { key, hash } = fake.ask({ runId: id });
    const shown = await command(['runs', 'show', id, '--json']);
    assert.equal(JSON.parse(shown.stdout).id, id);
    assert.equal((await command(['trail', id])).exitCode, 0);
    assert.equal((await command(['approve', key, '--yes', '--hash', hash])).exitCode, 0);
  }
});

test('cancel asks the run to end; one that has ended is 3', async () => {
  fake.ask({ runId: 'cancelled' });
  const { exitCode, stdout, stderr } = await command(['runs', 'cancel', 'cancelled']);
  assert.deepEqual([exitCode, stdout], [0, 'cancelled\n']);
  assert.match(stderr, /asked to cancel/);
  fake.addRun('ended', { spec: 'refund' });
  fake.close('ended', 'completed');
  assert.equal((await command(['runs', 'cancel', 'ended'])).exitCode, 3);
});

test('cancel and decisions export use the routes of the design', async () => {
  const stub = await startStubApi();
  const at = { COUNTERSIGN_URL: stub.url, COUNTERSIGN_TOKEN: 'token-ann' };
  stub.answer = () => ({ status: 202, body: { id: 'r/1', status: 'running' } });
  const cancel = await runCommand(['runs', 'cancel', 'r/1'], { env: at });
  assert.deepEqual([cancel.exitCode, cancel.stdout], [0, 'r/1\n']);
  assert.deepEqual([stub.requests[0]?.method, stub.requests[0]?.path], ['POST', '/runs/r%2F1/cancel']);
  stub.requests.length = 0;
  const pages = [
    { decisions: [{ key: 'a' }, { key: 'b\u202e' }], cursor: 'next' },
    { decisions: [{ key: 'c' }] },
  ];
  stub.answer = () => ({ body: pages.shift() });
  const { stdout } = await runCommand(['decisions', 'export', '--jsonl'], { env: at });
  assert.equal(stdout, '{"key":"a"}\n{"key":"b\\u202e"}\n{"key":"c"}\n');
  assert.deepEqual(
    stub.requests.map(({ path }) => path),
    ['/decisions', '/decisions?cursor=next'],
  );
});
