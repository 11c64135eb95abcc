// A requested approval on a real server, over HTTP: asked for, amended, followed, decided, done once.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startApi } from './support/api-server.ts';
import { listen } from './support/event-listener.ts';
import { startLedger } from './support/ledger.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { startWorker } from './support/worker.ts';
import { eventually } from './support/eventually.ts';

const temporal = await openTemporal();
const { address, namespace, taskQueue } = temporal;
const ledger = await startLedger();
const { path: secretsFile } = await makeSecrets();
const worker = await startWorker({ address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url });
after(() => worker.stop());
const api = await startApi(temporal, { secretsFile });

const began = new Date().toISOString();
const order = temporal.id('asked');
const call = { tool: 'payments.refund', arguments: { order, amount: '7.00' }, title: 'Refund' };

test('an approval is asked for, amended by who asked, approved by another, and its effect happens once (case 6)', async () => {
  const asked = await api.call('POST', '/approvals', { body: call, idempotencyKey: order });
  assert.equal(asked.status, 201, asked.text);
  const { key, runId } = asked.body as { key: string; runId: string };
  const again = await api.call('POST', '/approvals', { body: call, idempotencyKey: order });
  assert.equal(again.status, 200, again.text);
  assert.equal(again.body['key'], key);
  const etag = String(asked.headers.get('etag'));
  const comment = await api.call('POST', `/approvals/${key}/comment`, {
    body: { reason: 'soon' },
    as: 'bob',
  });
  assert.equal((await api.final(comment)).status, 200, comment.text);

  const amend = { arguments: { order, amount: '6.00' } };
  const foreign = await api.call('POST', `/approvals/${key}/amend`, { body: amend, as: 'bob' });
  assert.equal((await api.final(foreign, { as: 'bob' })).status, 403, foreign.text);
  const amended = await api.final(await api.call('POST', `/approvals/${key}/amend`, { body: amend }));
  assert.equal(amended.status, 200, amended.text);
  const hash = String(amended.body['payloadHash']);
  assert.notEqual(`"${hash}"`, etag);
  // who had the page open, and approves what stood there (case 6)
  const stale = await api.final(await api.approve({ key, hash: etag.slice(1, -1) }, { as: 'bob' }), {
    as: 'bob',
  });
  assert.equal(`${stale.status} ${String(stale.body['code'])}`, '412 payload_changed', stale.text);
  assert.equal(stale.body['currentHash'], hash);
  assert.equal(stale.headers.get('etag'), `"${hash}"`);
  const shown = await api.call('GET', `/approvals/${key}`);
  assert.equal(shown.body['state'], 'pending');
  assert.equal(shown.headers.get('etag'), `"${hash}"`);
  const body = { payloadHash: hash, arguments: { order, amount: '5.00' } };
  const approve = { body: { payloadHash: hash }, as: 'bob' };
  const approved = await api.final(await api.call('POST', `/runs/${runId}/approve`, approve), { as: 'bob' });
  assert.equal(approved.status, 200, approved.text);
  const late = await api.call('POST', `/approvals/${key}/edit`, { body, as: 'bob' });
  assert.equal(late.status, 409, late.text);

  const run = await eventually(async () => {
    const now = await api.call('GET', `/runs/${runId}`);
    return now.body['status'] === 'completed' ? now : undefined;
  });
  assert.equal(run.body['error'], undefined);
  const lines = (await ledger.lines()).filter((line) => (line.body as { order: string }).order === order);
  assert.deepEqual(
    lines.map((line) => (line.body as { amount: string }).amount),
    ['6.00'],
  );
  const [decided] = await api.find(`/decisions?since=${began}`, (row) => row['key'] === key);
  assert.equal(decided?.['verdict'], 'approved');
});

test('a listener hears a run from its start to its cancellation, each fact once', async () => {
  const asked = await api.call('POST', '/approvals', { body: call });
  const runId = String(asked.body['runId']);
  const response = await api.open(`/runs/${runId}/events`);
  const listener = listen(response);
  const [first, second] = await listener.take(2);
  assert.deepEqual([first?.type, second?.type], ['run_started', 'approval_requested']);
  assert.equal((await api.call('POST', `/runs/${runId}/cancel`)).status, 202);
  const rest = await listener.rest();
  assert.deepEqual(
    rest.map(({ id, type }) => [id, type]),
    [
      ['3', 'approval_cancelled'],
      ['4', 'run_cancelled'],
    ],
  );
  assert.equal((await api.call('GET', `/runs/${runId}`)).body['status'], 'cancelled');
});
