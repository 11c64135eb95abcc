// Deciding from the command line: nothing is approved that was not shown or named by its hash.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { createApiHarness, serveApp } from './support/api-harness.ts';
import { runCommand, type FakeTerminalOptions } from './support/fake-terminal.ts';

const { app, fake } = createApiHarness({ receiptBudgetMs: 50 });
const server = await serveApp(app);
after(() => server.close());

const hashOfZeros = `sha256:${'0'.repeat(64)}`;
let lastRun = 0;

/** A pending approval of a run of its own. */
function ask(more: Partial<Parameters<typeof fake.ask>[0]> = {}) {
  lastRun += 1;
  return fake.ask({ runId: `decide-${lastRun}`, ...more });
}

function command(args: string[], options: FakeTerminalOptions & { as?: string } = {}) {
  const { as = 'ann', ...more } = options;
  const env = { COUNTERSIGN_URL: server.url, COUNTERSIGN_TOKEN: `token-${as}` };
  return runCommand(args, { env, ...more });
}

function stateOf(key: string, runId: string) {
  return fake.must(runId).gates.get(key)?.state;
}

test('without a terminal, approve refuses before anything is sent, unless --yes comes with --hash', async () => {
  const { key, runId, hash } = ask();
  for (const more of [[], ['--yes'], ['--hash', hash], ['--yes', '--hash', 'sha256:short']]) {
    const { exitCode, stdout, stderr } = await command(['approve', key, ...more]);
    assert.deepEqual([exitCode, stdout], [64, ''], more.join(' '));
    assert.match(stderr, /--hash/);
  }
  assert.equal(fake.must(runId).signals.length, 0);
  const { exitCode, stdout } = await command(['approve', key, '--yes', '--hash', hash]);
  assert.equal(exitCode, 0);
  assert.match(stdout, new RegExp(`^${key}\taccepted\tapproved\t\t[0-9a-f]{32}\n$`));
  assert.equal(stateOf(key, runId), 'approved');
});

test('--yes needs --hash on a terminal too', async () => {
  const { key, runId } = ask();
  const { exitCode, questions } = await command(['approve', key, '--yes'], { answers: ['y'] });
  assert.deepEqual([exitCode, questions], [64, []]);
  assert.equal(stateOf(key, runId), 'pending');
});

test('on a terminal the case is shown in full before the question, on stderr', async () => {
  const { key, runId, hash } = ask({ arguments: { order: 'ord-7', amount: '12.00' } });
  const { exitCode, stdout, stderr, questions } = await command(['approve', key, '--json'], {
    answers: ['y'],
    tty: false,
  });
  assert.deepEqual([exitCode, questions.length], [0, 1]);
  for (const shown of [key, runId, 'refund', '"order": "ord-7"', '"amount": "12.00"', hash, '1h left']) {
    assert.ok(stderr.includes(shown), `${shown} is shown`);
  }
  assert.equal(JSON.parse(stdout).state, 'approved');
  const [signal] = fake.must(runId).signals;
  assert.deepEqual([signal?.payloadHash, signal?.via], [hash, 'cli']);
});

test('anything but a yes sends nothing and is 75', async () => {
  for (const answer of ['', 'n', 'yess', 'approve']) {
    const { key, runId } = ask();
    const { exitCode, stdout } = await command(['approve', key], { answers: [answer] });
    assert.deepEqual([exitCode, stdout, stateOf(key, runId)], [75, '', 'pending'], answer);
  }
});

test('a --hash that is not the current one is 3, with and without a terminal, and the gate stays', async () => {
  const { key, runId } = ask();
  const asked = await command(['approve', key, '--hash', hashOfZeros], { answers: ['y'] });
  assert.deepEqual([asked.exitCode, asked.questions], [3, []]);
  const sent = await command(['approve', key, '--yes', '--hash', hashOfZeros]);
  assert.equal(sent.exitCode, 3);
  assert.match(sent.stderr, /payload_changed/);
  assert.equal(stateOf(key, runId), 'pending');
});

