// What is done to a run by its id: its one pending approval is decided, or the run is cancelled.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createApiHarness } from './support/api-harness.ts';

test('an approval is decided by its key or by its run, with the same answer', async () => {
  const { call, fake } = createApiHarness();
  const one = fake.ask({ runId: 'r1' });
  const byKey = await call('POST', `/runs/${one.key}/approve`, { headers: { 'if-match': `"${one.hash}"` } });
  assert.equal(byKey.status, 200);
  assert.equal(byKey.body['key'], one.key);
  const two = fake.ask({ runId: 'r/2' });
  const byRun = await call('POST', '/runs/r%2F2/reject', { body: { reason: 'no' } });
  assert.equal(byRun.status, 200);
  assert.equal(byRun.body['key'], two.key);
  assert.equal(byRun.body['state'], 'rejected');
});

test('an approval by run id needs the hash too, and is 412 on another one', async () => {
  const { call, fake } = createApiHarness();
  const { hash } = fake.ask({ runId: 'r1' });
  assert.equal((await call('POST', '/runs/r1/approve', { body: {} })).status, 428);
  const stale = await call('POST', '/runs/r1/approve', { body: { payloadHash: `sha256:${'0'.repeat(64)}` } });
  assert.equal(stale.status, 412);
  assert.equal((await call('POST', '/runs/r1/approve', { body: { payloadHash: hash } })).status, 200);
});

test('with two approvals pending a run id is 409 with their keys, and decides nothing', async () => {
  const { call, fake } = createApiHarness();
  const one = fake.ask({ runId: 'r1', position: 'a' });
  const two = fake.ask({ runId: 'r1', position: 'b' });
  const answer = await call('POST', '/runs/r1/reject');
  assert.equal(answer.status, 409);
  assert.equal(answer.body['code'], 'ambiguous_approval');
  assert.deepEqual(answer.body['keys'], [one.key, two.key]);
  assert.equal(fake.must('r1').signals.length, 0);
  assert.equal((await call('POST', `/runs/${one.key}/reject`)).status, 200);
  assert.equal((await call('POST', '/runs/r1/reject')).body['key'], two.key, 'only one is left');
});

test('a rejection by run id that is repeated with its Idempotency-Key never meets the next approval', async () => {
  const { call, fake } = createApiHarness();
  const first = fake.ask({ runId: 'r1', position: 'a' });
  const headers = { 'idempotency-key': 'k' };
  const rejected = await call('POST', '/runs/r1/reject', { headers });
  assert.equal(rejected.body['key'], first.key);
  const next = fake.ask({ runId: 'r1', position: 'b' });
  const again = await call('POST', '/runs/r1/reject', { headers });
  assert.deepEqual(again.body, rejected.body);
  assert.equal((await call('GET', `/approvals/${next.key}`)).body['state'], 'pending');
});

test('a run without a pending approval says who decided, a run without any 404', async () => {
  const { call, fake } = createApiHarness();
  fake.ask({ runId: 'r1' });
  const rejected = await call('POST', '/runs/r1/reject');
  assert.deepEqual((await call('POST', '/runs/r1/reject')).body, rejected.body);
  const late = await call('POST', '/runs/r1/reject', { as: 'bob' });
  assert.equal(late.status, 409);
  assert.equal(late.body['code'], 'already_resolved');
  fake.addRun('r2');
  const none = await call('POST', '/runs/r2/reject');
  assert.equal(none.status, 404);
  assert.equal(none.body['code'], 'approval_not_found');
  const unknown = await call('POST', '/runs/r3/reject');
  assert.equal(unknown.status, 404);
  assert.equal(unknown.body['code'], 'run_not_found');
});

test('a run whose id looks like an approval key is found by its id', async () => {
  const { call, fake } = createApiHarness();
  const runId = 'refund.pay.0123456789ab';
  const { key } = fake.ask({ runId });
  assert.equal((await call('POST', `/runs/${runId}/reject`)).body['key'], key);
});

test('a cancelled run is 202, twice too; its open gates are settled as cancelled', async () => {
  const { call, fake, approve } = createApiHarness();
  const { key, hash } = fake.ask({ runId: 'r1' });
  const answer = await call('POST', '/runs/r1/cancel');
  assert.equal(answer.status, 202);
  assert.equal(answer.body['id'], 'r1');
  assert.equal((await call('GET', '/runs/r1')).body['status'], 'cancelled');
  assert.equal((await call('GET', `/approvals/${key}`)).body['state'], 'cancelled');
  assert.equal((await call('POST', '/runs/r1/cancel', { body: {} })).status, 202);
  const late = await approve(key, hash);
  assert.equal(late.status, 409);
  assert.equal(late.body['state'], 'cancelled');
});

test('a cancellation while every worker is down is 202 each time, and holds', async () => {
  const { call, fake } = createApiHarness();
  fake.ask({ runId: 'r1' });
  fake.control.workers = 'down';
  assert.equal((await call('POST', '/runs/r1/cancel')).status, 202);
  assert.equal((await call('POST', '/runs/r1/cancel')).status, 202);
  assert.equal((await call('GET', '/runs/r1')).body['status'], 'awaiting_approval');
  fake.work();
  assert.equal((await call('GET', '/runs/r1')).body['status'], 'cancelled');
});

test('a run that ended in another way cannot be cancelled, an unknown one is 404, Temporal away 503', async () => {
  const { call, fake } = createApiHarness();
  fake.addRun('r1');
  fake.close('r1', 'completed');
  const ended = await call('POST', '/runs/r1/cancel');
  assert.equal(ended.status, 409);
  assert.equal(ended.body['code'], 'run_closed');
  assert.equal((await call('POST', '/runs/none/cancel')).body['code'], 'run_not_found');
  assert.equal((await call('POST', '/runs/r1/cancel', { body: { reason: 'x' } })).status, 400);
  fake.control.temporal = 'down';
  assert.equal((await call('POST', '/runs/r1/cancel')).status, 503);
});

test('a run in doubt says so, and its question is pending', async () => {
  const { call, fake } = createApiHarness();
  const { key, run } = fake.ask({ runId: 'r1', position: 'refund/in-doubt', phase: 'in-doubt' });
  run.status = 'in_doubt';
  const { body } = await call('GET', '/runs/r1');
  assert.equal(body['status'], 'in_doubt');
  const [pending] = body['pendingApprovals'] as Record<string, unknown>[];
  assert.equal(pending?.['phase'], 'in-doubt');
  assert.equal(pending?.['key'], key);
  const { body: approval } = await call('GET', `/approvals/${key}`);
  assert.equal((approval['doubt'] as { why: string }).why, 'the answer was lost');
});
