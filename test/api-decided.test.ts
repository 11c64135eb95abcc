// GET /decisions: every case that somebody decided, with who, what and why. And the document of the API.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createApiHarness } from './support/api-harness.ts';

type Row = Record<string, unknown> & { key: string; case: Record<string, unknown> };
const rowsOf = (body: Record<string, unknown>) => body['decisions'] as Row[];

test('decided cases come newest first, each with verdict, reason and case', async () => {
  const { approve, call, clock, fake, reject } = createApiHarness();
  const one = fake.ask({ runId: 'r1', requestedBy: { id: 'starter' } });
  const two = fake.ask({ runId: 'r2' });
  fake.ask({ runId: 'r3' });
  const four = fake.ask({ runId: 'r4' });
  fake.expire(four.key);
  const rejected = await reject(two.key, { body: { reason: 'Betrag falsch' }, as: 'bob' });
  clock.now += 1000;
  await approve(one.key, one.hash);
  const { status, body } = await call('GET', '/decisions');
  assert.equal(status, 200);
  assert.deepEqual(
    rowsOf(body).map(({ key, verdict }) => [key, verdict]),
    [
      [one.key, 'approved'],
      [two.key, 'rejected'],
    ],
    'neither a pending case nor one that nobody decided',
  );
  const [, row] = rowsOf(body);
  assert.deepEqual(row, {
    key: two.key,
    decisionId: rejected.body['decisionId'],
    verdict: 'rejected',
    decision: 'reject',
    reason: 'Betrag falsch',
    by: { id: 'bob', name: 'Bob', roles: ['finance'], verified: true },
    via: 'api',
    at: '2026-11-02T10:00:00.000Z',
    case: {
      runId: 'r2',
      root: two.root,
      position: 'refund',
      step: 'refund',
      phase: 'before',
      title: 'refund at refund',
      tool: 'refund',
      arguments: { order: 'ord-1001', amount: '40.00' },
      payloadHash: two.hash,
      policy: { ttlMs: 3_600_000 },
      requestedAt: '2026-11-02T10:00:00.000Z',
      expiresAt: '2026-11-02T11:00:00.000Z',
      spec: 'refund',
      links: {
        run: '/runs/r2',
        events: '/runs/r2/events',
        approval: `/approvals/${two.key}`,
        approve: `/approvals/${two.key}/approve`,
        reject: `/approvals/${two.key}/reject`,
        edit: `/approvals/${two.key}/edit`,
        respond: `/approvals/${two.key}/respond`,
        amend: `/approvals/${two.key}/amend`,
        withdraw: `/approvals/${two.key}/withdraw`,
        comment: `/approvals/${two.key}/comment`,
      },
    },
  });
  assert.deepEqual(rowsOf(body)[0]?.case['requestedBy'], { id: 'starter' });
  assert.equal(fake.control.calls.readTrail, 3, 'no trail is read in which nothing is settled');
});

test('an edit has the payload that ran and the one that was asked', async () => {
  const { call, fake } = createApiHarness();
  const { key, hash } = fake.ask({ runId: 'r1' });
  const body = { payloadHash: hash, arguments: { order: 'ord-1001', amount: '4.00' } };
  await call('POST', `/approvals/${key}/edit`, { body });
  const [row] = rowsOf((await call('GET', '/decisions')).body);
  assert.equal(row?.['decision'], 'edit');
  assert.deepEqual(row?.case['arguments'], body.arguments);
  assert.deepEqual(row?.case['earlier'], [
    { arguments: { order: 'ord-1001', amount: '40.00' }, payloadHash: hash },
  ]);
});

test('decided cases come by pages, as lines for who asks so, and filtered by spec', async () => {
  const { call, fake, reject } = createApiHarness({ baseUrl: 'https://a.example.org' });
  const keys: string[] = [];
  for (let n = 1; n <= 5; n += 1) {
    if (n === 5) fake.addRun('r5', { spec: 'other/näme' });
    const { key } = fake.ask({ runId: `r${n}` });
    keys.unshift(key);
    await reject(key);
  }
  const headers = { accept: 'application/jsonl' };
  const first = await call('GET', '/decisions?limit=3', { headers });
  assert.equal(first.headers.get('content-type'), 'application/jsonl');
  const next = /^<https:\/\/a\.example\.org(\/[^>]+)>; rel="next"$/.exec(
    first.headers.get('link') ?? '',
  )?.[1];
  const second = await call('GET', String(next), { headers });
  assert.equal(second.headers.get('link'), null);
  const lines = [first, second].flatMap(({ text }) => text.split('\n').filter((line) => line !== ''));
  assert.deepEqual(lines.map((line) => (JSON.parse(line) as Row).key).sort(), keys.toSorted());
  const json = await call('GET', '/decisions?limit=3');
  assert.equal(rowsOf(json.body).length, 3);
  const rest = await call('GET', `/decisions?limit=3&cursor=${String(json.body['cursor'])}`);
  assert.equal(rowsOf(rest.body).length, 2);
  const spec = encodeURIComponent('other/näme');
  assert.deepEqual(
    rowsOf((await call('GET', `/decisions?spec=${spec}`)).body).map(({ key }) => key),
    [keys[0]],
  );
  for (const query of [
    'limit=0',
    'since=today',
    'verdict=approved',
    `cursor=${String(json.body['cursor'])}`,
  ]) {
    const filter = query.startsWith('cursor') ? '&spec=x' : '';
    assert.equal((await call('GET', `/decisions?${query}${filter}`)).status, 400, query);
  }
});

test('/openapi.json describes every route, without credentials', async () => {
  const { app, call } = createApiHarness();
  const { status, body } = await call('GET', '/openapi.json', { as: 'nobody' });
  assert.equal(status, 200);
  assert.equal(body['openapi'], '3.1.0');
  const paths = body['paths'] as Record<string, Record<string, { responses: Record<string, unknown> }>>;
  const documented = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  const served = app.routes
    .filter(({ method, path }) => method !== 'ALL' && path !== '/openapi.json')
    .map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`);
  assert.deepEqual(documented.sort(), [...new Set(served)].sort());
  const edit = paths['/approvals/{key}/edit']?.['post'];
  assert.deepEqual(Object.keys(edit?.responses ?? {}), [
    ...['200', '202', '400', '401', '403', '404', '409', '412', '413', '415', '422', '428', '503'],
  ]);
});
