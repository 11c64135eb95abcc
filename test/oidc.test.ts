// A JWT of an OIDC issuer is a credential: only what that issuer signed, for this API, in its time, with a key that
// it publishes. Over a real HTTP issuer on this machine, through the API's own front.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { base64url, exportSPKI, importJWK, SignJWT, type CryptoKey } from 'jose';
import { createAuthenticate } from '../src/api/authenticate.ts';
import { createOidc } from '../src/api/oidc.ts';
import { oidcSchema, type OidcConfig } from '../src/oidc-config.ts';
import { hashToken, type TokenRecord } from '../src/tokens.ts';
import { createApiHarness } from './support/api-harness.ts';
import { makeIssuerKey, startIssuer } from './support/oidc-issuer.ts';

const clock = { now: Date.parse('2026-11-02T10:00:00.000Z') };
const seconds = clock.now / 1000;
const now = () => clock.now;
const issuer = await startIssuer(now);
const other = await startIssuer(now);

/** An API that takes tokens of the issuer, new each time: it knows no key yet. */
function api(more: Partial<Record<keyof OidcConfig, unknown>> = {}, records: TokenRecord[] = []) {
  const logged: Record<string, unknown>[] = [];
  const config = oidcSchema.parse({ issuer: issuer.url, audience: 'countersign', ...more });
  const oidc = createOidc(config, { log: (fields) => logged.push(fields), now });
  const authenticate = createAuthenticate({ tokens: () => records, oidc, now });
  const harness = createApiHarness({ authenticate });
  const get = (token: string, path = '/runs') =>
    harness.call('GET', path, { as: 'nobody', headers: { authorization: `Bearer ${token}` } });
  const refusal = async (token: string): Promise<string> => {
    const { status, body, headers } = await get(token);
    assert.deepEqual([status, body['code']], [401, 'unauthenticated'], String(body['detail']));
    assert.match(String(headers.get('www-authenticate')), /error="invalid_token"/);
    return String(body['detail']);
  };
  return {
    ...harness,
    get,
    refusal,
    authenticate: async (token: string) => authenticate(token),
    oidc,
    logged,
  };
}

const { refusal: refused } = api();

test('a token of the issuer is taken, and says who calls', async () => {
  const { get, authenticate } = api();
  const token = await issuer.token({ name: 'Ann', roles: ['finance', 'finance', 'ops'] });
  assert.equal((await get(token)).status, 200);
  assert.deepEqual(await authenticate(token), {
    ...{ id: 'oidc:u-1', name: 'Ann', roles: ['finance', 'ops'], kind: 'person' },
    scopes: ['start', 'read', 'decide'],
  });
});

test('a decision is recorded as of that person', async () => {
  const { fake, call } = api();
  const { key, hash } = fake.ask({ runId: 'r1' });
  const token = await issuer.token({ name: 'Ann', roles: ['finance'] });
  const headers = { authorization: `Bearer ${token}`, 'if-match': `"${hash}"` };
  const { status } = await call('POST', `/approvals/${key}/approve`, { as: 'nobody', headers });
  assert.equal(status, 200);
  assert.deepEqual(fake.must('r1').signals[0]?.by, { id: 'oidc:u-1', name: 'Ann', roles: ['finance'] });
});

test('each of the usual algorithms verifies', async () => {
  for (const alg of ['RS256', 'PS256', 'ES256', 'EdDSA']) {
    const key = await makeIssuerKey(`by-${alg}`, alg);
    issuer.keys.push(key);
    assert.equal((await api().get(await issuer.token({}, {}, key))).status, 200, alg);
  }
  const es384 = await makeIssuerKey('es384', 'ES384');
  issuer.keys.push(es384);
  const token = await issuer.token({}, {}, es384);
  assert.match(await refused(token), /its algorithm is not one of RS256, PS256, ES256, EdDSA/);
  assert.equal((await api({ algorithms: ['ES384'] }).get(token)).status, 200);
});

test('algorithm none is refused, however it is spelt', async () => {
  const [, payload] = (await issuer.token()).split('.');
  for (const alg of ['none', 'None', 'NONE', '']) {
    const head = base64url.encode(JSON.stringify({ alg, kid: 'first', typ: 'JWT' }));
    for (const signature of ['', 'AAAA']) {
      assert.match(await refused(`${head}.${payload}.${signature}`), /algorithm is not one of|no valid JWT/);
    }
  }
});

