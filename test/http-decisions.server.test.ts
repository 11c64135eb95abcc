// P6 and P8 on a real server over real HTTP: nothing answers 2xx that is not in history. With no worker a
// decision is recorded and judged later, without Temporal it is not confirmed, and what is refused says why.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Answer } from './support/api-harness.ts';
import { assertInHistory, signalledIds, startApi, type HttpCall } from './support/api-server.ts';
import { eventually } from './support/eventually.ts';
import { clientOf, decisionOn, factsOf, openGate, type SeenGate } from './support/gates.ts';
import { startLedger } from './support/ledger.ts';
import { linesOf, questionSpec, startGate } from './support/refund-gates.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal, ownServer } from './support/temporal.ts';
import { fastForward } from './support/time.ts';
import { startWorker } from './support/worker.ts';
import { TemporalUnavailableError } from '../src/countersign-client.ts';
import { approvalKey } from '../src/core/approval-key.ts';
import type { Spec } from '../src/core/spec/spec.ts';

const temporal = await openTemporal();
const { client, address, namespace, taskQueue } = temporal;
const countersign = clientOf(temporal);
const ledger = await startLedger();
const { path: secretsFile } = await makeSecrets();
const api = await startApi(temporal, { secretsFile });
await startWorker({ address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url });

const start = (name: string, spec?: Spec): Promise<SeenGate> => startGate(temporal, countersign, name, spec);
const saying = ({ status, body }: Answer): string => `${status} ${String(body['code'] ?? body['verdict'])}`;
const never = approvalKey({
  workflowId: temporal.id('never'),
  position: 'refund',
  root: '019d2b1a-7f3e-7c11-9d55-046acc729732',
});
const otherHash = `sha256:${'1'.repeat(64)}`;
const notFound = (key: string): string =>
  `No pending approval ${key}: it was already resolved, or it expired`;

// Temporal takes up to half a minute to delete a run; the last test looks whether it has
const deleted = await start('deleted', questionSpec);
assert.equal((await api.approve(deleted)).status, 200);
await client.workflow.getHandle(deleted.runId).result();
await client.workflowService.deleteWorkflowExecution({
  namespace,
  workflowExecution: { workflowId: deleted.runId },
});

test('P6: with no worker a decision is recorded, not accepted; its Location tells the verdict once one is back', async () => {
  const place = { ...temporal, taskQueue: `${taskQueue}-alone` };
  const alone = clientOf(place);
  const settings = { address, namespace, taskQueue: place.taskQueue, secretsFile, ledgerUrl: ledger.url };
  const worker = await startWorker(settings);
  const gate = await startGate(place, alone, 'no-worker');
  const { runId, key } = gate;
  await worker.stop();

  // nobody is there to answer: a shorter wait than the product's 3 s finds the same
  const hasty = await startApi(temporal, { secretsFile, receiptBudgetMs: 500 });
  const approved = await hasty.approve(gate, { as: 'ann', idempotencyKey: 'a' });
  const rejected = await hasty.reject(gate, { as: 'bob', idempotencyKey: 'b', body: { reason: 'too much' } });
  for (const answer of [approved, rejected]) {
    assert.equal(saying(answer), '202 pending', answer.text);
    assert.equal(answer.body['state'], 'pending');
    const location = answer.headers.get('location') ?? '';
    assert.equal(location, `/approvals/${key}/decisions/${String(answer.body['decisionId'])}`);
    const later = await api.call('GET', location);
    assert.equal(saying(later), '202 pending', later.text);
  }
  await assertInHistory(client, runId, [approved, rejected]);

  // all that a person needs is served by the API and Temporal alone
  const [listed] = await api.find('/approvals', (row) => row['key'] === key);
  assert.equal(listed?.['state'], 'pending');
  const view = await api.call('GET', `/approvals/${key}`);
  assert.equal(view.status, 200);
  assert.equal(view.body['state'], 'pending');
  assert.equal(view.headers.get('etag'), `"${gate.hash}"`);
  const run = await api.call('GET', `/runs/${runId}`);
  assert.equal(run.body['status'], 'awaiting_approval');
  assert.equal((await api.call('GET', `/runs/${runId}/trail`)).status, 200);
  // the same request again is the same decision, still recorded only
  const again = await hasty.approve(gate, { as: 'ann', idempotencyKey: 'a' });
  assert.equal(saying(again), '202 pending');
  assert.equal(again.body['decisionId'], approved.body['decisionId']);
  assert.deepEqual(await linesOf(ledger, runId), []);

  await startWorker(settings);
  const won = await api.final(approved, { as: 'ann' });
  assert.equal(saying(won), '200 accepted', won.text);
  assert.equal(won.body['decisionId'], approved.body['decisionId']);
  const lost = await api.final(rejected, { as: 'bob' });
  assert.equal(saying(lost), '409 already_resolved', lost.text);
  assert.equal((lost.body['winner'] as { by: { id: string } }).by.id, 'ann');
  assert.deepEqual(await client.workflow.getHandle(runId).result(), { status: 'completed' });
  assert.equal((await linesOf(ledger, runId)).length, 1);
  assert.equal((await factsOf(alone, runId, 'approval_granted')).length, 1);
  const [refused] = await factsOf(alone, runId, 'decision_refused');
  assert.deepEqual([refused?.code, refused?.decision?.reason], ['already_resolved', 'too much']);
});

