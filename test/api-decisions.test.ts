// Decisions over HTTP: one winner, nothing 2xx that is not in history, and every refusal by its code.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createApiHarness } from './support/api-harness.ts';

const otherHash = `sha256:${'0'.repeat(64)}`;

test('an approval on the hash that was seen is accepted, signed and recorded', async () => {
  const { fake, approve } = createApiHarness({ baseUrl: 'http://localhost:1' });
  const { key, hash, root } = fake.ask({ runId: 'r 1' });
  const { status, body } = await approve(key, hash, { body: { reason: 'as agreed' } });
  assert.equal(status, 200);
  const [signal] = fake.must('r 1').signals;
  assert.deepEqual(signal, {
    v: 1,
    key,
    root,
    decision: 'approve',
    payloadHash: hash,
    decisionId: body['decisionId'],
    by: { id: 'ann', name: 'Ann', roles: ['finance'] },
    via: 'api',
    reason: 'as agreed',
    proof: `proof-of-${String(body['decisionId'])}-in-r%201`,
  });
  assert.match(String(body['decisionId']), /^[0-9a-f]{32}$/);
  assert.deepEqual(body, {
    key,
    decisionId: body['decisionId'],
    verdict: 'accepted',
    state: 'approved',
    runId: 'r 1',
    payloadHash: hash,
    by: { id: 'ann', name: 'Ann', roles: ['finance'], verified: true },
    at: '2026-11-02T10:00:00.000Z',
    links: { run: 'http://localhost:1/runs/r%201', events: 'http://localhost:1/runs/r%201/events' },
  });
});

test('the hash may come in If-Match or in the body, and a reject needs none', async () => {
  const { call, fake, reject } = createApiHarness();
  const bodies = fake.ask({ runId: 'r1' });
  const answer = await call('POST', `/approvals/${bodies.key}/approve`, {
    body: { payloadHash: bodies.hash },
  });
  assert.equal(answer.status, 200);
  const bare = fake.ask({ runId: 'r2' });
  const headers = { 'if-match': bare.hash };
  assert.equal((await call('POST', `/approvals/${bare.key}/approve`, { headers })).status, 200);
  const both = fake.ask({ runId: 'r3' });
  const twice = { headers: { 'if-match': `"${both.hash}"` }, body: { payloadHash: both.hash } };
  assert.equal((await call('POST', `/approvals/${both.key}/approve`, twice)).status, 200);
  const rejected = fake.ask({ runId: 'r4' });
  const { status, body } = await reject(rejected.key);
  assert.equal(status, 200);
  assert.equal(body['state'], 'rejected');
  assert.equal(body['payloadHash'], rejected.hash);
});

test('an approval without a hash, or of whatever is there, is 428; two different hashes are 400', async () => {
  const { call, fake } = createApiHarness();
  const { key, hash } = fake.ask({ runId: 'r1' });
  for (const headers of [{}, { 'if-match': '*' }] as Record<string, string>[]) {
    const answer = await call('POST', `/approvals/${key}/approve`, { headers });
    assert.equal(answer.status, 428);
    assert.equal(answer.body['code'], 'payload_hash_required');
  }
  const different = { headers: { 'if-match': `"${hash}"` }, body: { payloadHash: otherHash } };
  assert.equal((await call('POST', `/approvals/${key}/approve`, different)).status, 400);
  for (const header of ['"v1"', `W/"${hash}"`, `"${hash}", "${hash}"`]) {
    const answer = await call('POST', `/approvals/${key}/approve`, { headers: { 'if-match': header } });
    assert.equal(answer.status, 400, header);
  }
  assert.equal(fake.must('r1').signals.length, 0);
});

test('a body with arguments, by, via or anything unknown is 400 and reaches no run', async () => {
  const { call, fake } = createApiHarness();
  const { key, hash } = fake.ask({ runId: 'r1' });
  for (const action of ['approve', 'reject']) {
    for (const foreign of [
      { arguments: { amount: '999.00' } },
      { by: { id: 'boss' } },
      { via: 'inbox' },
      { decisionId: 'd1' },
      { payloadHash: 'sha256:abc' },
      { reason: 7 },
    ]) {
      const body = { payloadHash: hash, ...foreign };
      const answer = await call('POST', `/approvals/${key}/${action}`, { body });
      assert.equal(answer.status, 400, JSON.stringify(foreign));
      assert.equal(answer.body['code'], 'invalid_request');
    }
  }
  const body = { payloadHash: hash, arguments: {} };
  const { body: problem } = await call('POST', `/approvals/${key}/approve`, { body });
  assert.match(String(problem['detail']), /a decision never carries arguments/);
  assert.equal(fake.must('r1').signals.length, 0);
});