test('HS256 with the public key as its secret is refused, and no config can allow it', async () => {
  const rsa = await makeIssuerKey('rsa', 'RS256');
  issuer.keys.push(rsa);
  const publicKey = (await importJWK(rsa.publicJwk, 'RS256', { extractable: true })) as CryptoKey;
  const secrets = [await exportSPKI(publicKey), JSON.stringify(rsa.publicJwk), String(rsa.publicJwk.n)];
  for (const secret of secrets) {
    const claims = { iss: issuer.url, aud: 'countersign', sub: 'u-1', exp: seconds + 300 };
    const token = await new SignJWT(claims)
      .setProtectedHeader({ alg: 'HS256', kid: 'rsa', typ: 'JWT' })
      .sign(new TextEncoder().encode(secret));
    assert.match(await refused(token), /algorithm is not one of/);
  }
  for (const alg of ['HS256', 'none']) {
    const config = { issuer: issuer.url, audience: 'countersign', algorithms: ['RS256', alg] };
    assert.equal(oidcSchema.safeParse(config).success, false, alg);
  }
});

test('a key of somebody else is refused, under its own id and under one of the issuer', async () => {
  const foreign = await makeIssuerKey('foreign');
  assert.match(await refused(await issuer.token({}, {}, foreign)), /its key is none of the issuer/);
  assert.match(
    await refused(await issuer.token({}, {}, { ...foreign, kid: 'first' })),
    /signature does not match/,
  );
});

test('a token may bring neither a key nor a place to get one from', async () => {
  const foreign = await makeIssuerKey('foreign');
  const asked = other.asked.length;
  for (const header of [
    { jwk: foreign.publicJwk, kid: undefined },
    { jku: `${other.url}/keys`, kid: 'foreign' },
    { x5u: `${other.url}/keys`, kid: 'foreign' },
  ]) {
    await refused(await issuer.token({}, header, foreign));
  }
  assert.equal(other.asked.length, asked);
});

test('another issuer is refused without asking anybody, another audience too', async () => {
  const { refusal } = api();
  const before = issuer.asked.length;
  assert.match(
    await refusal(await other.token()),
    new RegExp(`its issuer is "${other.url}", not "${issuer.url}"`),
  );
  assert.match(await refusal(await issuer.token({ iss: undefined })), /its issuer is missing/);
  assert.match(await refusal(await issuer.token({ iss: `${issuer.url}/` })), /its issuer is/);
  assert.equal(issuer.asked.length, before);
  assert.match(await refusal(await issuer.token({ aud: 'wiki' })), /not for countersign \(aud\)/);
  assert.match(await refusal(await issuer.token({ aud: undefined })), /not for countersign \(aud\)/);
  const several = api({ audience: ['a', 'b'] });
  assert.equal((await several.get(await issuer.token({ aud: ['wiki', 'b'] }))).status, 200);
});

test('what its issuer says of itself in another issuer’s tokens is not believed', async () => {
  const token = await other.token({ iss: issuer.url });
  assert.match(await refused(token), /signature does not match/);
});

test('its time is held, with a minute for clocks that differ', async () => {
  const { get, refusal } = api();
  assert.equal((await get(await issuer.token({ exp: seconds - 59 }))).status, 200);
  assert.match(
    await refusal(await issuer.token({ exp: seconds - 60 })),
    /it expired at 2026-11-02T09:59:00\.000Z/,
  );
  assert.match(await refusal(await issuer.token({ exp: undefined })), /claim "exp" is missing/);
  assert.equal((await get(await issuer.token({ nbf: seconds + 60 }))).status, 200);
  assert.match(await refusal(await issuer.token({ nbf: seconds + 61 })), /not valid yet \(nbf\)/);
  assert.equal((await get(await issuer.token({ iat: seconds + 60 }))).status, 200);
  assert.match(await refusal(await issuer.token({ iat: seconds + 61 })), /issued in the future/);
});

test('what is signed by the issuer for another use is refused', async () => {
  for (const typ of ['logout+jwt', 'dpop+jwt', 'secevent+jwt', 'JOSE', 7]) {
    assert.match(await refused(await issuer.token({}, { typ })), /its typ is/);
  }
  for (const typ of ['at+jwt', 'application/at+jwt', 'jwt', undefined]) {
    assert.equal((await api().get(await issuer.token({}, { typ }))).status, 200, String(typ));
  }
  const bound = await issuer.token({ cnf: { jkt: 'x' } });
  assert.match(await refused(bound), /bound to a key of the sender/);
});

test('what is no JWT is refused without asking anybody, and quoted without its control characters', async () => {
  const { refusal } = api();
  const before = issuer.asked.length;
  for (const token of ['a.b', 'a.b.c', '..', `${base64url.encode('{}')}.${base64url.encode('[]')}.x`]) {
    assert.match(await refusal(token), /no JWT|its typ|issuer/);
  }
  const said = await refusal(await issuer.token({ iss: '\u001b[2Jevil\u202e' + 'x'.repeat(5000) }));
  assert.ok(said.length < 500 && !/[\p{Cc}\p{Cf}]/u.test(said), said);
  assert.equal(issuer.asked.length, before);
});