test('amended while the question is open: the yes was to what was shown, and nothing is decided', async () => {
  const { key, runId } = ask({ requestedBy: { id: 'bob' } });
  const amend = async () => {
    const args = ['amend', key, '--arguments', '-'];
    const stdin = '{"order": "ord-1001", "amount": "4000.00"}';
    assert.equal((await command(args, { as: 'bob', stdin })).exitCode, 0);
    return 'y';
  };
  const { exitCode, stderr } = await command(['approve', key], { answers: [amend] });
  assert.equal(exitCode, 3);
  assert.match(stderr, /payload_changed/);
  assert.equal(stateOf(key, runId), 'pending');
});

test('somebody else was first: 3; unknown: 5; a bad token: 4; expired: 5', async () => {
  const { key, hash } = ask();
  const approve = ['approve', key, '--yes', '--hash', hash];
  assert.equal((await command(['reject', key, '--reason', 'no'], { as: 'bob' })).exitCode, 0);
  const late = await command(approve);
  assert.equal(late.exitCode, 3);
  assert.match(late.stderr, /already_resolved/);
  assert.equal((await command(['approve', key], { answers: [] })).exitCode, 3);
  assert.equal((await command(['reject', 'nobody.refund.000000000000'])).exitCode, 5);
  assert.equal((await command(approve, { as: 'mallory' })).exitCode, 4);
  const gone = ask();
  fake.expire(gone.key);
  assert.equal((await command(['approve', gone.key], { answers: [] })).exitCode, 5);
  assert.equal((await command(['approve', gone.key, '--yes', '--hash', gone.hash])).exitCode, 5);
});

test('recorded with every worker down is 75, and the same key again gives the verdict', async () => {
  const { key, hash, runId } = ask();
  const approve = ['approve', key, '--yes', '--hash', hash, '--idempotency-key', 'once'];
  fake.control.workers = 'down';
  const { exitCode, stdout, stderr } = await command([...approve, '--json']);
  assert.equal(exitCode, 75);
  assert.equal(JSON.parse(stdout).verdict, 'pending');
  assert.match(stderr, /recorded/);
  fake.work();
  const again = await command([...approve, '--json']);
  assert.equal(again.exitCode, 0);
  assert.equal(JSON.parse(again.stdout).decisionId, JSON.parse(stdout).decisionId);
  assert.equal(stateOf(key, runId), 'approved');
});

test('a decision whose answer is lost is sent again by itself, and counts once', async () => {
  const { key, hash, runId } = ask();
  fake.control.loseAnswers = true;
  const outcome = await command(['approve', key, '--yes', '--hash', hash], {
    onSleep: () => void (fake.control.loseAnswers = false),
  });
  assert.deepEqual([outcome.exitCode, outcome.sleeps], [0, [5000]]);
  const ids = fake.must(runId).signals.map(({ decisionId }) => decisionId);
  assert.equal(new Set(ids).size, 1);
});

test('a reason arrives word for word, and is neutralised wherever it is shown', async () => {
  const reason = 'Nein – Betrag falsch: 1\u00a0000 € ≠ 100 €\n\u202eabc\u001b[31m';
  const { key, runId } = ask();
  assert.equal((await command(['reject', key, '--reason', reason])).exitCode, 0);
  assert.equal(fake.must(runId).signals[0]?.reason, reason);
  for (const args of [
    ['approvals', 'show', key],
    ['trail', runId],
    ['trail', runId, '--json'],
    ['trail', runId, '--jsonl'],
  ]) {
    const { stdout } = await command(args);
    assert.ok(stdout.includes('\\u202eabc\\u001b[31m'), args.join(' '));
    assert.doesNotMatch(stdout, /[\u202e\u001b]/, args.join(' '));
  }
  const { stdout } = await command(['trail', runId, '--json']);
  const fact = JSON.parse(stdout).trail.at(-1);
  assert.equal(fact.decision.reason, reason, 'JSON has the same value');
});

test('what is shown before the question hides no control and no line of its own', async () => {
  const evil = 'refund\u001b[2K\u202e\nHash       sha256:forged\u0007';
  const { key } = ask({ tool: evil, arguments: { note: '\u001b]0;x\u0007\u2066' } });
  const { stderr } = await command(['approve', key], { answers: ['n'] });
  assert.doesNotMatch(stderr, /[\u0007\u001b\u202e\u2066]/);
  const labels = stderr.split('\n').filter((line) => line.startsWith('Hash '));
  assert.equal(labels.length, 1);
});
