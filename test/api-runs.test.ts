// Runs over HTTP: started once per id or Idempotency-Key, listed, read, and any run id survives the URL.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createApiHarness, serveApp } from './support/api-harness.ts';

const body = { spec: 'refund', input: { order: 'ord-1001' } };

test('a started run is 201 with its Location, and is what was asked for', async () => {
  const { call, fake } = createApiHarness({ baseUrl: 'https://approvals.example.org' });
  const answer = await call('POST', '/runs', { body: { ...body, id: 'refund 1/1' } });
  assert.equal(answer.status, 201);
  assert.equal(answer.headers.get('location'), 'https://approvals.example.org/runs/refund%201%2F1');
  assert.equal(answer.body['id'], 'refund 1/1');
  assert.equal(answer.body['status'], 'running');
  assert.equal(answer.body['spec'], 'refund');
  assert.match(String(answer.body['specHash']), /^sha256:/);
  const [fact] = fake.must('refund 1/1').facts;
  assert.ok(fact?.type === 'run_started');
  assert.deepEqual(fact.input, body.input);
  assert.deepEqual(fact.trigger, { kind: 'api' });
  assert.deepEqual(fact.startedBy, { id: 'ann', name: 'Ann', roles: ['finance'] });
});

test('without id and Idempotency-Key every start is a run of its own; without input it is {}', async () => {
  const { call, fake } = createApiHarness();
  const first = await call('POST', '/runs', { body: { spec: 'refund' } });
  const second = await call('POST', '/runs', { body: { spec: 'refund' } });
  assert.equal(second.status, 201);
  assert.notEqual(first.body['id'], second.body['id']);
  const [fact] = fake.must(String(first.body['id'])).facts;
  assert.ok(fact?.type === 'run_started');
  assert.deepEqual(fact.input, {});
});

test('the same id or Idempotency-Key again is 200 and that run, open or closed; another body is 422', async () => {
  for (const again of [{ id: 'r1' }, { headers: { 'idempotency-key': '"k-1"' } }]) {
    const { call, fake } = createApiHarness();
    const { id, headers = {} } = again as { id?: string; headers?: Record<string, string> };
    const send = (more: object = {}) =>
      call('POST', '/runs', { headers, body: { ...body, ...(id === undefined ? {} : { id }), ...more } });
    const first = await send();
    assert.equal(first.status, 201);
    const second = await send();
    assert.equal(second.status, 200);
    assert.equal(second.body['id'], first.body['id']);
    assert.equal(second.headers.get('location'), first.headers.get('location'));
    const reordered = await call('POST', '/runs', {
      headers,
      body: `{ "input": {"order": "ord\\u002d1001"}, "spec": "refund"${id === undefined ? '' : ', "id": "r1"'} }`,
    });
    assert.equal(reordered.status, 200, 'the same request, written in another way');
    fake.close(String(first.body['id']), 'completed');
    const closed = await send();
    assert.equal(closed.status, 200);
    assert.equal(closed.body['status'], 'completed');
    for (const other of [
      { input: { order: 'ord-2' } },
      { spec: { version: 1, name: 'refund', steps: [] } },
    ]) {
      const refused = await send(other);
      assert.equal(refused.status, 422);
      assert.equal(refused.body['code'], 'idempotency_key_reused');
    }
    assert.equal(fake.runs.size, 1);
  }
});

test('an Idempotency-Key is its sender’s own, and quoted or bare it is the same', async () => {
  const { call, fake } = createApiHarness();
  const send = (as: 'ann' | 'bob', key: string) =>
    call('POST', '/runs', { as, body, headers: { 'idempotency-key': key } });
  const ann = await send('ann', '"k-1"');
  assert.match(String(ann.body['id']), /^run-[0-9a-f]{26}$/);
  assert.equal((await send('ann', 'k-1')).body['id'], ann.body['id']);
  assert.notEqual((await send('bob', 'k-1')).body['id'], ann.body['id']);
  assert.equal(fake.runs.size, 2);
});

test('a malformed Idempotency-Key is 400', async () => {
  const { call } = createApiHarness();
  for (const key of ['""', '"open', 'two words', 'a, b', `"${'x'.repeat(256)}"`, 'é']) {
    const answer = await call('POST', '/runs', { body, headers: { 'idempotency-key': key } });
    assert.equal(answer.status, 400, key);
    assert.match(String(answer.body['detail']), /^Idempotency-Key/);
  }
  const longest = await call('POST', '/runs', { body, headers: { 'idempotency-key': 'x'.repeat(255) } });
  assert.equal(longest.status, 201);
});