test('P6: a decision that Temporal keeps beside a busy run is never unknown: its Location has the verdict later', async () => {
  const place = { ...temporal, taskQueue: `${taskQueue}-busy` };
  const settings = { address, namespace, taskQueue: place.taskQueue, secretsFile, ledgerUrl: ledger.url };
  const worker = await startWorker(settings);
  const runId = temporal.id('busy');
  const order = { name: 'refund', tool: 'payments.refund', arguments: { order: runId, amount: '1.00' } };
  await client.workflow.start('oneGated', {
    workflowId: runId,
    taskQueue: place.taskQueue,
    workflowTaskTimeout: '2m', // longer than this test looks at it
    args: [order],
  });
  const gate = await openGate(clientOf(place), runId);
  await worker.stop();
  const refused = decisionOn(gate, 'reject', { payloadHash: otherHash });
  await countersign.sendDecision(runId, refused);
  const hung = await takeTask(place.taskQueue);

  const hasty = await startApi(temporal, { secretsFile, receiptBudgetMs: 300 });
  const answer = await hasty.approve(gate);
  assert.equal(saying(answer), '202 pending', answer.text);
  assert.deepEqual([...(await signalledIds(client, runId)).keys()], [refused.decisionId]);
  const unread = await hasty.call('GET', answer.headers.get('location') ?? '');
  assert.equal(saying(unread), '503 temporal_unavailable', unread.text);
  assert.ok(Number(unread.headers.get('retry-after')) > 0);

  await startWorker(settings);
  await hung.fail();
  const verdict = await eventually(async () => {
    const later = await hasty.call('GET', answer.headers.get('location') ?? '');
    assert.ok([200, 202, 503].includes(later.status), later.text);
    return later.status === 200 ? later : undefined;
  });
  assert.equal(verdict.body['decisionId'], answer.body['decisionId']);
  await client.workflow.getHandle(runId).result();
  await assertInHistory(client, runId, [answer]);
});

/** Takes a workflow task as a worker does that then hangs. */
async function takeTask(queue: string): Promise<{ fail: () => Promise<void> }> {
  const { connection } = temporal;
  const poll = () =>
    connection.workflowService.pollWorkflowTaskQueue({
      namespace,
      taskQueue: { name: queue },
      identity: 'a worker that hangs',
    });
  const taskToken = await eventually(async () => {
    const polled = await connection.withDeadline(Date.now() + 30_000, poll);
    return polled.taskToken.length > 0 ? polled.taskToken : undefined;
  });
  return {
    fail: async () => {
      await connection.workflowService.respondWorkflowTaskFailed({ namespace, taskToken });
    },
  };
}

