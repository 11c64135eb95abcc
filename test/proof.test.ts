// P3, P6, P7: a proof fits one decision on one gate of one run, and every forgery is refused, never thrown.
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import fc from 'fast-check';
import { base64url, CompactSign, exportJWK, generateKeyPair, type JWK_OKP_Private } from 'jose';
import { canonicalize } from '../src/core/canonical.ts';
import { hashText } from '../src/core/hash.ts';
import type { Decision } from '../src/core/decision.ts';
import { signProof, verifyProof, type ProofKey, type SigningKey } from '../src/core/proof.ts';

const now = 1_800_000_000_123;
const place = { namespace: 'default', workflowId: 'refund-ord-1001' };
const unsigned: Omit<Decision, 'proof'> = {
  v: 1,
  key: 'refund-ord-1001.refund.046acc729732',
  root: '01a22898-4c9c-70f2-8589-046acc729732',
  decision: 'approve',
  payloadHash: 'sha256:aa',
  decisionId: 'd-1',
  by: { id: 'approver-1', name: 'Ada', roles: ['finance'] },
  via: 'api',
  reason: 'Betrag geprüft – 1 000 €',
};

let key: SigningKey & ProofKey;
let other: SigningKey & ProofKey;

async function makeKey(kid: string): Promise<SigningKey & ProofKey> {
  const pair = await generateKeyPair('EdDSA', { extractable: true });
  const privateJwk = (await exportJWK(pair.privateKey)) as JWK_OKP_Private;
  return { kid, privateJwk, publicJwk: { kty: 'OKP', crv: 'Ed25519', x: privateJwk.x } };
}

before(async () => {
  key = await makeKey('k1');
  other = await makeKey('k2');
});

async function signed(options: { now?: number; expiresInMs?: number } = {}): Promise<Decision> {
  return { ...unsigned, proof: await signProof(unsigned, place, key, { now, ...options }) };
}

async function refusal(
  decision: Decision,
  at: Partial<typeof place> & { now?: number } = {},
): Promise<string> {
  const check = await verifyProof(decision, { ...place, ...at }, [key], at.now ?? now);
  assert.equal(check.ok, false, 'the proof was taken');
  return check.ok ? '' : check.reason;
}

/** A JWS made by hand: any header, any claims, our own private key unless another one is given. */
async function forge(
  header: Record<string, unknown>,
  claims: Record<string, unknown> = {},
  signer: SigningKey = key,
): Promise<Decision> {
  const payload = canonicalize({
    decision: hashText(canonicalize(unsigned)),
    ...place,
    iat: now / 1000,
    ...claims,
  });
  const { subtle } = globalThis.crypto;
  const head = base64url.encode(
    JSON.stringify({ alg: 'EdDSA', kid: 'k1', typ: 'countersign-decision+jws', ...header }),
  );
  const input = `${head}.${base64url.encode(payload)}`;
  const privateKey = await subtle.importKey('jwk', { ...signer.privateJwk }, 'Ed25519', false, ['sign']);
  const signature = await subtle.sign('Ed25519', privateKey, new TextEncoder().encode(input));
  return { ...unsigned, proof: `${input}.${base64url.encode(new Uint8Array(signature))}` };
}

describe('a valid proof', () => {
  test('is taken, with the millisecond at which it was signed', async () => {
    assert.deepEqual(await verifyProof(await signed(), place, [other, key], now), {
      ok: true,
      signedAt: now,
      kid: 'k1',
    });
  });

  test('still is after the decision went through JSON with its members in another order', async () => {
    const entries = Object.entries(JSON.parse(JSON.stringify(await signed())) as Decision).reverse();
    const check = await verifyProof(Object.fromEntries(entries) as unknown as Decision, place, [key], now);
    assert.equal(check.ok, true);
  });

  test('made by hand in the same form is taken, so the forgeries below fail for what they change', async () => {
    assert.equal((await verifyProof(await forge({}), place, [key], now)).ok, true);
  });

  test('holds for any decision that is JSON', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: 'grapheme' }),
        fc.integer({ min: 0, max: 4e12 }),
        async (reason, at) => {
          const decision = { ...unsigned, reason };
          const proof = await signProof(decision, place, key, { now: at });
          const check = await verifyProof({ ...decision, proof }, place, [key], at);
          assert.deepEqual(check, { ok: true, signedAt: at, kid: 'k1' });
        },
      ),
      { numRuns: 50 },
    );
  });
});