test('a reason over 4 KiB and a decision over 16 KiB are 413', async () => {
  const { fake, reject } = createApiHarness();
  const { key } = fake.ask({ runId: 'r1' });
  assert.equal((await reject(key, { body: { reason: 'é'.repeat(2049) } })).status, 413);
  assert.equal((await reject(key, { body: { reason: 'x'.repeat(5_000_000) } })).status, 413);
  const { fake: other, reject: rejectLong } = createApiHarness({ sign: async () => 'p'.repeat(16_384) });
  const signed = await rejectLong(other.ask({ runId: 'r1' }).key);
  assert.equal(signed.status, 413);
  assert.equal(signed.body['code'], 'too_large');
  assert.equal(fake.must('r1').signals.length + other.must('r1').signals.length, 0);
  assert.equal((await reject(key, { body: { reason: 'é'.repeat(2048) } })).status, 200);
});

test('the door is cli for the CLI, else api', async () => {
  const { fake, reject } = createApiHarness();
  for (const [agent, via] of [
    ['countersign-cli/0.1.0', 'cli'],
    ['curl/8', 'api'],
    ['x countersign-cli/1', 'api'],
  ] as const) {
    const { key, runId } = fake.ask({ runId: agent });
    await reject(key, { headers: { 'user-agent': agent } });
    assert.equal(fake.must(runId).signals[0]?.via, via);
  }
});

test('P2: a second decision on a settled gate changes nothing and names the first', async () => {
  const { fake, approve, reject } = createApiHarness();
  const { key, hash } = fake.ask({ runId: 'r1' });
  const first = await approve(key, hash);
  for (const attempt of [reject(key, { as: 'bob' }), approve(key, hash, { as: 'bob' }), reject(key)]) {
    const { status, body } = await attempt;
    assert.equal(status, 409);
    assert.equal(body['code'], 'already_resolved');
    assert.equal(body['state'], 'approved');
    const winner = body['winner'] as Record<string, unknown>;
    assert.equal((winner['by'] as { id: string }).id, 'ann');
    assert.equal(winner['decisionId'], first.body['decisionId']);
    assert.equal(winner['at'], '2026-11-02T10:00:00.000Z');
    assert.match(String(body['detail']), /^already approved by .*ann.* at 2026-11-02T10:00:00.000Z$/);
  }
  assert.equal(fake.must('r1').signals.length, 1, 'a late decision is not signalled');
});

test('P2: of 50 approvals and 50 rejections at once one wins, and every other one is told which', async () => {
  const { call, fake } = createApiHarness({
    authenticate: (token) => ({ id: token, name: token, roles: [], kind: 'person', scopes: ['decide'] }),
  });
  const { key, hash } = fake.ask({ runId: 'r1' });
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, n) =>
      call('POST', `/approvals/${key}/${n % 2 === 0 ? 'approve' : 'reject'}`, {
        as: 'nobody',
        headers: { authorization: `Bearer person-${n}` },
        body: { payloadHash: hash },
      }),
    ),
  );
  const winners = answers.filter(({ status }) => status === 200);
  assert.equal(winners.length, 1);
  for (const { status, body } of answers.filter((answer) => answer.status !== 200)) {
    assert.equal(status, 409);
    const winner = body['winner'] as Record<string, unknown>;
    assert.equal(winner['decisionId'], winners[0]?.body['decisionId']);
  }
  assert.equal(fake.control.queriesAtOnce, 1, 'one query in flight per run');
});

