// Keys follow each other without a gap: a new one is known before it signs, what an old one signed in its time
// holds, and a file from before there were times reads as it did.
import assert from 'node:assert/strict';
import {
  chmodSync,
  chownSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
  lstatSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { issueGrant, grantProblem } from '../src/core/grant.ts';
import { signProof, verifyProof } from '../src/core/proof.ts';
import {
  grantKeysAt,
  keyRows,
  proofKeysOf,
  removeKey,
  rotateGrantKey,
  rotateSigningKey,
  signingKeyAt,
} from '../src/secret-keys.ts';
import { editSecretsFile } from '../src/secrets-edit.ts';
import { readSecretsFile, SecretsError, type SecretsFile } from '../src/secrets-file.ts';
import { addToken, openSecrets } from '../src/secrets.ts';
import { makeSecrets } from './support/secrets.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

const minute = 60_000;
const now = Date.parse('2026-11-02T10:00:00.000Z');
const place = { namespace: 'default', workflowId: 'w' };
const unsigned = {
  ...({ v: 1, key: 'k', root: 'r', decision: 'reject', decisionId: 'd', via: 'api' } as const),
  by: { id: 'ann' },
};

async function newFile(): Promise<SecretsFile> {
  const { path } = await makeSecrets();
  return readSecretsFile(path);
}

/** Signed by whatever key may sign at that time, and judged by what the file has later. */
async function signedAt(file: SecretsFile, at: number) {
  return { ...unsigned, proof: await signProof(unsigned, place, signingKeyAt(file, at), { now: at }) };
}

describe('a signing key', () => {
  test('that was made ahead signs from its time on, and not before', async () => {
    const file = await newFile();
    const old = signingKeyAt(file, now).kid;
    const { kid } = await rotateSigningKey(file, { now, from: now + 2 * minute });
    assert.equal(signingKeyAt(file, now).kid, old);
    assert.equal(signingKeyAt(file, now + 2 * minute - 1).kid, old);
    assert.equal(signingKeyAt(file, now + 2 * minute).kid, kid);
    // every process knows it before
    assert.ok(proofKeysOf(file).some((key) => key.kid === kid));
  });

  test('that was replaced verifies what it signed in its time, and ten minutes more of others', async () => {
    const file = await newFile();
    const before = structuredClone(file);
    const inTime = await signedAt(file, now);
    await rotateSigningKey(file, { now, from: now + minute });
    const check = async (at: number) =>
      verifyProof(await signedAt(before, at), place, proofKeysOf(file), now + 60 * minute);
    assert.equal((await verifyProof(inTime, place, proofKeysOf(file), now + 60 * minute)).ok, true);
    // an API process that could not read the changed file goes on for a while
    assert.equal((await check(now + 11 * minute - 1)).ok, true);
    const late = await check(now + 11 * minute);
    assert.match(late.ok ? '' : late.reason, /key "\w+" signs no more since 2026-11-02T10:11:00\.000Z/);
  });

  test('does not prove what says that it was signed before the key began', async () => {
    const file = await newFile();
    const { kid, privateJwk } = await rotateSigningKey(file, { now, from: now });
    assert.ok(privateJwk !== undefined);
    const early = {
      ...unsigned,
      proof: await signProof(unsigned, place, { kid, privateJwk }, { now: now - 1 }),
    };
    const check = await verifyProof(early, place, proofKeysOf(file), now);
    assert.match(check.ok ? '' : check.reason, /signs from 2026-11-02T10:00:00\.000Z on, not before/);
    assert.equal((await verifyProof(await signedAt(file, now), place, proofKeysOf(file), now)).ok, true);
  });

  test('loses its private part when its successor signs, and not before', async () => {
    const file = await newFile();
    const [old] = file.signingKeys;
    await rotateSigningKey(file, { now, from: now + 2 * minute });
    assert.ok(old?.privateJwk !== undefined, 'a process that starts now has to sign with it');
    await rotateSigningKey(file, { now: now + 3 * minute, from: now + 5 * minute });
    assert.equal(old.privateJwk, undefined);
    assert.deepEqual(
      file.signingKeys.map(({ privateJwk }) => privateJwk !== undefined),
      [true, true, false],
    );
    // at once: the old one is not needed any more
    await rotateSigningKey(file, { now: now + 6 * minute, from: now + 6 * minute });
    assert.deepEqual(
      file.signingKeys.map(({ privateJwk }) => privateJwk !== undefined),
      [true, false, false, false],
    );
    assert.equal(proofKeysOf(file).length, 4);
  });

  test('that was to begin later gives way to one that begins before it', async () => {
    const file = await newFile();
    const planned = await rotateSigningKey(file, { now, from: now + 60 * minute });
    const { kid } = await rotateSigningKey(file, { now, from: now });
    assert.equal(signingKeyAt(file, now + 61 * minute).kid, kid);
    assert.ok(!file.signingKeys.some((key) => key.kid === planned.kid));
  });

  test('past its time does not sign, whatever else there is, with what to do', async () => {
    const file = await newFile();
    file.signingKeys[0]!.validUntil = new Date(now).toISOString();
    assert.equal(signingKeyAt(file, now - 1).kid, file.signingKeys[0]!.kid);
    assert.throws(
      () => signingKeyAt(file, now),
      /no signing key may sign now: .*keys rotate --signing --now/,
    );
  });

  test('in use is not removed, another one is, and then proves nothing more', async () => {
    const file = await newFile();
    const old = file.signingKeys[0]!.kid;
    const decision = await signedAt(file, now);
    assert.throws(() => removeKey(file, 'signing', old, now), /in use: first `countersign keys rotate/);
    assert.throws(() => removeKey(file, 'signing', 'nope', now), new RegExp(`"nope"; there are: ${old}`));
    await rotateSigningKey(file, { now, from: now });
    removeKey(file, 'signing', old, now);
    const check = await verifyProof(decision, place, proofKeysOf(file), now);
    assert.match(check.ok ? '' : check.reason, /not known here/);
  });
});

describe('a grant key', () => {
  const grant = {
    ...({ v: 1, ...place, key: 'k', root: 'r', position: 'p', tool: 't' } as const),
    ...{ payloadHash: 'sha256:aa', decisionId: 'd' },
  };

  test('that was made ahead is known before it is used, and what older ones granted holds', async () => {
    const file = await newFile();
    const first = issueGrant(grant, grantKeysAt(file, now));
    const { kid } = rotateGrantKey(file, { from: now + minute });
    assert.equal(issueGrant(grant, grantKeysAt(file, now)).kid, first.kid);
    const second = issueGrant(grant, grantKeysAt(file, now + minute));
    assert.equal(second.kid, kid);
    for (const made of [first, second])
      assert.equal(grantProblem(made, place, grantKeysAt(file, now)), undefined);
    removeKey(file, 'grant', first.kid, now + minute);
    assert.match(String(grantProblem(first, place, grantKeysAt(file, now))), /not known here/);
    assert.equal(grantProblem(second, place, grantKeysAt(file, now)), undefined);
  });

  test('in use is not removed', async () => {
    const file = await newFile();
    assert.throws(() => removeKey(file, 'grant', file.grantKeys[0]!.kid, now), /in use/);
  });
});

describe('a file from before there were times and scopes', () => {
  test('signs with its first key, verifies with all, and keeps them', async () => {
    const [file, other] = [await newFile(), await newFile()];
    file.signingKeys.push(...other.signingKeys);
    file.grantKeys.push(...other.grantKeys);
    const { path } = await makeSecrets();
    for (const token of file.tokens) delete token.scopes;
    writeFileSync(path, JSON.stringify(file));
    const { secrets } = await openSecrets({ path, create: false });
    assert.equal(secrets.signingKey().kid, file.signingKeys[0]!.kid);
    assert.deepEqual(
      secrets.proofKeys().map(({ kid }) => kid),
      file.signingKeys.map(({ kid }) => kid),
    );
    assert.deepEqual(
      secrets.grantKeys().map(({ kid }) => kid),
      file.grantKeys.map(({ kid }) => kid),
    );
    assert.deepEqual(
      keyRows(file, now).map(({ use, state }) => `${use} ${state}`),
      ['signing signs', 'signing verifies', 'grant signs', 'grant verifies'],
    );
    // a change of something else takes nothing from it
    await addToken(path, { id: 'ann', name: 'Ann', roles: [] });
    assert.deepEqual(readSecretsFile(path).signingKeys, file.signingKeys);
  });

  test('is refused where two keys have one id, none can sign, or a time ends before it begins', async () => {
    const { path } = await makeSecrets();
    const good = readSecretsFile(path);
    const [key] = good.signingKeys;
    for (const [change, says] of [
      [{ signingKeys: [key, key] }, /signingKeys: two have one kid/],
      [{ grantKeys: [...good.grantKeys, ...good.grantKeys] }, /grantKeys: two have one kid/],
      [{ signingKeys: [{ ...key, privateJwk: undefined }] }, /signingKeys: one must have a privateJwk/],
      [
        { signingKeys: [{ ...key, validFrom: '2026-01-02T00:00:00Z', validUntil: '2026-01-01T00:00:00Z' }] },
        /signingKeys\.0: validUntil must be after validFrom/,
      ],
    ] as const) {
      writeFileSync(path, JSON.stringify({ ...good, ...change }));
      assert.throws(() => readSecretsFile(path), says);
    }
  });
});

describe('a change of the file', () => {
  const rotate = (file: SecretsFile) => rotateSigningKey(file, { now: Date.now(), from: Date.now() });

  test('keeps mode and owner, the link that it is reached by, and nothing beside it', async () => {
    const { path } = await makeSecrets();
    const link = join(temporaryFolder(), 'secrets.json');
    symlinkSync(path, link);
    chmodSync(path, 0o600);
    // as root on the file of a service; anybody else has only files of his own
    if (process.getuid?.() === 0) chownSync(path, 12_345, 12_345);
    const { uid, gid } = statSync(path);
    await editSecretsFile(link, rotate);
    assert.ok(lstatSync(link).isSymbolicLink());
    const after = statSync(path);
    assert.deepEqual([after.mode & 0o777, after.uid, after.gid], [0o600, uid, gid]);
    assert.equal(readSecretsFile(link).signingKeys.length, 2);
    assert.deepEqual(readdirSync(dirname(path)), ['secrets.json']);
    assert.deepEqual(readdirSync(dirname(link)), ['secrets.json']);
  });

  test('that fails changes nothing and leaves no lock', async () => {
    const { path } = await makeSecrets();
    const before = readFileSync(path, 'utf8');
    await assert.rejects(
      editSecretsFile(path, () => {
        throw new SecretsError('no');
      }),
      /no/,
    );
    await assert.rejects(
      editSecretsFile(path, (file) => void (file.grantKeys = [])),
      /grantKeys: /,
    );
    assert.equal(readFileSync(path, 'utf8'), before);
    assert.deepEqual(readdirSync(dirname(path)), ['secrets.json']);
  });

  test('by ten who rotate at once loses none', async () => {
    const { path } = await makeSecrets();
    await Promise.all(Array.from({ length: 10 }, () => editSecretsFile(path, rotate)));
    const file = readSecretsFile(path);
    assert.equal(file.signingKeys.length, 11);
    assert.equal(file.signingKeys.filter(({ privateJwk }) => privateJwk !== undefined).length, 1);
  });
});

test('a worker that has the file open knows a new key as soon as anybody can sign with it', async () => {
  const { path } = await makeSecrets();
  const { secrets: worker } = await openSecrets({ path, create: false });
  worker.proofKeys(); // looked at a moment ago
  const before = await openSecrets({ path, create: false });
  const old = { ...unsigned, proof: await signProof(unsigned, place, before.secrets.signingKey()) };
  await editSecretsFile(path, (file) => rotateSigningKey(file, { now: Date.now(), from: Date.now() }));
  await editSecretsFile(path, (file) => rotateGrantKey(file, { from: Date.now() }));
  const { secrets: api } = await openSecrets({ path, create: false });
  const fresh = { ...unsigned, proof: await signProof(unsigned, place, api.signingKey()) };
  for (const decision of [old, fresh]) {
    assert.equal((await verifyProof(decision, place, worker.proofKeys(), Date.now())).ok, true);
  }
  assert.deepEqual(worker.grantKeys(), api.grantKeys());
  assert.equal(worker.grantKeys().length, 2);
});
