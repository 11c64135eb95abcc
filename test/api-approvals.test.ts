// Approvals over HTTP: listed from memos, shown from the trail, all of it while every worker is down.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createApiHarness } from './support/api-harness.ts';

type Row = Record<string, unknown> & { key: string };
const rowsOf = (body: Record<string, unknown>) => body['approvals'] as Row[];

test('an approval shows the case, its hash as ETag, and the time that is left', async () => {
  const { call, fake, clock } = createApiHarness();
  fake.control.workers = 'down';
  const { key, hash, root } = fake.ask({
    runId: 'r1',
    ttlMs: 60_000,
    arguments: { order: 'ord-1', amount: '40.00' },
  });
  clock.now += 20_000;
  const { status, body, headers } = await call('GET', `/approvals/${key}`);
  assert.equal(status, 200);
  assert.equal(headers.get('etag'), `"${hash}"`);
  assert.deepEqual(body, {
    key,
    runId: 'r1',
    root,
    position: 'refund',
    step: 'refund',
    phase: 'before',
    state: 'pending',
    title: 'refund at refund',
    tool: 'refund',
    arguments: { order: 'ord-1', amount: '40.00' },
    payloadHash: hash,
    policy: { ttlMs: 60_000 },
    requestedAt: '2026-11-02T10:00:00.000Z',
    expiresAt: '2026-11-02T10:01:00.000Z',
    timeLeftMs: 40_000,
    spec: 'refund',
    links: {
      run: '/runs/r1',
      events: '/runs/r1/events',
      approval: `/approvals/${key}`,
      approve: `/approvals/${key}/approve`,
      reject: `/approvals/${key}/reject`,
      edit: `/approvals/${key}/edit`,
      respond: `/approvals/${key}/respond`,
      amend: `/approvals/${key}/amend`,
      withdraw: `/approvals/${key}/withdraw`,
      comment: `/approvals/${key}/comment`,
    },
  });
  assert.equal(fake.control.calls.queryReceipts, 0);
});

test('a passed deadline that no worker has seen yet leaves it pending with no time left', async () => {
  const { call, fake, clock } = createApiHarness();
  fake.control.workers = 'down';
  const { key } = fake.ask({ runId: 'r1', ttlMs: 1000 });
  clock.now += 5000;
  const { status, body } = await call('GET', `/approvals/${key}`);
  assert.equal(status, 200);
  assert.equal(body['state'], 'pending');
  assert.equal(body['timeLeftMs'], 0);
});

test('after the end it shows who, when, what and why; an expired one is 200', async () => {
  const { call, fake, reject } = createApiHarness();
  const one = fake.ask({ runId: 'r1' });
  const reason = 'Nein – Betrag falsch: 1 000 € ≠ 100 €\n\u202eabc';
  const rejected = await reject(one.key, {
    body: { reason },
    headers: { 'user-agent': 'countersign-cli/0.1' },
  });
  assert.equal(rejected.status, 200);
  const { body } = await call('GET', `/approvals/${one.key}`);
  assert.equal(body['state'], 'rejected');
  assert.equal(body['timeLeftMs'], undefined);
  assert.deepEqual(body['outcome'], {
    at: '2026-11-02T10:00:00.000Z',
    by: { id: 'ann', name: 'Ann', roles: ['finance'], verified: true },
    decisionId: rejected.body['decisionId'],
    decision: 'reject',
    via: 'cli',
    reason,
  });
  const two = fake.ask({ runId: 'r2' });
  fake.expire(two.key);
  const expired = await call('GET', `/approvals/${two.key}`);
  assert.equal(expired.status, 200);
  assert.equal(expired.body['state'], 'expired');
  assert.deepEqual(expired.body['outcome'], { at: '2026-11-02T10:00:00.000Z' });
});

test('an approval whose run ended without an answer is cancelled, never pending', async () => {
  const { call, fake } = createApiHarness();
  const { key } = fake.ask({ runId: 'r1' });
  fake.close('r1', 'terminated');
  assert.equal((await call('GET', `/approvals/${key}`)).body['state'], 'cancelled');
  assert.deepEqual(rowsOf((await call('GET', '/approvals?run=r1')).body), []);
  assert.deepEqual(rowsOf((await call('GET', '/approvals')).body), []);
});

test('an approval that the memo forgot is still shown from the trail', async () => {
  const { call, fake, approve } = createApiHarness();
  const { key, hash } = fake.ask({ runId: 'r1' });
  await approve(key, hash);
  fake.forgetInMemo(key);
  assert.equal((await call('GET', `/approvals/${key}`)).body['state'], 'approved');
});

test('a key that is unknown, changed, of an earlier chain or of a deleted run is 404 with the same text', async () => {
  const { call, fake } = createApiHarness();
  const { key } = fake.ask({ runId: 'r1' });
  const other = fake.ask({ runId: 'r2' }).key;
  const gone = fake.ask({ runId: 'r3' }).key;
  fake.forget('r3');
  const earlier = fake.ask({ runId: 'r4' }).key;
  fake.forget('r4');
  fake.ask({ runId: 'r4' });
  const suffix = (text: string) => text.slice(-12);
  const keys = ['nonsense', key.replace('r1', 'r9'), key.replace(suffix(key), suffix(other)), gone, earlier];
  for (const missing of keys) {
    const answer = await call('GET', `/approvals/${missing}`);
    assert.equal(answer.status, 404, missing);
    assert.equal(answer.body['code'], 'approval_not_found');
    assert.equal(
      answer.body['detail'],
      `No pending approval ${missing}: it was already resolved, or it expired`,
    );
  }
  assert.equal((await call('GET', `/approvals/${key}`)).status, 200);
});

