// The command line as the process that a shell starts: its streams, its terminal, its end.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createApiHarness, serveApp } from './support/api-harness.ts';
import { nodeArguments } from './support/processes.ts';

const { app, fake } = createApiHarness();
const server = await serveApp(app);
after(() => server.close());

const repository = fileURLToPath(new URL('../', import.meta.url));
const self = [process.execPath, ...nodeArguments, 'src/cli/main.ts'];

/** What a command prints and how it ends. `typed` is its stdin, and ends. */
function start(command: string, args: readonly string[], typed = '') {
  const child = spawn(command, args, {
    cwd: repository,
    env: { ...process.env, COUNTERSIGN_URL: server.url, COUNTERSIGN_TOKEN: 'token-ann', NO_COLOR: '1' },
  });
  const text = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (chunk: string) => (text[name] += chunk));
  }
  child.stdin.on('error', () => undefined).end(typed);
  return new Promise<{ exitCode: number | null; stdout: string; stderr: string }>((resolve) => {
    child.once('close', (exitCode) => resolve({ exitCode, ...text }));
  });
}

function countersign(args: readonly string[], typed?: string) {
  const [command = '', ...before] = self;
  return start(command, [...before, ...args], typed);
}

test('data is on stdout, talk on stderr, and the exit code is the answer', async () => {
  const run = await countersign(['run', 'refund', '--id', 'process', '--input', '-'], '{"order": 1}');
  assert.deepEqual(run, { exitCode: 0, stdout: 'process\n', stderr: '' });
  const { key, runId } = fake.ask({ runId: 'process-2' });
  const approve = await countersign(['approve', key], 'y\n');
  assert.deepEqual([approve.exitCode, approve.stdout], [64, '']);
  assert.equal(fake.must(runId).signals.length, 0, 'a yes on a pipe is none');
  const absent = await countersign(['runs', 'show', 'absent']);
  assert.deepEqual([absent.exitCode, absent.stdout], [5, '']);
  assert.match(absent.stderr, /^countersign: No such run \(run_not_found\)/);
});

test('a reader that has enough ends it without a word', async () => {
  // far more than a pipe holds
  fake.ask({ runId: 'process-3', arguments: { note: 'y'.repeat(200_000) } });
  const line = `${self.join(' ')} trail process-3 --jsonl | head -n 1; echo "\${PIPESTATUS[0]}"`;
  const { stdout, stderr } = await start('bash', ['-c', line]);
  assert.equal(stderr, '');
  assert.match(stdout, /run_started.*\n0\n$/);
});

const script = '/usr/bin/script';
const skip = existsSync(script) ? false : 'there is no script(1) to make a terminal';

test('on a real terminal it shows the case, asks, and takes the answer', { skip }, async () => {
  const { key, runId, hash } = fake.ask({ runId: 'process-tty' });
  const line = `${self.join(' ')} approve ${key}`;
  const { exitCode, stdout } = await start(script, ['-qec', line, '/dev/null'], 'y\n');
  assert.equal(exitCode, 0, stdout);
  assert.ok(stdout.includes(hash) && stdout.includes('approve this? [y/N]'), stdout);
  assert.equal(fake.must(runId).gates.get(key)?.state, 'approved');
});
