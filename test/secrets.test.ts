// P10 and the API's tokens: the secrets file is private, is made once, and never says what is in it.
import assert from 'node:assert/strict';
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { signProof, verifyProof } from '../src/core/proof.ts';
import { addToken, openSecrets, type OpenSecretsOptions, type Secrets } from '../src/secrets.ts';
import { SecretsError } from '../src/secrets-file.ts';
import { findToken, hashToken, makeToken, type TokenRecord } from '../src/tokens.ts';
import { eventually } from './support/eventually.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

const newPath = (): string => join(temporaryFolder(), 'data', 'secrets.json');

async function open(path: string, options: Partial<OpenSecretsOptions> = {}): Promise<Secrets> {
  return (await openSecrets({ path, create: false, ...options })).secrets;
}

interface FileContent {
  tokens: TokenRecord[];
  signingKeys: { kid: string; privateJwk: { d: string }; publicJwk: object }[];
  grantKeys: { kid: string; secret: string }[];
}

function edit(path: string, change: (content: FileContent) => void): void {
  const content = JSON.parse(readFileSync(path, 'utf8')) as FileContent;
  change(content);
  writeFileSync(path, JSON.stringify(content));
}

describe('the first start', () => {
  test('makes a private file with one admin token, of which only the hash is kept', async () => {
    const path = newPath();
    const { secrets, createdToken } = await openSecrets({ path, create: true });
    assert.match(createdToken!.token, /^csn_[\w-]{43}$/);
    assert.equal(statSync(path).mode & 0o777, 0o600);
    assert.ok(!readFileSync(path, 'utf8').includes(createdToken!.token.slice(4)));
    const found = findToken(secrets.tokens(), createdToken!.token);
    assert.deepEqual([found?.id, found?.roles], [createdToken!.id, ['admin']]);
    assert.equal(readFileSync(join(path, '..', '.gitignore'), 'utf8'), '*\n');
    assert.deepEqual(readdirSync(join(path, '..')).sort(), ['.gitignore', 'secrets.json']);
  });

  test('of twenty at once makes one file and one token', async () => {
    const path = newPath();
    const opened = await Promise.all(Array.from({ length: 20 }, () => openSecrets({ path, create: true })));
    assert.equal(opened.filter(({ createdToken }) => createdToken !== undefined).length, 1);
    assert.equal(new Set(opened.map(({ secrets }) => secrets.signingKey().kid)).size, 1);
    assert.equal(new Set(opened.map(({ secrets }) => secrets.grantKeys()[0]!.secret)).size, 1);
    assert.deepEqual(readdirSync(join(path, '..')).sort(), ['.gitignore', 'secrets.json']);
  });

  test('is the only one that makes a token: the next finds the file', async () => {
    const path = newPath();
    await openSecrets({ path, create: true });
    const before = readFileSync(path, 'utf8');
    assert.equal((await openSecrets({ path, create: true })).createdToken, undefined);
    assert.equal(readFileSync(path, 'utf8'), before);
  });

  test('makes keys that sign and verify a decision, and a grant key of 32 bytes', async () => {
    const { secrets } = await openSecrets({ path: newPath(), create: true });
    const decision = {
      v: 1,
      key: 'k',
      root: 'r',
      decision: 'reject',
      decisionId: 'd',
      by: { id: 'a' },
      via: 'api',
    } as const;
    const place = { namespace: 'default', workflowId: 'w' };
    const proof = await signProof(decision, place, secrets.signingKey());
    assert.equal(
      (await verifyProof({ ...decision, proof }, place, secrets.proofKeys(), Date.now())).ok,
      true,
    );
    assert.equal(Buffer.from(secrets.grantKeys()[0]!.secret, 'base64url').length, 32);
  });
});

