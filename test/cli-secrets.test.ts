// `countersign tokens` and `countersign keys`: they change the secrets file and nothing else, and print what is
// secret once, or never.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { signProof, verifyProof } from '../src/core/proof.ts';
import { readSecretsFile } from '../src/secrets-file.ts';
import { editSecretsFile } from '../src/secrets-edit.ts';
import { openSecrets } from '../src/secrets.ts';
import { findToken } from '../src/tokens.ts';
import { eventually } from './support/eventually.ts';
import { runCommand } from './support/fake-terminal.ts';
import { makeSecrets } from './support/secrets.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

/** Runs a command on the file; JSON of stdout when it is called with --json. */
async function run(path: string, ...args: string[]) {
  const outcome = await runCommand(args, { env: { COUNTERSIGN_SECRETS_FILE: path } });
  const json = args.includes('--json') && outcome.stdout !== '' ? JSON.parse(outcome.stdout) : undefined;
  return { ...outcome, json };
}

/** What a process that has the file open would take, once it sees the change. */
async function takes(path: string, token: string): Promise<boolean> {
  const { secrets } = await openSecrets({ path, create: false });
  return findToken(secrets.tokens(), token, Date.parse('2026-11-02T10:00:00Z')) !== undefined;
}

test('a token is made with what it is for, printed once, and kept as a hash', async () => {
  const { path } = await makeSecrets();
  const { exitCode, stdout, stderr } = await run(
    ...[path, 'tokens', 'create', '--id', 'ann', '--name', 'Ann', '--role', 'finance', '--role', 'audit'],
    ...['--scope', 'read', '--scope', 'decide', '--expires', '90d'],
  );
  assert.equal(exitCode, 0);
  assert.match(stdout, /^csn_[\w-]{43}\n$/);
  assert.match(stderr, /a token of ann for read, decide, hash [0-9a-f]{12}; it is shown only now/);
  const token = stdout.trim();
  assert.ok(!readFileSync(path, 'utf8').includes(token.slice(4)));
  assert.ok(!stderr.includes(token.slice(4)));
  const record = readSecretsFile(path).tokens.find(({ id }) => id === 'ann');
  const { sha256, ...rest } = record!;
  assert.match(sha256, /^[0-9a-f]{64}$/);
  assert.deepEqual(rest, {
    ...{ id: 'ann', name: 'Ann', roles: ['finance', 'audit'], kind: 'person', scopes: ['read', 'decide'] },
    ...{ createdAt: '2026-11-02T10:00:00.000Z', expiresAt: '2027-01-31T10:00:00.000Z' },
  });
  assert.ok(await takes(path, token));
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(dirname(path)), ['secrets.json']);
});

test('with --json the token is data too, and without options it may start, read and decide', async () => {
  const { path } = await makeSecrets();
  const made = await run(path, 'tokens', 'create', '--id', 'shop', '--kind', 'service', '--json');
  const { token, hash, ...rest } = made.json;
  assert.deepEqual(rest, {
    ...{ id: 'shop', name: 'shop', kind: 'service', roles: [], scopes: ['start', 'read', 'decide'] },
    ...{ createdAt: '2026-11-02T10:00:00.000Z', expired: false },
  });
  assert.ok(await takes(path, token));
  const { json, stdout } = await run(path, 'tokens', 'list', '--json');
  assert.deepEqual(
    json.tokens.map(({ id, hash: of }: { id: string; hash: string }) => [id, of === hash]),
    [
      ['admin', false],
      ['shop', true],
    ],
  );
  assert.ok(!stdout.includes(token.slice(4)));
});

test('a list says whose tokens there are, for what, and which have expired', async () => {
  const { path } = await makeSecrets();
  await run(path, 'tokens', 'create', '--id', 'old', '--expires', '1s', '--scope', 'audit');
  await run(path, 'tokens', 'create', '--id', 'new', '--expires', '1s', '--scope', 'read');
  await editSecretsFile(path, ({ tokens }) => {
    for (const token of tokens) if (token.id === 'old') token.expiresAt = '2026-11-02T10:00:00.000Z';
  });
  const { stdout } = await runCommand(['tokens', 'list', '--file', path], { tty: true });
  assert.match(stdout, /ID +HASH +NAME +KIND +ROLES +SCOPES/);
  assert.match(stdout, /^admin +[0-9a-f]{12} +Admin +person +admin +start read decide admin audit /m);
  assert.match(stdout, /^old .* audit .*2026-11-02T10:00:00\.000Z \(expired\)$/m);
  assert.match(stdout, /^new .* read .*2026-11-02T10:00:01\.000Z$/m);
});

test('a second token of an id replaces the first when that is revoked by its hash', async () => {
  const { path } = await makeSecrets();
  const make = async () => (await run(path, 'tokens', 'create', '--id', 'ann', '--json')).json;
  const [first, second] = [await make(), await make()];
  const unclear = await run(path, 'tokens', 'revoke', 'ann', '--json');
  assert.equal(unclear.exitCode, 1);
  assert.match(JSON.parse(unclear.stderr).message, /"ann" has 2 tokens \(\w+, \w+\): name one with --hash/);
  assert.ok((await takes(path, first.token)) && (await takes(path, second.token)));
  const { exitCode, json } = await run(path, 'tokens', 'revoke', 'ann', '--hash', first.hash, '--json');
  assert.equal(exitCode, 0);
  assert.deepEqual([json.revoked.length, json.revoked[0].hash], [1, first.hash]);
  assert.ok(!(await takes(path, first.token)) && (await takes(path, second.token)));
  await make();
  const all = await run(path, 'tokens', 'revoke', 'ann', '--all');
  assert.equal(
    all.stderr.split('\n').filter((line) => line.startsWith('revoked the token of ann')).length,
    2,
  );
  assert.ok(!(await takes(path, second.token)));
  assert.match((await run(path, 'tokens', 'revoke', 'ann')).stderr, /there is no token of "ann"/);
});

