// POST /approvals: the API freezes what is asked, before any wait; asked once per Idempotency-Key.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hashPayload } from '../src/core/hash.ts';
import { createApiHarness } from './support/api-harness.ts';

const call = { tool: 'refund', arguments: { order: 'ord-1', amount: '40.00' } };
const frozen = { ...call.arguments, currency: 'EUR' };
const { hash } = hashPayload({ tool: 'refund', arguments: frozen });

test('an approval that is asked for is 201 with its Location, frozen and hashed with the tool’s defaults', async () => {
  const { call: http, fake } = createApiHarness({ baseUrl: 'https://approvals.example.org' });
  const body = { ...call, title: 'Refund ord-1', reasoning: 'arrived broken', policy: { ttl: '2h' } };
  const asked = await http('POST', '/approvals', { body });
  assert.equal(asked.status, 201);
  const key = String(asked.body['key']);
  assert.equal(asked.headers.get('location'), `https://approvals.example.org/approvals/${key}`);
  assert.equal(asked.headers.get('etag'), `"${hash}"`);
  const { links, ...view } = asked.body;
  assert.equal((links as { approval: string }).approval, asked.headers.get('location'));
  assert.deepEqual(view, {
    key,
    runId: asked.body['runId'],
    root: asked.body['root'],
    position: 'request',
    step: 'request',
    phase: 'before',
    state: 'pending',
    title: 'Refund ord-1',
    tool: 'refund',
    arguments: frozen,
    reasoning: 'arrived broken',
    payloadHash: hash,
    policy: { ttlMs: 7_200_000 },
    requestedBy: { id: 'ann', name: 'Ann', roles: ['finance'] },
    requestedAt: '2026-11-02T10:00:00.000Z',
    expiresAt: '2026-11-02T12:00:00.000Z',
    timeLeftMs: 7_200_000,
  });
  assert.match(String(view['root']), new RegExp(`^[0-9a-f-]{24}${key.slice(-12)}$`));
  const read = await http('GET', `/approvals/${key}`);
  assert.deepEqual(read.body, asked.body);
  assert.equal(fake.control.calls.startApproval, 1);
});

test('what is asked for is listed, shown in its run and decided like any other approval', async () => {
  const { call: http, approve } = createApiHarness();
  const { body } = await http('POST', '/approvals', { body: call });
  const key = String(body['key']);
  const list = (await http('GET', '/approvals')).body['approvals'] as { key: string }[];
  assert.deepEqual(
    list.map((row) => row.key),
    [key],
  );
  const run = await http('GET', `/runs/${String(body['runId'])}`);
  assert.equal(run.body['status'], 'awaiting_approval');
  assert.deepEqual(run.body['trigger'], { kind: 'api' });
  assert.deepEqual(run.body['startedBy'], { id: 'ann', name: 'Ann', roles: ['finance'] });
  assert.equal((await approve(key, hash, { as: 'bob' })).status, 200);
});

test('the same Idempotency-Key again is 200 and that approval, decided or not; another body is 422', async () => {
  const { call: http, fake, reject } = createApiHarness();
  const headers = { 'idempotency-key': '"k"' };
  const first = await http('POST', '/approvals', { body: call, headers });
  assert.equal(first.status, 201);
  const bare = await http('POST', '/approvals', { body: call, headers: { 'idempotency-key': 'k' } });
  assert.equal(bare.status, 200);
  assert.deepEqual(bare.body, first.body);
  assert.equal(bare.headers.get('location'), first.headers.get('location'));
  await reject(String(first.body['key']));
  const decided = await http('POST', '/approvals', { body: call, headers });
  assert.equal(decided.status, 200);
  assert.equal(decided.body['state'], 'rejected');
  for (const other of [
    { title: 'x' },
    { tool: 'other' },
    { arguments: { order: 'ord-2', amount: '1.00' } },
  ]) {
    const refused = await http('POST', '/approvals', { body: { ...call, ...other }, headers });
    assert.equal(refused.status, other.tool === undefined ? 422 : 400);
  }
  const run = await http('POST', '/runs', { body: { spec: 'refund' }, headers });
  assert.equal(run.status, 422, 'a key is for one request, whatever its route');
  const bob = await http('POST', '/approvals', { body: call, headers, as: 'bob' });
  assert.equal(bob.status, 201);
  assert.equal(fake.runs.size, 2);
});

test('while the first request with an Idempotency-Key runs, the second is 409; a lost answer is 503, then 200', async () => {
  const { call: http, fake } = createApiHarness();
  let release: () => void = () => assert.fail('nothing waits');
  const reached = new Promise<void>((resolve) => {
    fake.control.startPause = () => {
      resolve();
      return new Promise<void>((go) => (release = go));
    };
  });
  const send = () => http('POST', '/approvals', { body: call, headers: { 'idempotency-key': 'k' } });
  fake.control.loseAnswers = true;
  const first = send();
  await reached;
  const second = await send();
  assert.equal(second.status, 409);
  assert.equal(second.body['code'], 'idempotency_in_flight');
  release();
  assert.equal((await first).status, 503);
  delete fake.control.startPause;
  fake.control.loseAnswers = false;
  assert.equal((await send()).status, 200);
  assert.equal(fake.runs.size, 1);
});

test('what cannot be frozen is refused by name before anything is started', async () => {
  const { call: http, fake } = createApiHarness();
  const deep = JSON.parse(`${'['.repeat(70)}${']'.repeat(70)}`) as unknown;
  for (const [more, status, said] of [
    [{ tool: 'refnud' }, 400, /no tool "refnud"; known: refund/],
    [{ arguments: { order: 'ord-1', amount: 40 } }, 400, /amount: /],
    [{ arguments: undefined }, 400, /"arguments": is required/],
    [{ arguments: deep }, 400, /./],
    [{ policy: { ttl: 'soon' } }, 400, /ttl must be a duration/],
    [{ policy: { ttl: 0 } }, 400, /ttl must be a duration/],
    [{ policy: { quorum: 2 } }, 400, /unknown field "quorum"/],
    [{ by: { id: 'boss' } }, 400, /unknown field "by"/],
    [{ title: 'x'.repeat(5000) }, 413, /the title has 5000 bytes/],
    [{ arguments: { order: 'x'.repeat(262_144), amount: '1.00' } }, 413, /262144/],
    [{ arguments: { order: 'x'.repeat(600_000), amount: '1.00' } }, 413, /524288/],
  ] as const) {
    const answer = await http('POST', '/approvals', { body: { ...call, ...more } });
    assert.equal(answer.status, status, JSON.stringify(more).slice(0, 100));
    assert.match(String(answer.body['detail']), said);
    assert.equal(answer.body['code'], status === 413 ? 'too_large' : 'invalid_request');
  }
  const text = await http('POST', '/approvals', { body: 'x', headers: { 'content-type': 'text/plain' } });
  assert.equal(text.status, 415);
  assert.equal((await http('POST', '/approvals', { body: call, as: 'nobody' })).status, 401);
  assert.equal(fake.control.calls.startApproval, 0);
});