test('P6: while Temporal is down nothing is confirmed; sent again with the same Idempotency-Key it is one decision', async () => {
  const own = await ownServer();
  // with the product's own deadline: this is what a person waits for a 503
  const downApi = await startApi(own, { secretsFile, deadlineMs: 5_000 });
  await startWorker({ ...own, secretsFile, ledgerUrl: ledger.url, address: own.address });
  const gate = await startGate(own, clientOf(own), 'down');
  const { runId } = gate;
  const request: HttpCall = { idempotencyKey: 'once', body: { reason: 'damaged' } };

  await own.kill();
  const unconfirmed = await downApi.approve(gate, request);
  assert.equal(saying(unconfirmed), '503 temporal_unavailable', unconfirmed.text);
  assert.equal(unconfirmed.body['detail'], 'not confirmed; send it again with the same Idempotency-Key');
  assert.ok(Number(unconfirmed.headers.get('retry-after')) > 0);
  const paths = [`/approvals/${gate.key}`, '/approvals', `/runs/${runId}`, `/runs/${runId}/trail`, '/readyz'];
  const begin = { body: { spec: questionSpec, id: own.id('never') } };
  const others = [...paths.map((path) => downApi.call('GET', path)), downApi.call('POST', '/runs', begin)];
  for (const answer of await Promise.all(others)) {
    assert.equal(saying(answer), '503 temporal_unavailable', answer.text);
  }
  assert.equal((await downApi.call('GET', '/livez')).status, 200);

  await own.restart();
  const ready = async (): Promise<boolean> => (await downApi.call('GET', '/readyz')).status === 200;
  await eventually(ready, { message: 'the API is ready again' });
  const confirmed = await downApi.final(await downApi.approve(gate, request));
  assert.equal(saying(confirmed), '200 accepted', confirmed.text);
  assert.deepEqual(await own.client.workflow.getHandle(runId).result(), { status: 'completed' });
  await assertInHistory(own.client, runId, [confirmed]);
  assert.equal((await factsOf(clientOf(own), runId, 'approval_granted')).length, 1);
  assert.equal((await linesOf(ledger, runId)).length, 1);

  // and with the kill in the middle of the decisions: what was answered 2xx is there, the rest is sent again
  const gates = await Promise.all(['a', 'b', 'c', 'd'].map((name) => startGate(own, clientOf(own), name)));
  const sent = gates.map((one) => downApi.approve(one, request));
  await sent[0];
  await own.kill();
  const answers = await Promise.all(sent);
  for (const answer of answers) {
    assert.ok([200, 202, 503].includes(answer.status), answer.text);
  }
  await own.restart();
  await eventually(ready, { message: 'the API is ready again' });
  for (const [index, one] of gates.entries()) {
    await assertInHistory(own.client, one.runId, [answers[index]!]);
    const again = await downApi.final(await downApi.approve(one, request));
    assert.equal(saying(again), '200 accepted', again.text);
    assert.deepEqual(await own.client.workflow.getHandle(one.runId).result(), { status: 'completed' });
    assert.equal((await signalledIds(own.client, one.runId)).size, 1);
    assert.equal((await factsOf(clientOf(own), one.runId, 'approval_granted')).length, 1);
    assert.equal(new Set((await linesOf(ledger, one.runId)).map(({ key }) => key)).size, 1);
  }
});

test('P6: a decision whose confirmation was lost is never a false yes, and is one decision when sent again', async () => {
  let losing = true;
  const losingApi = await startApi(temporal, {
    secretsFile,
    wrapClient: (real) => ({
      ...real,
      async sendDecision(runId, decision) {
        const sent = await real.sendDecision(runId, decision);
        if (losing) throw new TemporalUnavailableError('the answer was lost');
        return sent;
      },
    }),
  });
  for (const kind of ['approve', 'reject'] as const) {
    losing = true;
    const gate = await start(`lost-${kind}`);
    const { runId } = gate;
    const request: HttpCall = { idempotencyKey: 'once', body: { reason: 'sure' } };
    assert.equal(saying(await losingApi[kind](gate, request)), '503 temporal_unavailable');
    losing = false;
    // the lost one may be judged already, or not: the same answer
    const again = await losingApi.final(await losingApi[kind](gate, request));
    assert.equal(saying(again), '200 accepted', again.text);
    await client.workflow.getHandle(runId).result();
    assert.equal((await signalledIds(client, runId)).size, 1);
    const facts = await countersign.readTrail(runId);
    const settled = facts.filter(({ type }) => type === 'approval_granted' || type === 'approval_rejected');
    assert.equal(settled.length, 1);
    assert.equal((await linesOf(ledger, runId)).length, kind === 'approve' ? 1 : 0);
    const after = await api[kind](gate, request);
    assert.deepEqual([after.status, after.body], [200, again.body]);
  }
});

