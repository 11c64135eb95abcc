// `run --wait`: the end of a run as an exit code, progress on stderr, and a question where somebody sits.
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

test('run --wait says on stderr what the run does, and ends with its end', async () => {
  for (const [id, end, exit] of [
    ['wait-yes', 'approved', 0],
    ['wait-no', 'rejected', 2],
  ] as const) {
    let key = '';
    const { exitCode, stdout, stderr } = await command(['run', 'refund', '--id', id, '--wait'], {
      async onSleep(count) {
        if (count === 0) key = fake.ask({ runId: id }).key;
        if (count !== 1) return;
        const hash = fake.must(id).gates.get(key)?.hash ?? '';
        const decide = end === 'approved' ? ['approve', key, '--yes', '--hash', hash] : ['reject', key];
        assert.equal((await command(decide)).exitCode, 0);
        fake.close(id, 'completed');
      },
    });
    assert.deepEqual([exitCode, stdout], [exit, `${id}\n`]);
    assert.match(stderr, /^0s running\n1s awaiting_approval .*waiting for wait-/m);
    assert.match(stderr, exit === 0 ? /2s completed/ : /2s rejected/);
  }
});

test('run --wait --json prints the run as it ended', async () => {
  const { exitCode, stdout } = await command(['run', 'refund', '--id', 'wait-json', '--wait', '--json'], {
    onSleep: () => fake.close('wait-json', 'failed'),
  });
  assert.equal(exitCode, 2);
  assert.equal(JSON.parse(stdout).status, 'failed');
});

test('a cancelled run that was waited for is 2', async () => {
  const { exitCode } = await command(['run', 'refund', '--id', 'wait-cancel', '--wait'], {
    onSleep: () => fake.close('wait-cancel', 'cancelled'),
  });
  assert.equal(exitCode, 2);
});

test('run --wait gives up after --timeout with 75, and the run goes on', async () => {
  const args = ['run', 'refund', '--id', 'patient', '--wait', '--timeout', '90s'];
  const { exitCode, stdout, stderr, sleeps } = await command(args);
  assert.deepEqual([exitCode, stdout], [75, 'patient\n']);
  assert.equal(
    sleeps.reduce((sum, ms) => sum + ms, 0),
    90_000,
  );
  assert.equal((stderr.match(/ running$/gm) ?? []).length, 4, 'a sign of life every 30 s');
  assert.equal(fake.must('patient').closeStatus, undefined);
});

test('on a terminal run --wait shows each case once and asks; what is decided there counts', async () => {
  let position = 0;
  const ask = () => fake.ask({ runId: 'asked', position: `refund-${(position += 1)}` });
  const keys: string[] = [];
  const { exitCode, stderr, questions } = await command(['run', 'refund', '--id', 'asked', '--wait'], {
    answers: ['', 'a', 'r', 'too much'],
    onSleep(count) {
      if (count < 3) keys.push(ask().key);
      else if (count === 5) fake.close('asked', 'completed');
    },
  });
  const gates = keys.map((key) => fake.must('asked').gates.get(key));
  assert.deepEqual(
    gates.map((gate) => gate?.state),
    ['pending', 'approved', 'rejected'],
  );
  assert.equal(gates[2]?.winner?.reason, 'too much');
  assert.equal(questions.length, 4);
  for (const gate of gates) assert.ok(stderr.includes(gate?.hash ?? '-'));
  assert.equal(exitCode, 2);
});

test('a wait bears with an API that restarts', async () => {
  fake.addRun('away', { spec: 'refund' });
  const { exitCode, stderr } = await command(['run', 'refund', '--id', 'restarts', '--wait'], {
    onSleep(count) {
      fake.control.temporal = count < 5 ? 'down' : 'up';
      if (count === 6) fake.close('restarts', 'completed');
    },
  });
  assert.equal(exitCode, 0);
  assert.match(stderr, /trying again/);
});