test('any one changed character of a token makes it another one', async () => {
  const { get } = api();
  const token = await issuer.token({ roles: ['finance'] });
  // every seventh, and not the last: base64url has bits there that no decoder reads
  for (let at = 0; at < token.length - 1; at += 7) {
    const changed = token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1);
    assert.equal((await get(changed)).status, 401, `character ${at}`);
  }
});

test('keys are asked for once, again for one that is new, and not for each stranger', async () => {
  const own = await startIssuer(now);
  const { get, refusal } = api({ issuer: own.url });
  await Promise.all(Array.from({ length: 20 }, async () => get(await own.token())));
  assert.deepEqual(own.asked, ['/.well-known/openid-configuration', '/keys']);
  const foreign = await makeIssuerKey('foreign');
  for (let count = 0; count < 20; count += 1) await refusal(await own.token({}, {}, foreign));
  assert.equal(own.asked.length, 2);
});

test('a key that the issuer changed is known within half a minute, one it took back is gone in ten', async (t) => {
  const own = await startIssuer(now);
  const { get, refusal } = api({ issuer: own.url });
  const before = await own.token();
  assert.equal((await get(before)).status, 200);
  const second = await makeIssuerKey('second');
  own.keys = [second];
  const after = await own.token({}, {}, second);
  assert.match(await refusal(after), /none of the issuer/);
  const real = Date.now();
  t.mock.method(Date, 'now', () => real + 30_000);
  assert.equal((await get(after)).status, 200);
  // the key set as a whole is what counts
  assert.match(await refusal(before), /none of the issuer/);
  own.keys = [await makeIssuerKey('third')];
  assert.equal((await get(after)).status, 200);
  t.mock.method(Date, 'now', () => real + 30_000 + 600_000);
  assert.match(await refusal(after), /none of the issuer/);
});

test('where the keys are may be said instead of discovered', async () => {
  const own = await startIssuer(now);
  const { get } = api({ issuer: own.url, jwksUri: `${own.url}/keys` });
  assert.equal((await get(await own.token())).status, 200);
  assert.deepEqual(own.asked, ['/keys']);
});

test('an issuer that cannot be reached is 503 with a log that says why, and is asked again later', async (t) => {
  const own = await startIssuer(now);
  const { get, logged } = api({ issuer: own.url }, [record('csn_file')]);
  const token = await own.token();
  await own.stop();
  const { status, body, headers } = await get(token);
  assert.deepEqual([status, body['code'], headers.get('retry-after')], [503, 'issuer_unavailable', '5']);
  assert.match(String(body['detail']), /gives no keys to check the token with/);
  assert.deepEqual(logged, [
    {
      ...{ level: 'error', message: 'the OIDC issuer gives no keys: its tokens are answered 503' },
      ...{ issuer: own.url, why: 'ECONNREFUSED' },
    },
  ]);
  // tokens of the file need no issuer; nonsense is still nonsense
  assert.equal((await get('csn_file')).status, 200);
  assert.equal((await get('a.b.c')).status, 401);
  await own.start();
  // for five seconds nobody waits for it, and nothing is logged twice
  assert.equal((await get(token)).status, 503);
  assert.equal(logged.length, 1);
  const later = performance.now() + 5000;
  t.mock.method(performance, 'now', () => later);
  assert.equal((await get(token)).status, 200);
});

test('an issuer whose keys are known is not needed for a while', async () => {
  const own = await startIssuer(now);
  const { get, oidc } = api({ issuer: own.url });
  await oidc.warmUp();
  await own.stop();
  assert.equal((await get(await own.token())).status, 200);
});

for (const [what, answer, why] of [
  ['fails', { status: 500 }, /openid-configuration answers 500/],
  ['sends us elsewhere', { status: 302 }, /answers 302/],
  ['answers no JSON', { discovery: '<html>' }, /JSON/],
  [
    'is another one',
    { discovery: { issuer: 'https://other.example', jwks_uri: 'https://o.example' } },
    /is of the issuer/,
  ],
  [
    'keeps its keys where anybody could change them',
    { discovery: 'plain' },
    /no jwks_uri that is an https URL/,
  ],
  ['has no keys', { jwks: { keys: 7 } }, /JSON Web Key Set/],
] as const) {
  test(`an issuer that ${what} is 503, and the log says so at the start`, async () => {
    const own = await startIssuer(now);
    const plain = { issuer: own.url, jwks_uri: 'http://keys.example/' };
    own.answer = 'discovery' in answer && answer.discovery === 'plain' ? { discovery: plain } : answer;
    const { get, logged, oidc } = api({ issuer: own.url });
    await oidc.warmUp();
    assert.equal(logged.length, 1);
    assert.match(String(logged[0]?.['why']), why);
    const { status, body } = await get(await own.token());
    assert.deepEqual([status, body['code']], [503, 'issuer_unavailable']);
  });
}