test('another position of an open run is not open yet, of a closed run not found', async () => {
  const { call, fake } = createApiHarness();
  const { key } = fake.ask({ runId: 'r1', position: 'refund' });
  const next = key.replace('.refund.', '.notify.');
  const early = await call('GET', `/approvals/${next}`);
  assert.equal(early.status, 409);
  assert.equal(early.body['code'], 'not_open');
  assert.equal(early.headers.get('retry-after'), '2');
  fake.close('r1', 'failed');
  assert.equal((await call('GET', `/approvals/${next}`)).status, 404);
});

test('pending approvals are listed newest run first, by pages, from memos alone', async () => {
  const { call, fake } = createApiHarness();
  fake.control.workers = 'down';
  const keys: string[] = [];
  for (let n = 1; n <= 25; n += 1) keys.unshift(fake.ask({ runId: `r${n}` }).key);
  const first = await call('GET', '/approvals');
  const second = await call('GET', `/approvals?cursor=${String(first.body['cursor'])}`);
  assert.deepEqual(
    [...rowsOf(first.body), ...rowsOf(second.body)].map(({ key }) => key),
    keys,
  );
  assert.equal(second.body['cursor'], undefined);
  assert.equal(fake.control.calls.readTrail, 0);
  const [row] = rowsOf(first.body);
  assert.equal(row?.['state'], 'pending');
  assert.equal(row?.['timeLeftMs'], 3_600_000);
  assert.equal(row?.['runId'], 'r25');
});

test('200 pending gates of one run are all listed', async () => {
  const { call, fake } = createApiHarness();
  for (let n = 0; n < 200; n += 1) fake.ask({ runId: 'r1', position: `pay/item-${n}` });
  assert.equal(rowsOf((await call('GET', '/approvals')).body).length, 200);
});

test('approvals are filtered by state, tool, spec and run', async () => {
  const { call, fake, approve } = createApiHarness();
  const refund = fake.ask({ runId: 'r1' });
  fake.ask({ runId: 'r1', position: 'mail', tool: 'mail' });
  fake.addRun('r2', { spec: 'payout' });
  const payout = fake.ask({ runId: 'r2', tool: 'pay' });
  const done = fake.ask({ runId: 'r3' });
  await approve(done.key, done.hash);
  const keys = async (query: string) =>
    rowsOf((await call('GET', `/approvals?${query}`)).body).map(({ key }) => key);
  assert.deepEqual(await keys('tool=refund'), [refund.key]);
  assert.deepEqual(await keys('spec=payout'), [payout.key]);
  assert.equal((await keys('run=r1')).length, 2);
  assert.deepEqual(await keys('run=r1&tool=refund'), [refund.key]);
  assert.deepEqual(await keys('run=none'), []);
  assert.deepEqual(await keys('state=approved'), [done.key]);
  const [row] = rowsOf((await call('GET', '/approvals?state=approved')).body);
  assert.deepEqual((row?.['outcome'] as Row | undefined)?.['by'], { id: 'ann' });
  assert.equal((await call('GET', '/approvals?state=open')).status, 400);
});

test('an approval that this process has just answered as decided is not listed as pending, though Temporal lags', async () => {
  const { call, approve, fake, clock } = createApiHarness();
  const { key, hash, run } = fake.ask({ runId: 'r1' });
  const gate = run.gates.get(key);
  assert.ok(gate !== undefined);
  const before = { ...gate };
  assert.equal((await approve(key, hash)).status, 200);
  // what the index says until it has heard of the verdict
  Object.assign(gate, before);
  const listed = async (one = call) => (await one('GET', '/approvals')).body['approvals'] as unknown[];
  assert.equal((await listed()).length, 0);
  const other = createApiHarness({ client: fake.client, now: () => clock.now });
  assert.equal((await listed(other.call)).length, 1, 'another process knows it when Temporal does');
});

test('an approval has a link for each kind of decision that its gate takes', async () => {
  const { call, fake } = createApiHarness();
  const kindsOf = async (key: string) => {
    const { links } = (await call('GET', `/approvals/${key}`)).body as { links: Record<string, string> };
    return Object.keys(links).filter((name) => links[name] === `/approvals/${key}/${name}`);
  };
  const before = fake.ask({ runId: 'r1' });
  assert.deepEqual(await kindsOf(before.key), [
    ...['approve', 'reject', 'edit', 'respond', 'amend', 'withdraw', 'comment'],
  ]);
  const doubt = fake.ask({ runId: 'r2', phase: 'in-doubt' });
  assert.deepEqual(await kindsOf(doubt.key), ['approve', 'reject', 'respond', 'comment']);
});
