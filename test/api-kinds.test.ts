// The decisions beside approve and reject, over HTTP: what each carries, answers and is refused for.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hashPayload } from '../src/core/hash.ts';
import { createApiHarness, type Call } from './support/api-harness.ts';

const edited = { order: 'ord-1001', amount: '4.00' };
const { hash: editedHash } = hashPayload({ tool: 'refund', arguments: edited });
const otherHash = `sha256:${'0'.repeat(64)}`;
const ann = { id: 'ann', name: 'Ann', roles: ['finance'] };

/** A gate that ann asked for, and a way to send to it. */
function askOne(more: Parameters<typeof createApiHarness>[0] = {}) {
  const harness = createApiHarness(more);
  const gate = harness.fake.ask({ runId: 'r1', requestedBy: ann });
  const send = (action: string, body: object, call: Call = {}) =>
    harness.call('POST', `/approvals/${gate.key}/${action}`, { ...call, body });
  return { ...harness, ...gate, send };
}

test('an edit approves with other arguments: hashed anew, both payloads shown', async () => {
  const { call, fake, hash, key, send } = askOne();
  const answer = await send(
    'edit',
    { payloadHash: hash, arguments: edited, reason: 'too much' },
    { as: 'bob' },
  );
  assert.equal(answer.status, 200);
  assert.equal(answer.body['state'], 'approved');
  assert.equal(answer.body['payloadHash'], editedHash);
  const [signal] = fake.must('r1').signals;
  assert.deepEqual(signal?.arguments, edited);
  assert.equal(signal?.decision, 'edit');
  assert.equal(signal?.payloadHash, hash);
  const { body, headers } = await call('GET', `/approvals/${key}`);
  assert.equal(headers.get('etag'), `"${editedHash}"`);
  assert.deepEqual(body['arguments'], edited);
  assert.deepEqual(body['earlier'], [
    { arguments: { order: 'ord-1001', amount: '40.00' }, payloadHash: hash },
  ]);
  const outcome = body['outcome'] as Record<string, unknown>;
  assert.equal(outcome['decision'], 'edit');
  assert.equal(outcome['reason'], 'too much');
});

test('an edit sent again is answered as the first; an approval by the editor of what was there before is not', async () => {
  const { approve, fake, hash, send } = askOne();
  const body = { payloadHash: hash, arguments: edited };
  const first = await send('edit', body);
  const again = await send('edit', { ...body, arguments: { amount: '4.00', order: 'ord-1001' } });
  assert.equal(again.status, 200, 'equal arguments, written in another order');
  assert.deepEqual(again.body, first.body);
  const fresh = await send('edit', body, { headers: { 'idempotency-key': 'fresh' } });
  assert.deepEqual(fresh.body, first.body);
  const approved = await approve('r1', hash);
  assert.equal(approved.status, 404);
  for (const attempt of [
    await send('approve', { payloadHash: hash }),
    await send('edit', { ...body, arguments: { ...edited, amount: '5.00' } }),
  ]) {
    assert.equal(attempt.status, 409);
    assert.equal(attempt.body['code'], 'already_resolved');
  }
  assert.equal(fake.must('r1').signals.length, 1);
});

test('an edit and an approval of one person at the same time: only the winner is accepted', async () => {
  const { fake, hash, send } = askOne();
  const answers = await Promise.all([
    send('edit', { payloadHash: hash, arguments: edited }),
    send('approve', { payloadHash: hash }),
  ]);
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 409],
  );
  assert.equal(fake.must('r1').signals.length, 2, 'both reached the run');
});

test('edited arguments that break the schema are 422, and the gate stays pending', async () => {
  const { hash, send } = askOne();
  const answer = await send('edit', { payloadHash: hash, arguments: { bad: 1 } });
  assert.equal(answer.status, 422);
  assert.equal(answer.body['code'], 'invalid_edit');
  assert.equal((await send('edit', { payloadHash: hash, arguments: edited })).status, 200);
});