test('while the first request with an Idempotency-Key runs, the second is 409', async () => {
  const { call, fake } = createApiHarness();
  let release: () => void = () => assert.fail('nothing waits');
  const reached = new Promise<void>((resolve) => {
    fake.control.startPause = () => {
      resolve();
      return new Promise<void>((go) => (release = go));
    };
  });
  const send = () => call('POST', '/runs', { body, headers: { 'idempotency-key': 'k' } });
  const first = send();
  await reached;
  const second = await send();
  assert.equal(second.status, 409);
  assert.equal(second.body['code'], 'idempotency_in_flight');
  assert.equal(second.headers.get('retry-after'), '1');
  release();
  assert.equal((await first).status, 201);
  delete fake.control.startPause;
  assert.equal((await send()).status, 200);
});

test('an id of another start is never given out as one’s own', async () => {
  const { call, fake } = createApiHarness();
  fake.addRun('by-temporal-client');
  const answer = await call('POST', '/runs', { body: { ...body, id: 'by-temporal-client' } });
  assert.equal(answer.status, 422);
});

test('a spec that is unknown, bad, inline and wrong, and an input that does not fit are refused by name', async () => {
  const { call, fake } = createApiHarness();
  for (const [request, said] of [
    [{ spec: 'refnud' }, /there is no spec "refnud"; there are: refund/],
    [{ spec: 'broken' }, /spec "broken" went bad and is not started: broken.yaml:3:5/],
    [{ spec: { version: 1 } }, /a spec has a name/],
    [{ spec: 'refund', input: { bad: 1 } }, /input does not fit spec "refund": \/bad: is not taken/],
    [{ spec: 'refund', id: '' }, /id: a workflow id is not empty/],
    [{ spec: 'refund', id: 'é'.repeat(128) }, /256 bytes/],
    [{ spec: 'refund', id: '..' }, /cannot be part of a URL path/],
    [{ spec: 'refund', id: 'a\nb' }, /control character/],
    [{ spec: 'refund', id: 'hook-shop-1' }, /^id: "hook-shop-1" is reserved: .* begin with "hook-"/],
    [{ spec: 'refund', id: `run-${'0f'.repeat(13)}` }, /is reserved: "run-" and 26 hex digits/],
  ] as const) {
    const answer = await call('POST', '/runs', { body: request });
    assert.equal(answer.status, 400, JSON.stringify(request));
    assert.equal(answer.body['code'], 'invalid_request');
    assert.match(String(answer.body['detail']), said);
  }
  assert.equal(fake.control.calls.startRun, 0);
});

test('a repeated start is answered although its spec went bad since', async () => {
  let bad = false;
  const spec = { version: 1 as const, name: 'refund', steps: [] };
  const { call } = createApiHarness({
    specs: {
      get: () => ({ spec, hash: `sha256:${'b'.repeat(64)}` }),
      names: () => ['refund'],
      problemOf: () => (bad ? 'refund.yaml:1:1 error' : undefined),
    },
  });
  assert.equal((await call('POST', '/runs', { body: { ...body, id: 'r1' } })).status, 201);
  bad = true;
  assert.equal((await call('POST', '/runs', { body: { ...body, id: 'r1' } })).status, 200);
  assert.equal((await call('POST', '/runs', { body: { ...body, id: 'r2' } })).status, 400);
});

test('an input over the payload limit is 413', async () => {
  const { call } = createApiHarness();
  const answer = await call('POST', '/runs', { body: { spec: 'refund', input: 'x'.repeat(256 * 1024) } });
  assert.equal(answer.status, 413);
  assert.match(String(answer.body['detail']), /262144/);
});

test('an inline spec is started without a spec hash to compare with', async () => {
  const { call, fake } = createApiHarness();
  const spec = { version: 1, name: 'inline', steps: [] };
  const answer = await call('POST', '/runs', { body: { spec, id: 'r1' } });
  assert.equal(answer.status, 201);
  assert.equal(answer.body['specHash'], undefined);
  const [fact] = fake.must('r1').facts;
  assert.ok(fact?.type === 'run_started' && fact.spec === undefined);
});

test('a run shows its status, steps and pending approvals', async () => {
  const { call, fake, approve } = createApiHarness();
  const { key, hash } = fake.ask({ runId: 'r1', ttlMs: 60_000 });
  const waiting = await call('GET', '/runs/r1');
  assert.equal(waiting.status, 200);
  assert.equal(waiting.body['status'], 'awaiting_approval');
  assert.deepEqual(waiting.body['pendingApprovals'], [
    {
      key,
      position: 'refund',
      step: 'refund',
      phase: 'before',
      tool: 'refund',
      title: 'refund at refund',
      payloadHash: hash,
      requestedAt: '2026-11-02T10:00:00.000Z',
      expiresAt: '2026-11-02T10:01:00.000Z',
    },
  ]);
  assert.deepEqual(waiting.body['steps'], [
    { position: 'refund', status: 'awaiting_approval', startedAt: '2026-11-02T10:00:00.000Z', approval: key },
  ]);
  assert.equal((await approve(key, hash)).status, 200);
  const running = await call('GET', '/runs/r1');
  assert.equal(running.body['status'], 'running');
  assert.deepEqual(running.body['pendingApprovals'], []);
  fake.close('r1', 'completed');
  assert.equal((await call('GET', '/runs/r1')).body['status'], 'completed');
});