test('P8: an unknown key, a finished run and another position of it are told apart as far as they may be (case 37)', async () => {
  const unknown = [never, 'no-key', 'a.b.c', `${'x'.repeat(700)}`];
  for (const key of unknown) await assertNotFound(key);
  // nobody's decision has started a run
  assert.equal(await countersign.describeRun(never.split('.')[0] ?? ''), undefined);

  const gate = await start('finished', questionSpec);
  const { runId, root } = gate;
  assert.equal((await api.approve(gate)).status, 200);
  await client.workflow.getHandle(runId).result();
  const late = await api.reject(gate, { as: 'bob' });
  assert.equal(saying(late), '409 already_resolved', late.text);
  const winner = late.body['winner'] as { state: string; by: { id: string }; at: string };
  assert.deepEqual([winner.state, winner.by.id], ['approved', 'ann']);
  const view = await api.call('GET', `/approvals/${gate.key}`);
  const outcome = view.body['outcome'] as { at: string };
  assert.equal(winner.at, outcome.at);
  assert.equal((await api.approve(gate)).status, 200);
  await assertNotFound(approvalKey({ workflowId: runId, position: 'other', root }));
  const changed = root.replace(/.$/, (digit) => (digit === '0' ? '1' : '0'));
  await assertNotFound(approvalKey({ workflowId: runId, position: 'ask', root: changed }));
});

/** In all ways of asking, in the very words of a key that never was. */
async function assertNotFound(key: string): Promise<void> {
  const gate = { key, hash: `sha256:${'0'.repeat(64)}` };
  const reference = await api.reject({ key: never });
  for (const answer of [
    await api.approve(gate, { as: 'bob' }),
    await api.reject(gate),
    await api.reject(gate, { idempotencyKey: 'k' }),
    await api.call('GET', `/approvals/${key}`),
    await api.call('GET', `/approvals/${key}/decisions/some`),
  ]) {
    assert.equal(saying(answer), '404 approval_not_found', answer.text);
    const { detail, title, remedy } = answer.body;
    assert.equal(detail, notFound(key.slice(0, 640)));
    assert.deepEqual([title, remedy], [reference.body['title'], reference.body['remedy']]);
  }
}

test('P8: deciding an expired gate is 404, one that its run took with it 409; both can be read', async () => {
  const expired = await start('expired', {
    ...questionSpec,
    steps: [{ id: 'ask', approval: { title: 'Shall we?', ttl: '1h' } }],
  });
  await fastForward(temporal, expired.runId, 2 * 3_600_000);
  assert.deepEqual(await client.workflow.getHandle(expired.runId).result(), {
    status: 'rejected',
    step: 'ask',
    gate: 'expired',
  });
  const late = await api.approve(expired);
  assert.deepEqual([saying(late), late.body['detail']], ['404 approval_not_found', notFound(expired.key)]);
  assert.equal((await api.call('GET', `/approvals/${expired.key}`)).body['state'], 'expired');

  const ended = await start('terminated');
  await client.workflow.getHandle(ended.runId).terminate('by hand');
  const after = await api.approve(ended);
  assert.equal(saying(after), '409 already_resolved', after.text);
  assert.equal((after.body['winner'] as { state: string }).state, 'cancelled');
  assert.equal((await api.call('GET', `/approvals/${ended.key}`)).body['state'], 'cancelled');
});