describe('a secrets file is refused', () => {
  test('when it is not there and not to be made, with what to do', async () => {
    const path = newPath();
    await assert.rejects(open(path), (error: Error) => {
      assert.ok(error instanceof SecretsError);
      assert.match(error.message, /secrets\.json is not there: .*COUNTERSIGN_SECRETS_FILE/);
      return true;
    });
    assert.equal(existsSync(path), false);
  });

  test(
    'when others can read it, with the command that cures it',
    { skip: process.platform === 'win32' },
    async () => {
      const path = newPath();
      await openSecrets({ path, create: true });
      for (const mode of [0o640, 0o604, 0o620]) {
        chmodSync(path, mode);
        await assert.rejects(open(path), /holds secrets; run: chmod 600 \//);
      }
      chmodSync(path, 0o400);
      await open(path);
    },
  );

  for (const [what, change, says] of [
    ['a misspelt field', (file: FileContent) => Object.assign(file, { tokenz: [] }), /"tokenz"/],
    [
      'a plain token',
      (file: FileContent) => (file.tokens[0]!.sha256 = 'csn_plain-SECRET'),
      /tokens\.0\.sha256: .*64/,
    ],
    ['no grant key', (file: FileContent) => (file.grantKeys = []), /grantKeys: /],
    [
      'a short grant key',
      (file: FileContent) => (file.grantKeys[0]!.secret = 'SECRET'),
      /grantKeys\.0\.secret/,
    ],
    ['no signing key', (file: FileContent) => (file.signingKeys = []), /signingKeys: /],
  ] as const) {
    test(`with ${what}, naming the field and no value`, async () => {
      const path = newPath();
      await openSecrets({ path, create: true });
      const keys = readFileSync(path, 'utf8');
      edit(path, change);
      await assert.rejects(open(path), (error: Error) => {
        assert.match(error.message, says);
        assertNoSecret(error, keys);
        return true;
      });
    });
  }

  test('when it is not JSON, without the text around the fault', async () => {
    const path = newPath();
    await openSecrets({ path, create: true });
    const whole = readFileSync(path, 'utf8');
    // a control character is no JSON, inside a string and outside of one
    for (const at of [10, 400, whole.length - 60]) {
      writeFileSync(path, `${whole.slice(0, at)}\u0001SECRET${whole.slice(at)}`);
      await assert.rejects(open(path), (error: Error) => {
        assertNoSecret(error, whole);
        return true;
      });
    }
  });
});

/** Neither the marker nor any key material of the file stands in the error or its causes. */
function assertNoSecret(error: Error, file: string): void {
  const text = `${error.message}\n${error.stack ?? ''}\n${JSON.stringify(error.cause) ?? ''}`;
  assert.ok(!text.includes('SECRET'), text);
  const content = JSON.parse(file) as FileContent;
  for (const secret of [content.grantKeys[0]!.secret, content.signingKeys[0]!.privateJwk.d]) {
    assert.ok(!text.includes(secret.slice(0, 8)), text);
  }
}

describe('a change of the file', () => {
  test('is seen by a process that has it open', async () => {
    const { secrets } = await openSecrets({ path: newPath(), create: true });
    const token = await addToken(secrets.path, { id: 'approver-1', name: 'Ada', roles: ['approver'] });
    const found = await eventually(() => findToken(secrets.tokens(), token));
    assert.deepEqual(
      [found.id, found.name, found.roles, found.kind],
      ['approver-1', 'Ada', ['approver'], 'person'],
    );
    edit(secrets.path, (file) => (file.tokens = []));
    await eventually(() => findToken(secrets.tokens(), token) === undefined);
  });

  test('to something unusable, and its loss, are told once and leave the last good one in force', async () => {
    const warnings: string[] = [];
    const { secrets, createdToken } = await openSecrets({
      path: newPath(),
      create: true,
      warn: (message) => warnings.push(message),
    });
    const good = readFileSync(secrets.path, 'utf8');
    const inForce = (): boolean => findToken(secrets.tokens(), createdToken!.token) !== undefined;
    writeFileSync(secrets.path, '{');
    await eventually(() => inForce() && warnings.length === 1);
    assert.match(warnings[0]!, /not valid JSON\. The secrets read before stay in force/);
    rmSync(secrets.path);
    await eventually(() => inForce() && warnings.length === 2);
    writeFileSync(secrets.path, good, { mode: 0o600 });
    edit(secrets.path, (file) => (file.tokens = []));
    await eventually(() => !inForce());
    assert.equal(warnings.length, 2);
  });

  test('by twenty who add a token at once loses none', async () => {
    const { secrets } = await openSecrets({ path: newPath(), create: true });
    const added = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        addToken(secrets.path, { id: `p${i}`, name: `P ${i}`, roles: [] }),
      ),
    );
    const { tokens } = await open(secrets.path);
    assert.deepEqual(
      added.map((token) => findToken(tokens(), token)?.id),
      added.map((_, i) => `p${i}`),
    );
    assert.equal(statSync(secrets.path).mode & 0o777, 0o600);
    assert.deepEqual(readdirSync(join(secrets.path, '..')).sort(), ['.gitignore', 'secrets.json']);
  });

  test('that would make the file invalid is refused and changes nothing', async () => {
    const { secrets } = await openSecrets({ path: newPath(), create: true });
    const before = readFileSync(secrets.path, 'utf8');
    await assert.rejects(addToken(secrets.path, { id: '', name: 'x', roles: [] }), /tokens\.1\.id/);
    await assert.rejects(addToken(newPath(), { id: 'a', name: 'x', roles: [] }), /is not there/);
    assert.equal(readFileSync(secrets.path, 'utf8'), before);
  });
});

describe('a token', () => {
  const record = (token: string, more: Partial<TokenRecord> = {}): TokenRecord => ({
    id: 'a',
    name: 'A',
    roles: [],
    kind: 'person',
    sha256: hashToken(token),
    createdAt: '2026-01-01T00:00:00Z',
    ...more,
  });

  test('is found by itself only', () => {
    const [token, other] = [makeToken(), makeToken()];
    const tokens = [record(makeToken()), record(token, { id: 'b' })];
    assert.equal(findToken(tokens, token)?.id, 'b');
    for (const wrong of [other, '', token.slice(0, -1), `${token} `, hashToken(token), 'é'.repeat(10_000)]) {
      assert.equal(findToken(tokens, wrong), undefined);
    }
  });

  test('ends with its time', () => {
    const token = makeToken();
    const tokens = [record(token, { expiresAt: '2027-01-01T00:00:00Z' })];
    const end = Date.parse('2027-01-01T00:00:00Z');
    assert.equal(findToken(tokens, token, end - 1)?.id, 'a');
    assert.equal(findToken(tokens, token, end), undefined);
  });
});