test('the same decision of the same person is one decision: at once, later, and after the run closed', async () => {
  const { call, fake, approve } = createApiHarness();
  const { key, hash } = fake.ask({ runId: 'r1' });
  const answers = await Promise.all([approve(key, hash), approve(key, hash), approve(key, hash)]);
  answers.push(await approve(key, hash));
  answers.push(await approve(key, hash, { headers: { 'idempotency-key': 'fresh' } }));
  fake.close('r1', 'completed');
  answers.push(await approve(key, hash));
  fake.forgetInMemo(key);
  answers.push(await call('POST', `/approvals/${key}/approve`, { body: { payloadHash: hash } }));
  for (const { status, body } of answers) {
    assert.equal(status, 200);
    assert.deepEqual(body, answers[0]?.body);
  }
  assert.equal(fake.must('r1').signals.length, 1);
});

test('the same Idempotency-Key with another decision is 422, whether the first was accepted, refused or not judged', async () => {
  const headers = { 'idempotency-key': 'k' };
  const accepted = createApiHarness();
  const one = accepted.fake.ask({ runId: 'r1' });
  assert.equal((await accepted.approve(one.key, one.hash, { headers })).status, 200);
  const unjudged = createApiHarness({ receiptBudgetMs: 20 });
  const two = unjudged.fake.ask({ runId: 'r1' });
  unjudged.fake.control.workers = 'down';
  assert.equal((await unjudged.approve(two.key, two.hash, { headers })).status, 202);
  const refused = createApiHarness();
  const three = refused.fake.ask({ runId: 'r1' });
  assert.equal((await refused.approve(three.key, otherHash, { headers })).status, 412);
  for (const [harness, key] of [
    [accepted, one.key],
    [unjudged, two.key],
    [refused, three.key],
  ] as const) {
    const { status, body } = await harness.reject(key, { headers });
    assert.equal(status, 422);
    assert.equal(body['code'], 'idempotency_key_reused');
    assert.equal(harness.fake.must('r1').signals.length, 1);
  }
});

test('an Idempotency-Key holds in another API process too', async () => {
  const first = createApiHarness({ receiptBudgetMs: 20 });
  const { key, hash } = first.fake.ask({ runId: 'r1' });
  first.fake.control.workers = 'down';
  const headers = { 'idempotency-key': 'k' };
  assert.equal((await first.approve(key, hash, { headers })).status, 202);
  const second = createApiHarness({ client: first.fake.client, receiptBudgetMs: 20 });
  assert.equal((await second.reject(key, { headers })).status, 422);
  first.fake.work();
  assert.equal((await second.approve(key, hash, { headers })).status, 200);
  assert.equal((await second.reject(key, { headers })).status, 422);
});

test('two people with the same Idempotency-Key make two decisions with two verdicts', async () => {
  const { fake, approve } = createApiHarness();
  const { key, hash } = fake.ask({ runId: 'r1' });
  const headers = { 'idempotency-key': '1' };
  const ann = await approve(key, hash, { headers });
  const bob = await approve(key, hash, { headers, as: 'bob' });
  assert.equal(ann.status, 200);
  assert.equal(bob.status, 409);
});

test('P3: a decision on another hash is a fact of the run, 412 with the current hash, and decides nothing', async () => {
  const { fake, approve, reject } = createApiHarness();
  const { key, hash, run } = fake.ask({ runId: 'r1' });
  const stale = await approve(key, otherHash);
  assert.equal(stale.status, 412);
  assert.equal(stale.body['code'], 'payload_changed');
  assert.equal(stale.body['currentHash'], hash);
  assert.equal(stale.headers.get('etag'), `"${hash}"`);
  assert.equal((await reject(key, { body: { payloadHash: otherHash } })).status, 412);
  assert.equal(run.facts.filter(({ type }) => type === 'decision_refused').length, 2);
  fake.control.workers = 'down';
  const { approve: impatient } = createApiHarness({ client: fake.client, receiptBudgetMs: 20 });
  assert.equal((await impatient(key, otherHash)).status, 412);
  fake.work();
  assert.equal((await approve(key, hash)).status, 200);
});