test('an amendment by the requester answers the new hash, and makes every earlier sight stale (P3)', async () => {
  const { approve, call, hash, key, send } = askOne();
  const bob = await send('amend', { arguments: edited }, { as: 'bob' });
  assert.equal(bob.status, 403);
  assert.equal(bob.body['code'], 'not_allowed');
  const amended = await send('amend', { arguments: edited }, { headers: { 'if-match': `"${hash}"` } });
  assert.equal(amended.status, 200);
  assert.equal(amended.body['state'], 'pending');
  assert.equal(amended.body['payloadHash'], editedHash);
  assert.equal(amended.headers.get('etag'), `"${editedHash}"`);
  const stale = await approve(key, hash, { as: 'bob' });
  assert.equal(stale.status, 412);
  assert.equal(stale.body['currentHash'], editedHash);
  const { body, headers } = await call('GET', `/approvals/${key}`);
  assert.equal(headers.get('etag'), `"${editedHash}"`);
  assert.deepEqual(body['arguments'], edited);
  assert.equal((await approve(key, editedHash, { as: 'bob' })).status, 200);
  const again = await send('amend', { arguments: edited }, { headers: { 'if-match': `"${hash}"` } });
  assert.equal(again.status, 200, 'the same person’s same decision again');
  assert.equal(again.body['payloadHash'], editedHash);
  assert.equal(again.body['decisionId'], amended.body['decisionId']);
  assert.equal((await send('amend', { arguments: { ...edited, amount: '6.00' } })).status, 409);
});

test('a respond answers in the place of the tool', async () => {
  const { call, fake, hash, key, send } = askOne();
  const answer = await send('respond', { payloadHash: hash, result: { refund: 'r-9' } });
  assert.equal(answer.status, 200);
  assert.equal(answer.body['state'], 'responded');
  assert.deepEqual(fake.must('r1').signals[0]?.result, { refund: 'r-9' });
  assert.equal((await call('GET', `/approvals/${key}`)).body['state'], 'responded');
  const other = await send('respond', { payloadHash: hash, result: { refund: 'r-10' } });
  assert.equal(other.status, 409);
  const run = await call('GET', '/runs/r1');
  const [step] = run.body['steps'] as Record<string, unknown>[];
  assert.equal(step?.['status'], 'completed');
  assert.deepEqual(step?.['output'], { refund: 'r-9' });
});

test('a withdrawal is the requester’s; it ends the run as cancelled', async () => {
  const { call, fake, key, send } = askOne();
  assert.equal((await send('withdraw', {}, { as: 'bob' })).status, 403);
  const answer = await send('withdraw', { reason: 'no longer needed' });
  assert.equal(answer.status, 200);
  assert.equal(answer.body['state'], 'withdrawn');
  fake.close('r1', 'completed');
  assert.equal((await call('GET', '/runs/r1')).body['status'], 'cancelled');
  const { body } = await call('GET', `/approvals/${key}`);
  assert.equal(body['state'], 'withdrawn');
  assert.equal((body['outcome'] as { reason: string }).reason, 'no longer needed');
  assert.deepEqual((await send('withdraw', { reason: 'no longer needed' })).body, answer.body);
});

test('a comment is recorded and decides nothing; sent again, also after the end, it is one', async () => {
  const { approve, call, clock, fake, hash, key, send } = askOne();
  const comment = { reason: 'I asked the customer' };
  const first = await send('comment', comment, { as: 'bob' });
  assert.equal(first.status, 200);
  assert.equal(first.body['state'], 'pending');
  assert.equal(first.body['verdict'], 'accepted');
  clock.now += 1000;
  assert.deepEqual((await send('comment', comment, { as: 'bob' })).body, first.body);
  assert.equal(fake.must('r1').facts.filter(({ type }) => type === 'approval_commented').length, 1);
  const looked = await call('GET', `/approvals/${key}/decisions/${String(first.body['decisionId'])}`);
  assert.deepEqual(looked.body, first.body);
  await approve(key, hash);
  const late = await send('comment', comment, { as: 'bob' });
  assert.deepEqual(late.body, { ...first.body, state: 'approved' });
  assert.equal((await send('comment', { reason: 'too late' }, { as: 'bob' })).status, 409);
});