test('P8: a request that is malformed, too large or without its hash decides nothing and leaves no fact (cases 1 and 47)', async () => {
  const gate = await start('bad-requests');
  const path = `/approvals/${gate.key}/approve`;
  const hash = gate.hash;
  const other = otherHash;
  const json = { payloadHash: hash };
  const text = { 'content-type': 'text/plain' };
  const bad: [string, HttpCall][] = [
    ['400 invalid_request', { body: '{"payloadHash":' }],
    ['400 invalid_request', { body: `{"payloadHash":"${hash}","payloadHash":"${hash}"}` }],
    ['400 invalid_request', { body: '[]' }],
    ['400 invalid_request', { body: `\ufeff${JSON.stringify(json)}` }],
    ['400 invalid_request', { body: Buffer.from([0x7b, 0xff, 0x7d]) }],
    ['400 invalid_request', { body: { ...json, arguments: { amount: '1000.00' } } }],
    ['400 invalid_request', { body: { ...json, by: { id: 'root' } } }],
    ['400 invalid_request', { body: { ...json, via: 'inbox' } }],
    ['400 invalid_request', { body: { ...json, reason: 5 } }],
    ['400 invalid_request', { body: { payloadHash: 'sha256:abc' } }],
    ['400 invalid_request', { body: json, headers: { 'if-match': `"${other}"` } }],
    ['400 invalid_request', { body: json, headers: { 'if-match': 'W/"1"' } }],
    ['400 invalid_request', { body: json, idempotencyKey: '"open' }],
    ['400 invalid_request', { body: json, idempotencyKey: 'k'.repeat(300) }],
    ['401 unauthenticated', { body: json, as: 'nobody' }],
    ['401 unauthenticated', { body: json, headers: { authorization: 'Bearer csn_nobody' } }],
    ['413 too_large', { body: { ...json, reason: 'x'.repeat(5_000) } }],
    ['413 too_large', { body: { ...json, reason: 'x'.repeat(20_000) } }],
    ['413 too_large', { body: { ...json, reason: 'x'.repeat(5 * 1024 * 1024) } }],
    ['413 too_large', { body: endless() }],
    ['415 unsupported_media_type', { body: JSON.stringify(json), headers: text }],
    ['415 unsupported_media_type', { body: json, headers: { 'content-encoding': 'gzip' } }],
    ['428 payload_hash_required', {}],
    ['428 payload_hash_required', { body: {} }],
    ['428 payload_hash_required', { body: { reason: 'yes' }, headers: { 'if-match': '*' } }],
  ];
  for (const [expected, call] of bad) {
    const answer = await api.call('POST', path, call);
    assert.equal(saying(answer), expected, answer.text);
    assert.match(answer.headers.get('content-type') ?? '', /^application\/problem\+json/);
  }
  for (const method of ['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']) {
    assert.equal((await api.call(method, path)).status, 405, method);
  }
  assert.equal((await factsOf(countersign, gate.runId, 'decision_refused')).length, 0);
  assert.equal((await api.call('GET', `/approvals/${gate.key}`)).body['state'], 'pending');

  // an approval of something else reached the gate: it is a fact of the run
  const stale = await api.approve({ key: gate.key, hash: other });
  assert.equal(saying(stale), '412 payload_changed', stale.text);
  assert.equal(stale.body['currentHash'], hash);
  assert.equal(stale.headers.get('etag'), `"${hash}"`);
  const [refused] = await factsOf(countersign, gate.runId, 'decision_refused');
  assert.deepEqual([refused?.code, refused?.decision?.payloadHash], ['payload_changed', other]);
  const good = await api.call('POST', path, { body: json });
  assert.equal(saying(good), '200 accepted', good.text);
  await client.workflow.getHandle(gate.runId).result();
  assert.equal((await linesOf(ledger, gate.runId)).length, 1);
});

/** A body that is sent for as long as somebody reads it. */
function endless(): ReadableStream<Uint8Array> {
  return new ReadableStream({
    pull: (controller) => controller.enqueue(new TextEncoder().encode(`"${'x'.repeat(8_000)}",`)),
  });
}

test('P8: a run that was deleted, as after its retention, is as unknown as one that never was (case 37)', async () => {
  const gone = async (): Promise<boolean> => (await countersign.describeRun(deleted.runId)) === undefined;
  await eventually(gone, { message: 'the deletion', timeoutMs: 120_000 });
  await assertNotFound(deleted.key);
  assert.equal(await countersign.describeRun(deleted.runId), undefined);
});