test('at most 50 refusals a gate that can be foreseen are signalled; then comes a log line, and a good one still counts', async () => {
  const { fake, approve, logged } = createApiHarness();
  const { key, hash } = fake.ask({ runId: 'r1' });
  for (let n = 0; n < 60; n += 1) {
    const payloadHash = `sha256:${String(n).padStart(64, '0')}`;
    assert.equal((await approve(key, payloadHash)).status, 412);
  }
  assert.equal(fake.must('r1').signals.length, 50);
  const lines = logged.filter(({ message }) => message === 'a decision was not signalled any more');
  assert.equal(lines.length, 10);
  assert.deepEqual({ key: lines[0]?.['key'], by: lines[0]?.['by'] }, { key, by: 'ann' });
  assert.equal((await approve(key, hash)).status, 200);
});

test('every refusal of the gate has its status, and the gate stays pending', async () => {
  const { fake, approve } = createApiHarness();
  const { key, hash } = fake.ask({ runId: 'r1' });
  for (const [refusal, status, code] of [
    ['spec_changed', 409, 'spec_changed'],
    ['unproven', 403, 'unproven'],
    ['not_allowed', 403, 'not_allowed'],
    ['self_approval', 403, 'self_approval'],
    ['invalid_edit', 422, 'invalid_edit'],
    ['too_large', 413, 'too_large'],
    ['malformed', 400, 'invalid_request'],
    ['unknown_key', 404, 'approval_not_found'],
    ['not_open', 409, 'not_open'],
    ['check_failed', 503, 'check_failed'],
  ] as const) {
    fake.control.refuseWith = refusal;
    const answer = await approve(key, hash);
    assert.equal(answer.status, status, refusal);
    assert.equal(answer.body['code'], code);
    if (code === 'check_failed') assert.equal(answer.headers.get('retry-after'), '2');
  }
  delete fake.control.refuseWith;
  assert.equal((await approve(key, hash)).status, 200, 'the same decision is judged again');
});

test('a decision on a gate that is not open yet is 409, one on a closed run’s unknown gate 404', async () => {
  const { fake, approve } = createApiHarness();
  const { key, hash } = fake.ask({ runId: 'r1' });
  const next = key.replace('.refund.', '.notify.');
  const early = await approve(next, hash);
  assert.equal(early.status, 409);
  assert.equal(early.body['code'], 'not_open');
  assert.equal(early.headers.get('retry-after'), '2');
  fake.close('r1', 'failed');
  assert.equal((await approve(next, hash)).status, 404);
  const late = await approve(key, hash);
  assert.equal(late.status, 409);
  assert.equal(late.body['state'], 'cancelled');
});

test('an unknown, foreign, old or expired key is 404 with one text, and nothing is signalled', async () => {
  const { fake, approve, clock } = createApiHarness();
  const { key, hash } = fake.ask({ runId: 'r1', ttlMs: 1000 });
  const earlier = fake.ask({ runId: 'r2' });
  fake.forget('r2');
  fake.ask({ runId: 'r2' });
  for (const missing of ['nonsense', key.replace('r1', 'r9'), earlier.key]) {
    const answer = await approve(missing, hash);
    assert.equal(answer.status, 404);
    assert.equal(
      answer.body['detail'],
      `No pending approval ${missing}: it was already resolved, or it expired`,
    );
  }
  assert.equal(fake.must('r1').signals.length + fake.must('r2').signals.length, 0);
  fake.expire(key);
  const expired = await approve(key, hash);
  assert.equal(expired.status, 404);
  assert.equal(expired.body['detail'], `No pending approval ${key}: it was already resolved, or it expired`);
  const late = fake.ask({ runId: 'r3', ttlMs: 1000 });
  clock.now += 2000;
  assert.equal((await approve(late.key, late.hash)).status, 404, 'the gate itself says expired');
});

test('who may see but not decide is not told otherwise by a late answer: an unsigned winner is nobody’s own', async () => {
  const { fake, approve } = createApiHarness();
  const { key, hash, root } = fake.ask({ runId: 'r1' });
  const by = { id: 'ann', name: 'Ann', roles: ['finance'] };
  await fake.client.sendDecision('r1', {
    v: 1,
    key,
    root,
    decision: 'approve',
    payloadHash: hash,
    decisionId: 'by-hand',
    by,
    via: 'signal',
  });
  const answer = await approve(key, hash);
  assert.equal(answer.status, 409);
  assert.match(String(answer.body['detail']), /\(unverified\)/);
});