test('claims are read as the config says', async () => {
  const who = async (more: object, claims: object) =>
    api(more).authenticate(await issuer.token({ ...claims }));
  const nested = { realm_access: { roles: ['a', 'b'] } };
  assert.deepEqual((await who({ rolesClaim: ['realm_access', 'roles'] }, nested))?.roles, ['a', 'b']);
  assert.deepEqual(
    (await who({ rolesClaim: 'https://x.example/roles' }, { 'https://x.example/roles': 'a' }))?.roles,
    ['a'],
  );
  assert.deepEqual((await who({ roles: ['b'] }, { roles: ['a', 'b', 'admin'] }))?.roles, ['b']);
  assert.deepEqual((await who({}, {}))?.roles, []);
  assert.equal((await who({ idClaim: 'oid' }, { oid: 'o-7' }))?.id, 'oidc:o-7');
  assert.equal((await who({}, { preferred_username: 'ann' }))?.name, 'ann');
  assert.equal((await who({ nameClaim: 'nick' }, { nick: 'A', name: 'Ann' }))?.name, 'A');
  assert.equal((await who({}, { name: 'x'.repeat(300) }))?.name.length, 200);
  assert.deepEqual((await who({ scopes: ['read'] }, {}))?.scopes, ['read']);
  const roleScopes = { auditors: ['audit'], boss: ['admin', 'read'] };
  assert.deepEqual(
    (await who({ scopes: ['read'], roleScopes }, { roles: ['boss', 'x', 'toString'] }))?.scopes,
    [...['read', 'admin']],
  );
});

test('claims that say nobody, or nobody for certain, are refused', async () => {
  const said = async (more: object, claims: object) => api(more).refusal(await issuer.token({ ...claims }));
  assert.match(await said({}, { sub: undefined }), /claim "sub" is no text/);
  assert.match(await said({ idClaim: 'oid' }, { oid: 7 }), /claim "oid" is no text/);
  for (const sub of ['', 'a\u0000b', 'a\u202eb', 'x'.repeat(256)]) {
    assert.match(await said({}, { sub }), /claim "sub" is no text of 1 to 255 characters/);
  }
  assert.match(await said({ idClaim: 'email' }, { email: 'a@x.example' }), /not verified its email/);
  assert.match(
    await said({ idClaim: 'email' }, { email: 'a@x.example', email_verified: 'true' }),
    /not verified/,
  );
  assert.match(await said({}, { roles: [7] }), /its roles \(roles\) are no list of texts/);
  assert.match(
    await said({}, { roles: Array.from({ length: 51 }, (_, i) => `r${i}`) }),
    /51 roles, at most 50/,
  );
  const verified = await issuer.token({ email: 'a@x.example', email_verified: true });
  assert.equal((await api({ idClaim: 'email' }).authenticate(verified))?.id, 'oidc:a@x.example');
});

test('the token of a machine is a service, and never a person by mistake', async () => {
  const kind = async (more: object, claims: object) =>
    (await api(more).authenticate(await issuer.token({ ...claims })))?.kind;
  assert.equal(await kind({}, { client_id: 'web' }), 'person');
  assert.equal(await kind({}, { sub: 'ci', client_id: 'ci' }), 'service');
  assert.equal(await kind({}, { sub: 'ci', azp: 'ci' }), 'service');
  assert.equal(await kind({}, { idtyp: 'app' }), 'service');
  assert.equal(await kind({}, { gty: 'client-credentials' }), 'service');
  assert.equal(await kind({ kindClaim: 'kind' }, { kind: 'person' }), 'person');
  assert.equal(await kind({ kindClaim: 'kind' }, { kind: 'human' }), 'service');
  assert.equal(await kind({ kindClaim: 'kind' }, {}), 'service');
});

test('an id of the issuer never is one of the secrets file, unless that says so', async () => {
  const { authenticate } = api({}, [record('csn_ann', 'ann'), record('csn_alias', 'oidc:ann')]);
  const ids = await Promise.all(
    ['csn_ann', await issuer.token({ sub: 'ann' }), 'csn_alias'].map(
      async (token) => (await authenticate(token))?.id,
    ),
  );
  assert.deepEqual(ids, ['ann', 'oidc:ann', 'oidc:ann']);
});

test('without an issuer in the config a JWT is an unknown token', async () => {
  const authenticate = createAuthenticate({ tokens: () => [] });
  assert.equal(await authenticate(await issuer.token()), undefined);
});

function record(token: string, id = 'file'): TokenRecord {
  const createdAt = '2026-01-01T00:00:00Z';
  return { id, name: id, roles: [], kind: 'person', scopes: ['read'], sha256: hashToken(token), createdAt };
}