test('a process that has the file open sees what the commands did', async () => {
  const { path, adminToken } = await makeSecrets();
  const { secrets } = await openSecrets({ path, create: false });
  const is = (token: string) => findToken(secrets.tokens(), token) !== undefined;
  const { token } = (await run(path, 'tokens', 'create', '--id', 'ann', '--json')).json;
  await eventually(() => is(token));
  await run(path, 'tokens', 'revoke', 'admin');
  await eventually(() => !is(adminToken));
  assert.ok(is(token));
});

test('a signing key is rotated ahead of its time or at once, and old proofs hold', async () => {
  const { path, secrets } = await makeSecrets();
  const first = secrets.signingKey();
  const ahead = await run(path, 'keys', 'rotate', '--signing', '--json');
  assert.equal(ahead.exitCode, 0);
  const [{ kid, ...rest }] = ahead.json.keys;
  const from = '2026-11-02T10:02:00.000Z';
  assert.deepEqual(rest, { use: 'signing', state: 'next', validFrom: from, hasPrivatePart: true });
  const listed = await run(path, 'keys', 'list', '--json');
  assert.deepEqual(
    listed.json.keys.map((row: { kid: string; use: string; state: string; validUntil?: string }) => [
      ...[row.use, row.kid, row.state, row.validUntil],
    ]),
    [
      ['signing', kid, 'next', undefined],
      ['signing', first.kid, 'signs', '2026-11-02T10:12:00.000Z'],
      ['grant', readSecretsFile(path).grantKeys[0]!.kid, 'signs', undefined],
    ],
  );
  const unsigned = {
    ...({ v: 1, key: 'k', root: 'r', decision: 'reject', decisionId: 'd', via: 'api' } as const),
    by: { id: 'ann' },
  };
  const place = { namespace: 'default', workflowId: 'w' };
  const at = { now: Date.parse('2026-11-02T10:01:00Z') };
  const proof = await signProof(unsigned, place, first, at);
  const now = await run(path, 'keys', 'rotate', '--signing', '--now');
  assert.match(now.stderr, /^new signing key \w+, used from 2026-11-02T10:00:00\.000Z on$/m);
  const keys = readSecretsFile(path).signingKeys;
  // the planned one has signed nothing; of the replaced one only what verifies is left
  assert.deepEqual(
    keys.map((key) => [key.kid === first.kid, key.privateJwk !== undefined]),
    [
      [false, true],
      [true, false],
    ],
  );
  const { secrets: later } = await openSecrets({ path, create: false });
  assert.equal((await verifyProof({ ...unsigned, proof }, place, later.proofKeys(), at.now)).ok, true);
});

test('both kinds of keys are rotated at once, listed without what is secret, and old ones taken out', async () => {
  const { path } = await makeSecrets();
  const [old] = readSecretsFile(path).grantKeys;
  await run(path, 'keys', 'rotate', '--signing', '--grant', '--now');
  const file = readSecretsFile(path);
  assert.deepEqual([file.signingKeys.length, file.grantKeys.length], [2, 2]);
  const shown = await run(path, 'keys', 'list');
  const table = await runCommand(['keys', 'list', '--file', path, '--json'], { tty: true });
  const secret = [
    ...file.grantKeys.map((key) => key.secret),
    ...file.signingKeys.map((key) => key.privateJwk?.d),
  ];
  for (const value of secret) {
    if (value === undefined) continue;
    assert.ok(!(shown.stdout + shown.stderr + table.stdout).includes(value.slice(0, 8)));
  }
  const removed = await run(path, 'keys', 'remove', old!.kid, '--grant', '--json');
  assert.deepEqual(removed.json, { removed: { use: 'grant', kid: old!.kid } });
  assert.ok(!readSecretsFile(path).grantKeys.some(({ kid }) => kid === old!.kid));
  const inUse = await run(path, 'keys', 'remove', readSecretsFile(path).grantKeys[0]!.kid, '--grant');
  assert.equal(inUse.exitCode, 1);
  assert.match(inUse.stderr, /in use: first `countersign keys rotate --grant --now`/);
});

test('what is called wrongly is a usage error, and changes nothing', async () => {
  const { path } = await makeSecrets();
  const before = readFileSync(path, 'utf8');
  for (const args of [
    ['tokens', 'create'],
    ['tokens', 'create', '--id', ''],
    ['tokens', 'create', '--id', 'hook:shop'],
    ['tokens', 'create', '--id', 'a\u0000b'],
    ['tokens', 'create', '--id', 'ann', '--scope', 'everything'],
    ['tokens', 'create', '--id', 'ann', '--kind', 'robot'],
    ['tokens', 'create', '--id', 'ann', '--expires', 'soon'],
    ['tokens', 'revoke', 'admin', '--hash', 'xyz'],
    ['keys', 'rotate'],
    ['keys', 'rotate', '--signing', '--now', '--in', '5m'],
    ['keys', 'remove', 'k'],
    ['keys', 'remove', 'k', '--signing', '--grant'],
  ]) {
    const { exitCode, stdout } = await run(path, ...args);
    assert.deepEqual([exitCode, stdout], [64, ''], args.join(' '));
  }
  assert.equal(readFileSync(path, 'utf8'), before);
  const missing = await run(join(temporaryFolder(), 'none.json'), 'tokens', 'list', '--json');
  assert.equal(missing.exitCode, 1);
  assert.match(JSON.parse(missing.stderr).message, /none\.json is not there/);
});