test('edit and respond need the hash, and nothing foreign is taken', async () => {
  const { fake, hash, send } = askOne();
  for (const [action, body, status] of [
    ['edit', { arguments: edited }, 428],
    ['respond', { result: 1 }, 428],
    ['edit', { payloadHash: hash }, 400],
    ['respond', { payloadHash: hash }, 400],
    ['amend', {}, 400],
    ['comment', {}, 400],
    ['comment', { reason: '' }, 400],
    ['edit', { payloadHash: hash, arguments: edited, result: 1 }, 400],
    ['respond', { payloadHash: hash, result: 1, arguments: {} }, 400],
    ['withdraw', { arguments: {} }, 400],
    ['comment', { reason: 'x', by: { id: 'boss' } }, 400],
    ['amend', { arguments: edited, via: 'inbox' }, 400],
    ['edit', { payloadHash: otherHash, arguments: edited }, 412],
    ['amend', { payloadHash: otherHash, arguments: edited }, 412],
  ] as const) {
    const answer = await send(action, body);
    assert.equal(answer.status, status, `${action} ${JSON.stringify(body)}`);
  }
  const star = await send('edit', { arguments: edited }, { headers: { 'if-match': '*' } });
  assert.equal(star.status, 428);
  assert.equal(fake.must('r1').signals.length, 2, 'only the stale ones are facts of the run');
  assert.equal((await send('respond', { payloadHash: hash, result: null })).status, 200, 'null is a result');
});

test('a payload may have 256 KiB, a decision without one 16', async () => {
  const { hash, send } = askOne();
  const large = (bytes: number) => ({ text: 'x'.repeat(bytes - 11) });
  const over = await send('respond', { payloadHash: hash, result: large(256 * 1024 + 1) });
  assert.equal(over.status, 413);
  assert.equal(over.body['code'], 'too_large');
  assert.equal((await send('amend', { arguments: { text: 'x'.repeat(600_000) } })).status, 413);
  assert.equal((await send('withdraw', { reason: 'x'.repeat(17_000) })).status, 413);
  assert.equal((await send('respond', { payloadHash: hash, result: large(256 * 1024) })).status, 200);
});

test('a gate takes only what it can: no edit of a question, no amendment in doubt', async () => {
  const { call, fake } = createApiHarness();
  const step = fake.ask({ runId: 'r1', position: 'ask', phase: 'step' });
  const body = { payloadHash: step.hash, arguments: edited };
  assert.equal((await call('POST', `/approvals/${step.key}/edit`, { body })).status, 403);
  const doubt = fake.ask({ runId: 'r2', position: 'refund/in-doubt', phase: 'in-doubt' });
  const amend = { body: { arguments: edited } };
  assert.equal((await call('POST', `/approvals/${doubt.key}/amend`, amend)).status, 403);
  const happened = { body: { payloadHash: doubt.hash, result: { refund: 'r-9' } } };
  assert.equal((await call('POST', `/approvals/${doubt.key}/respond`, happened)).status, 200);
});

test('without a worker every kind is 202, and its Location says the verdict later', async () => {
  const { call, fake, hash, send } = askOne({ receiptBudgetMs: 20 });
  fake.control.workers = 'down';
  const comment = await send('comment', { reason: 'hello' });
  const edit = await send('edit', { payloadHash: hash, arguments: edited });
  assert.deepEqual([comment.status, edit.status], [202, 202]);
  fake.work();
  for (const [answer, state] of [
    [comment, 'approved'],
    [edit, 'approved'],
  ] as const) {
    const later = await call('GET', String(answer.headers.get('location')));
    assert.equal(later.status, 200);
    assert.equal(later.body['state'], state);
  }
});

test('the same Idempotency-Key with other arguments is 422, before and after the verdict', async () => {
  const { hash, send } = askOne();
  const headers = { 'idempotency-key': 'k' };
  const body = { payloadHash: hash, arguments: edited };
  assert.equal((await send('edit', body, { headers })).status, 200);
  const other = await send('edit', { ...body, arguments: { ...edited, amount: '9.00' } }, { headers });
  assert.equal(other.status, 422);
  assert.equal(other.body['code'], 'idempotency_key_reused');
  assert.equal((await send('edit', body, { headers })).status, 200);
});