test('every way a run ends has its status', async () => {
  const { call, fake } = createApiHarness();
  const expected = {
    failed: 'failed',
    cancelled: 'cancelled',
    terminated: 'failed',
    timed_out: 'failed',
  } as const;
  for (const [closeStatus, status] of Object.entries(expected)) {
    fake.addRun(closeStatus);
    fake.close(closeStatus, closeStatus as keyof typeof expected);
    assert.equal((await call('GET', `/runs/${closeStatus}`)).body['status'], status);
  }
  const { key } = fake.ask({ runId: 'rejected' });
  fake.expire(key);
  fake.close('rejected', 'completed');
  assert.equal((await call('GET', '/runs/rejected')).body['status'], 'rejected');
});

test('runs are listed newest first, by pages, with filters that are checked', async () => {
  const { call, fake } = createApiHarness();
  for (let n = 1; n <= 45; n += 1) fake.addRun(`r${n}`, { spec: n % 2 === 0 ? 'even' : 'odd' });
  const ids: string[] = [];
  let cursor: string | undefined;
  let pages = 0;
  do {
    const page = await call('GET', `/runs${cursor === undefined ? '' : `?cursor=${cursor}`}`);
    assert.equal(page.status, 200);
    const runs = page.body['runs'] as { id: string }[];
    assert.ok(runs.length <= 20);
    ids.push(...runs.map(({ id }) => id));
    cursor = page.body['cursor'] as string | undefined;
    pages += 1;
  } while (cursor !== undefined);
  assert.equal(pages, 3);
  assert.deepEqual(
    ids,
    Array.from({ length: 45 }, (_, index) => `r${45 - index}`),
  );
  const first = await call('GET', '/runs');
  const token = String(first.body['cursor']);
  for (const query of [`cursor=${token}0`, `cursor=${token.slice(1)}`, `cursor=${token}&spec=even`]) {
    const answer = await call('GET', `/runs?${query}`);
    assert.equal(answer.status, 400, query);
    assert.match(String(answer.body['detail']), /cursor/);
  }
  const even = await call('GET', '/runs?spec=even&limit=2');
  assert.deepEqual(
    (even.body['runs'] as { id: string }[]).map(({ id }) => id),
    ['r44', 'r42'],
  );
  for (const query of [
    'limit=0',
    'limit=21',
    'limit=x',
    'status=done',
    'since=yesterday',
    'cursor=%00',
    'colour=red',
  ]) {
    assert.equal((await call('GET', `/runs?${query}`)).status, 400, query);
  }
});

test('the trail is JSON, or a fact a line for who asks so', async () => {
  const { call, fake } = createApiHarness();
  fake.ask({ runId: 'r1' });
  const json = await call('GET', '/runs/r1/trail');
  assert.equal(json.body['runId'], 'r1');
  assert.deepEqual(json.body['trail'], JSON.parse(JSON.stringify(fake.must('r1').facts)));
  const lines = await call('GET', '/runs/r1/trail', { headers: { accept: 'application/jsonl' } });
  assert.equal(lines.headers.get('content-type'), 'application/jsonl');
  const facts = lines.text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as unknown);
  assert.deepEqual(facts, json.body['trail']);
  assert.equal((await call('GET', '/runs/none/trail')).body['code'], 'run_not_found');
});

test('any run id survives the URL, through a real HTTP server too', async (t) => {
  const { app, call, fake } = createApiHarness();
  const { url, close } = await serveApp(app);
  t.after(close);
  const ids = [
    'a/b',
    'a%2Fb',
    'a%252Fb',
    '%',
    '%zz',
    '~',
    '.a',
    'a b',
    'a+b',
    'ö 💸',
    '?#&=;',
    'עברית',
    'x'.repeat(255),
  ];
  for (const id of ids) fake.addRun(id);
  for (const id of ids) {
    const path = `/runs/${encodeURIComponent(id)}`;
    assert.equal((await call('GET', path)).body['id'], id);
    assert.equal((await call('GET', `${path}/trail`)).body['runId'], id);
    const response = await fetch(`${url}${path}`, {
      headers: { authorization: 'Bearer token-ann' },
    });
    assert.equal(((await response.json()) as { id: string }).id, id);
  }
  assert.equal((await call('GET', '/runs/a/b')).status, 404);
});
