// Lists for people, pipes and programs, page by page, and a list that goes on: watch.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { createApiHarness, serveApp } from './support/api-harness.ts';
import { runCommand, type FakeTerminalOptions } from './support/fake-terminal.ts';

const { app, fake } = createApiHarness();
const server = await serveApp(app);
after(() => server.close());

const env = { COUNTERSIGN_URL: server.url, COUNTERSIGN_TOKEN: 'token-ann' };

function command(args: string[], options: FakeTerminalOptions = {}) {
  return runCommand(args, { env, ...options });
}

test('a list is a table on a terminal, lines with tabs in a pipe, and JSON on demand', async () => {
  fake.ask({ runId: 'listed' });
  const table = await command(['runs', 'list', '--all'], { tty: true });
  assert.match(table.stdout, /^\u001b\[1mID +STATUS +SPEC +STARTED +PENDING\u001b\[22m\n/);
  const plain = await runCommand(['runs', 'list', '--all'], { env: { ...env, NO_COLOR: '1' }, tty: true });
  assert.match(plain.stdout, /^ID +STATUS/);
  const piped = await command(['runs', 'list', '--all']);
  const row = piped.stdout.split('\n').find((line) => line.startsWith('listed\t'));
  assert.equal(row?.split('\t').length, 5);
  const json = await command(['runs', 'list', '--all', '--json']);
  assert.ok(JSON.parse(json.stdout).runs.some(({ id }: { id: string }) => id === 'listed'));
});

test('pages: one with a word on how to go on, or all of them', async () => {
  for (let n = 0; n < 25; n += 1) fake.addRun(`page-${n}`, { spec: 'paged' });
  const first = await command(['runs', 'list', '--spec', 'paged', '--json']);
  assert.equal(JSON.parse(first.stdout).runs.length, 20);
  const cursor = /--cursor (\S+),/.exec(first.stderr)?.[1] ?? '';
  const second = await command(['runs', 'list', '--spec', 'paged', '--cursor', cursor, '--json']);
  assert.equal(JSON.parse(second.stdout).runs.length, 5);
  const all = await command(['runs', 'list', '--spec', 'paged', '--all']);
  assert.equal(all.stdout.trim().split('\n').length, 25);
});

test('approvals list and watch tell what waits, and watch what became of it', async () => {
  const { key, hash } = fake.ask({ runId: 'watched', tool: 'watched-tool' });
  const list = await command(['approvals', 'list', '--tool', 'watched-tool']);
  assert.match(list.stdout, new RegExp(`^${key}\tpending\trefund|^${key}\tpending\t`));
  let later = '';
  const { exitCode, stdout } = await command(
    ['approvals', 'watch', '--tool', 'watched-tool', '--timeout', '10s', '--json'],
    {
      async onSleep(count) {
        if (count === 0) later = fake.ask({ runId: 'watched-later', tool: 'watched-tool' }).key;
        if (count === 1) await command(['approve', key, '--yes', '--hash', hash]);
      },
    },
  );
  assert.equal(exitCode, 0);
  const told = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
    .map((row) => [row.key, row.state]);
  assert.deepEqual(told, [
    [key, 'pending'],
    [later, 'pending'],
    [key, 'approved'],
  ]);
});

test('watch is a line for each change, also on a terminal, and bears with an API that is away', async () => {
  const { key } = fake.ask({ runId: 'told', tool: 'told-tool' });
  const args = ['approvals', 'watch', '--tool', 'told-tool', '--interval', '5s', '--timeout', '60s'];
  const { exitCode, stdout, stderr, sleeps } = await command(args, {
    tty: true,
    async onSleep(count) {
      fake.control.temporal = count >= 1 && count < 5 ? 'down' : 'up';
      if (count === 0) await command(['reject', key, '--reason', 'no\n\u202eno']);
    },
  });
  assert.equal(exitCode, 0);
  assert.ok(sleeps.includes(5000));
  assert.match(stderr, /temporal_unavailable/);
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => line.split('\t').slice(1));
  assert.deepEqual(lines[0]?.slice(0, 2), ['pending', key]);
  assert.deepEqual(lines[1]?.slice(0, 2), ['rejected', key]);
  assert.match(lines[1]?.[2] ?? '', /by Ann at \S+ via cli: no\\n\\u202eno$/);
  assert.equal(lines.length, 2);
});