describe('a proof is refused', () => {
  test('when the decision has none, or something that is no JWS', async () => {
    assert.match(await refusal(unsigned), /no proof/);
    for (const proof of ['', 'x', 'a.b.c', '..', 'é.é.é', `${'A'.repeat(100_000)}.b.c`]) {
      assert.match(await refusal({ ...unsigned, proof }), /not a compact JWS|algorithm/);
    }
    assert.match(await refusal({ ...unsigned, proof: 7 as unknown as string }), /no proof/);
  });

  test('when it was made with another key under the same name', async () => {
    assert.match(await refusal(await forge({}, {}, other)), /signature/);
  });

  test('when its key is not known here', async () => {
    assert.match(await refusal(await forge({ kid: 'k2' }, {}, other)), /key "k2" is not known/);
    assert.match(await refusal(await forge({ kid: undefined })), /not known/);
    const removed = await verifyProof(await signed(), place, [], now);
    assert.equal(removed.ok, false);
  });

  for (const [what, change] of [
    ['gate', { key: 'refund-ord-1001.other.046acc729732' }],
    ['hash', { payloadHash: 'sha256:ab' }],
    ['root', { root: '01a22898-4c9c-70f2-8589-046acc729733' }],
    ['person', { by: { id: 'approver-2' } }],
    ['role', { by: { id: 'approver-1', name: 'Ada', roles: ['finance', 'admin'] } }],
    ['reason', { reason: 'something else' }],
    ['decision', { decision: 'reject' }],
    ['id', { decisionId: 'd-2' }],
    ['door', { via: 'slack' }],
    ['added member', { to: 'somebody' }],
  ] as const) {
    test(`when it was made for another ${what}`, async () => {
      assert.match(await refusal({ ...(await signed()), ...change } as Decision), /another decision/);
    });
  }

  test('when a member was taken away', async () => {
    const { reason: _, ...rest } = await signed();
    assert.match(await refusal(rest), /another decision/);
  });

  test('in another run, and in another namespace', async () => {
    assert.match(
      await refusal(await signed(), { workflowId: 'refund-ord-1002' }),
      /made for run "refund-ord-1001"/,
    );
    assert.match(await refusal(await signed(), { namespace: 'other' }), /in namespace "default"/);
  });

  test('when it has expired, to the millisecond', async () => {
    const decision = await signed({ expiresInMs: 1000 });
    assert.equal((await verifyProof(decision, place, [key], now + 999)).ok, true);
    assert.match(await refusal(decision, { now: now + 1000 }), /expired at 2027-/);
  });

  test('when it was signed further in the future than clocks differ', async () => {
    assert.equal((await verifyProof(await signed({ now: now + 60_000 }), place, [key], now)).ok, true);
    assert.match(await refusal(await signed({ now: now + 60_001 })), /in the future/);
  });

  test('when it says nothing usable about its time', async () => {
    for (const iat of [null, '1800000000', {}]) {
      assert.match(await refusal(await forge({}, { iat })), /when it was signed/);
    }
    assert.match(await refusal(await forge({}, { iat: 1e300 })), /in the future/);
    assert.match(await refusal(await forge({}, { exp: 'never' })), /exp/);
  });

  test('with algorithm none', async () => {
    const [, payload] = (await signed()).proof!.split('.');
    for (const alg of ['none', 'None', '']) {
      const head = base64url.encode(JSON.stringify({ alg, kid: 'k1', typ: 'countersign-decision+jws' }));
      assert.match(await refusal({ ...unsigned, proof: `${head}.${payload}.` }), /algorithm/);
    }
  });

  test('with HS256 and the public key as secret', async () => {
    const payload = new TextEncoder().encode(
      canonicalize({ decision: hashText(canonicalize(unsigned)), ...place, iat: now / 1000 }),
    );
    for (const secret of [base64url.decode(key.publicJwk.x), new TextEncoder().encode(key.publicJwk.x)]) {
      const proof = await new CompactSign(payload)
        .setProtectedHeader({ alg: 'HS256', kid: 'k1', typ: 'countersign-decision+jws' })
        .sign(secret);
      assert.match(await refusal({ ...unsigned, proof }), /algorithm is "HS256"/);
    }
  });

  test('of another type, though signed by the same key', async () => {
    assert.match(await refusal(await forge({ typ: 'JWT' })), /type is "JWT"/);
    assert.match(await refusal(await forge({ crit: ['x'], x: 1 })), /signature/);
  });

  test('when any one character of it was changed', async () => {
    const decision = await signed();
    const proof = decision.proof!;
    await fc.assert(
      // not the last character: base64url of 64 bytes has four bits in it that no decoder reads
      fc.asyncProperty(fc.nat(proof.length - 2), async (at) => {
        const changed = proof.slice(0, at) + (proof[at] === 'A' ? 'B' : 'A') + proof.slice(at + 1);
        assert.equal((await verifyProof({ ...decision, proof: changed }, place, [key], now)).ok, false);
      }),
      { numRuns: 200 },
    );
  });
});

test('a broken key of our own is an error, not a refusal of the sender', async () => {
  const broken = { kid: 'k1', publicJwk: { kty: 'OKP', crv: 'Ed25519', x: 'short' } } as const;
  await assert.rejects(verifyProof(await signed(), place, [broken], now));
});
