// What a credential may be used for: every route is in the table of scopes, and asks for what stands there.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAuthenticate } from '../src/api/authenticate.ts';
import { openRoutes, routeScopes, type GuardedRoute } from '../src/api/route-scopes.ts';
import { defaultScopes, hasScope, scopes, type Scope } from '../src/scopes.ts';
import { hashToken, type TokenRecord } from '../src/tokens.ts';
import { createApiHarness } from './support/api-harness.ts';

const guardedRoutes = Object.keys(routeScopes) as GuardedRoute[];

/** Whose tokens are lists of scopes: `read+decide`, or `-` for none. */
function harness() {
  return createApiHarness({
    authenticate: (token) => ({
      ...{ id: 'ann', name: 'Ann', roles: [], kind: 'person' },
      scopes: token === '-' ? [] : (token.split('+') as Scope[]),
    }),
  });
}

function callWith({ call }: ReturnType<typeof harness>, token: string, route: GuardedRoute, path: string) {
  const [method = ''] = route.split(' ');
  const headers = { authorization: `Bearer ${token}` };
  return call(method, path, { as: 'nobody', headers, ...(method === 'POST' ? { body: {} } : {}) });
}

/** The route with a run, an approval and a decision that are not there. */
function pathOf(route: GuardedRoute): string {
  const [, path = ''] = route.split(' ');
  return path
    .replace('{id}', 'none')
    .replace('{key}', 'none.refund.000000000000')
    .replace('{decisionId}', 'd');
}

interface Operation {
  security?: Record<string, string[]>[];
  responses: Record<string, { description: string }>;
}

async function operations(): Promise<Map<string, Operation>> {
  const { body } = await harness().call('GET', '/openapi.json', { as: 'nobody' });
  return new Map(
    Object.entries(body['paths'] as Record<string, Record<string, Operation>>).flatMap(([path, item]) =>
      Object.entries(item).map(([method, operation]) => [`${method.toUpperCase()} ${path}`, operation]),
    ),
  );
}

test('every route of /openapi.json is in the table of scopes, and the table has no other', async () => {
  const documented = [...(await operations()).keys()];
  const expected = [...guardedRoutes, ...Object.keys(openRoutes)].filter((r) => r !== 'GET /openapi.json');
  assert.deepEqual(documented.sort(), expected.sort());
});

test('every route that the API takes is in the table, whether it is documented or not', () => {
  const taken = harness()
    .app.routes.filter(({ method }) => method !== 'ALL')
    .map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`);
  const known = [...guardedRoutes, ...Object.keys(openRoutes)];
  assert.deepEqual([...new Set(taken)].sort(), known.sort());
});

test('/openapi.json says of every guarded route its scopes, its 401 and its 403', async () => {
  const documented = await operations();
  for (const route of guardedRoutes) {
    const { security, responses } = documented.get(route)!;
    assert.deepEqual(
      security,
      routeScopes[route].map((scope) => ({ bearer: [scope] })),
      route,
    );
    assert.match(responses['401']?.description ?? '', /\(unauthenticated\)/, route);
    assert.match(responses['403']?.description ?? '', /\(not_allowed\)/, route);
  }
});

test('each scope opens the routes that the table says, and is 403 at every other, naming what is needed', async () => {
  const api = harness();
  for (const route of guardedRoutes) {
    for (const scope of scopes) {
      // one that does not end is opened in the next test
      if (route === 'GET /events' && hasScope([scope], 'read')) continue;
      const { status, body, headers } = await callWith(api, scope, route, pathOf(route));
      const mayUse = routeScopes[route].some((wanted) => hasScope([scope], wanted));
      assert.equal(status === 403, !mayUse, `${route} with ${scope}: ${status}`);
      assert.notEqual(status, 401);
      if (mayUse) continue;
      assert.equal(body['code'], 'not_allowed');
      assert.deepEqual(body['scopes'], routeScopes[route]);
      for (const wanted of routeScopes[route]) assert.ok(String(body['detail']).includes(`"${wanted}"`));
      assert.match(String(headers.get('www-authenticate')), /error="insufficient_scope", scope="\w+"/);
    }
  }
});

test('the events of all runs are for who may read', async () => {
  const { app } = harness();
  for (const [token, expected] of [
    ['read', 200],
    ['audit', 200],
    ['decide+start', 403],
  ] as const) {
    const response = await app.request('/events', { headers: { authorization: `Bearer ${token}` } });
    assert.equal(response.status, expected, token);
    await response.body?.cancel();
  }
});

test('without its scope nobody learns what is there, and nothing is asked of Temporal', async () => {
  const api = harness();
  const { key } = api.fake.ask({ runId: 'r1' });
  for (const route of guardedRoutes) {
    const there = pathOf(route).replace('none.refund.000000000000', key).replace('none', 'r1');
    const known = await callWith(api, '-', route, there);
    const unknown = await callWith(api, '-', route, pathOf(route));
    assert.deepEqual([known.status, unknown.status], [403, 403], route);
    assert.equal(known.body['detail'], unknown.body['detail']);
    assert.match(String(known.body['detail']), /credentials of ann have none/);
  }
  assert.ok(Object.values(api.fake.control.calls).every((count) => count === 0));
  assert.equal(api.fake.must('r1').signals.length, 0);
});

test('admin has every scope, audit only reads, and the others are themselves', () => {
  const held = (scope: Scope) => scopes.filter((wanted) => hasScope([scope], wanted));
  assert.deepEqual(Object.fromEntries(scopes.map((scope) => [scope, held(scope)])), {
    start: ['start'],
    read: ['read'],
    decide: ['decide'],
    admin: ['start', 'read', 'decide', 'admin', 'audit'],
    audit: ['read', 'audit'],
  });
  assert.ok(!hasScope(defaultScopes, 'admin') && !hasScope(defaultScopes, 'audit'));
});

test('a token from before there were scopes may do what it could, and neither see nor do everything', async () => {
  const record = (more: Partial<TokenRecord>): TokenRecord => ({
    ...{ id: 'old', name: 'Old', roles: ['admin'], kind: 'service', sha256: hashToken('csn_old') },
    ...{ createdAt: '2026-01-01T00:00:00Z', ...more },
  });
  const principal = (more: Partial<TokenRecord> = {}) =>
    createAuthenticate({ tokens: () => [record(more)] })('csn_old');
  // nothing of the record but who it is: a principal is logged and handed on
  assert.deepEqual(await principal(), {
    ...{ id: 'old', name: 'Old', roles: ['admin'], kind: 'service' },
    scopes: ['start', 'read', 'decide'],
  });
  assert.deepEqual((await principal({ scopes: [] }))?.scopes, []);
  assert.deepEqual((await principal({ scopes: ['audit'] }))?.scopes, ['audit']);
});
