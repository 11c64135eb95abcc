// Every kind of decision that the command line knows: what is sent, and what comes of it.
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
const stub = await startStubApi();
const folder = temporaryFolder();
const hashOfZeros = `sha256:${'0'.repeat(64)}`;

test('an effect in doubt is shown with what each answer means; replaced payloads are shown too', async () => {
  stub.answer = () => ({
    body: {
      ...{ key: 'k', state: 'pending', runId: 'r', step: 's/in-doubt', phase: 'in-doubt' },
      ...{ payloadHash: hashOfZeros, policy: {}, doubt: { attempts: 3 } },
      ...{ requestedBy: { id: 'ann', name: 'Ann' }, earlier: [{ arguments: { amount: '9.00' } }] },
    },
  });
  const env = { COUNTERSIGN_URL: stub.url, COUNTERSIGN_TOKEN: 'token-ann' };
  const { exitCode, stderr } = await runCommand(['approve', 'k'], { env, answers: ['n'] });
  assert.equal(exitCode, 75);
  assert.match(stderr, /^Asked by +Ann$/m);
  assert.match(stderr, /^Replaced +\{\n +"amount": "9.00"/m);
  assert.match(stderr, /^In doubt +\{\n +"attempts": 3/m);
  assert.match(stderr, /approve = it did not: try again/);
});

/** What the API was sent for a command. */
async function sent(args: string[], options: FakeTerminalOptions = {}) {
  stub.requests.length = 0;
  stub.answer = ({ method }) =>
    method === 'GET'
      ? { body: { key: 'k', state: 'pending', runId: 'r', step: 's', payloadHash: hashOfZeros } }
      : { body: { key: 'k', verdict: 'accepted', state: 'pending', decisionId: 'd' } };
  const env = { COUNTERSIGN_URL: stub.url, COUNTERSIGN_TOKEN: 'token-ann' };
  const outcome = await runCommand(args, { env, ...options });
  const post = stub.requests.find(({ method }) => method === 'POST');
  return { ...outcome, path: post?.path, body: post?.body, ifMatch: post?.headers['if-match'] };
}

test('edit and respond carry JSON, and need consent as approve does', async () => {
  const file = join(folder, 'arguments.json');
  writeFileSync(file, '{"amount": "5.00"}');
  const etag = `"${hashOfZeros}"`;
  const yes = ['--yes', '--hash', hashOfZeros];
  const edit = await sent(['edit', 'k', '--arguments', file, '--reason', 'less', ...yes]);
  assert.deepEqual(
    [edit.exitCode, edit.path, edit.body, edit.ifMatch],
    [0, '/approvals/k/edit', { arguments: { amount: '5.00' }, reason: 'less' }, etag],
  );
  const respond = await sent(['respond', 'k', '--result', '-', ...yes], { stdin: '{"id": "done"}' });
  assert.deepEqual(
    [respond.exitCode, respond.path, respond.body, respond.ifMatch],
    [0, '/approvals/k/respond', { result: { id: 'done' } }, etag],
  );
  assert.equal((await sent(['edit', 'k', '--arguments', file])).exitCode, 64);
  const asked = await sent(['edit', 'k', '--arguments', file], { answers: ['y'] });
  assert.deepEqual([asked.exitCode, asked.ifMatch], [0, etag]);
  assert.match(asked.stderr, /edit with arguments \{\n {2}"amount": "5.00"\n\}/);
  const noStdin = await sent(['respond', 'k', '--result', '-'], { answers: ['y'], stdin: '{}' });
  assert.deepEqual([noStdin.exitCode, noStdin.path], [64, undefined]);
});

test('amend, withdraw, reject and comment are sent at once, bound to --hash where it is given', async () => {
  const file = join(folder, 'amended.json');
  writeFileSync(file, '{"amount": "6.00"}');
  const etag = `"${hashOfZeros}"`;
  const hash = ['--hash', hashOfZeros];
  const cases: [string[], string, unknown, string | undefined][] = [
    [['amend', 'k', '--arguments', file], 'amend', { arguments: { amount: '6.00' } }, undefined],
    [['amend', 'k', '--arguments', file, ...hash], 'amend', { arguments: { amount: '6.00' } }, etag],
    [['withdraw', 'k', '--reason', 'mistake'], 'withdraw', { reason: 'mistake' }, undefined],
    [['reject', 'k', ...hash], 'reject', {}, etag],
    [['comment', 'k', 'looks odd'], 'comment', { reason: 'looks odd' }, undefined],
  ];
  for (const [args, kind, body, ifMatch] of cases) {
    const outcome = await sent(args);
    assert.equal(outcome.exitCode, 0, args.join(' '));
    assert.deepEqual([outcome.path, outcome.body, outcome.ifMatch], [`/approvals/k/${kind}`, body, ifMatch]);
  }
});

test('JSON that two readers could understand differently is refused with file, line and column', async () => {
  const file = join(folder, 'twice.json');
  writeFileSync(file, '{"amount": "5.00",\n "amount": "500.00"}');
  for (const [args, stdin] of [
    [['amend', 'k', '--arguments', file], ''],
    [['amend', 'k', '--arguments', '-'], '{"amount": 1e400}'],
    [['amend', 'k', '--arguments', join(folder, 'absent.json')], ''],
  ] as const) {
    const { exitCode, path, stderr } = await sent([...args], { stdin });
    assert.deepEqual([exitCode, path], [1, undefined]);
    assert.match(stderr, /(twice\.json: line 2, column 2|stdin: line 1|absent\.json: ENOENT)/);
  }
});

function command(args: string[], as: 'ann' | 'bob' = 'ann') {
  return runCommand(args, { env: { COUNTERSIGN_URL: server.url, COUNTERSIGN_TOKEN: `token-${as}` } });
}

test('each kind does with the API what its name says', async () => {
  const file = join(folder, 'other.json');
  writeFileSync(file, '{"order": "ord-1001", "amount": "7.00"}');
  const ask = (runId: string) => fake.ask({ runId, requestedBy: { id: 'ann' } });
  const state = (runId: string, key: string) => fake.must(runId).gates.get(key)?.state;

  const commented = ask('kind-comment');
  assert.equal((await command(['comment', commented.key, 'looks odd'])).exitCode, 0);
  assert.equal(state('kind-comment', commented.key), 'pending');

  const edited = ask('kind-edit');
  const consent = ['--yes', '--hash', edited.hash];
  assert.equal((await command(['edit', edited.key, '--arguments', file, ...consent])).exitCode, 0);
  assert.equal(state('kind-edit', edited.key), 'approved');

  const responded = ask('kind-respond');
  const respond = ['respond', responded.key, '--result', file, '--yes', '--hash', responded.hash];
  assert.equal((await command(respond)).exitCode, 0);
  assert.equal(state('kind-respond', responded.key), 'responded');

  const amended = ask('kind-amend');
  const amend = ['amend', amended.key, '--arguments', file];
  assert.equal((await command(amend, 'bob')).exitCode, 4, 'only the requester');
  assert.equal((await command(amend)).exitCode, 0);
  assert.equal(state('kind-amend', amended.key), 'pending');
  const stale = await command(['approve', amended.key, '--yes', '--hash', amended.hash], 'bob');
  assert.equal(stale.exitCode, 3, 'what was seen before the amendment is not approved');

  const withdrawn = ask('kind-withdraw');
  assert.equal((await command(['withdraw', withdrawn.key, '--reason', 'mistake'])).exitCode, 0);
  assert.equal(state('kind-withdraw', withdrawn.key), 'withdrawn');

  const { stdout } = await command(['decisions', 'export', '--jsonl']);
  const rows = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.deepEqual(rows.map(({ decision }) => decision).sort(), ['edit', 'respond', 'withdraw']);
  assert.ok(rows.every((row) => row.via === 'cli' && row.case.payloadHash.startsWith('sha256:')));
});
