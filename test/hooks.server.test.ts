// Starts by other services on a real server: webhooks, delivered many times, and starts by Temporal clients that
// have nothing of ours.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { Client, Connection } from '@temporalio/client';
import type { Spec } from '../src/core/spec/spec.ts';
import { findTemporalCli } from '../src/embedded/find-temporal-cli.ts';
import { openTriggers } from '../src/triggers.ts';
import type { Answer } from './support/api-harness.ts';
import { startApi } from './support/api-server.ts';
import { eventually } from './support/eventually.ts';
import { clientOf, factsOf, openGate } from './support/gates.ts';
import { startLedger } from './support/ledger.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { signingSecret, signWebhook } from './support/webhook.ts';
import { startWorker } from './support/worker.ts';

const temporal = await openTemporal();
const { address, namespace, taskQueue } = temporal;
const countersign = clientOf(temporal);
const ledger = await startLedger();
const { path: secretsFile } = await makeSecrets();
const hash = `sha256:${'a'.repeat(64)}`;
await startWorker(
  { address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url },
  { deps: { currentSpecHash: () => hash } },
);

const spec: Spec = {
  version: 1,
  name: 'refund',
  steps: [
    {
      id: 'refund',
      tool: 'payments.refund',
      with: { order: '${{ input.order }}', amount: '12.50' },
      before: { approve: {} },
    },
  ],
};
const secret = signingSecret('of the shop');
const config = { spec: 'refund', secrets: ['${SHOP}'], input: { order: 'data.order' } };
const deps = {
  triggers: openTriggers({ shop: config }, { SHOP: secret }, () => undefined),
  specs: {
    get: () => ({ spec, hash }),
    names: () => ['refund'],
    problemOf: () => undefined,
  },
};
const apis = await Promise.all([
  startApi(temporal, { secretsFile, deps }),
  startApi(temporal, { secretsFile, deps, people: [] }),
]);
const [api] = apis;

function deliver(id: string, order: string, attempt = 0): Promise<Answer> {
  const body = JSON.stringify({ data: { order } });
  const headers = signWebhook({ id, at: Math.floor(Date.now() / 1000), body, secrets: [secret] });
  return apis[attempt % 2]!.call('POST', '/hooks/shop', {
    as: 'nobody',
    body,
    headers: { ...headers, cookie: 'planted', 'x-attempt': String(attempt) },
  });
}

test('an event delivered thirty times to two API processes, and after its run has ended, is one run and one answer', async () => {
  const [id, order] = [temporal.id('msg'), temporal.id('order')];
  const answers = await Promise.all(Array.from({ length: 30 }, (_, at) => deliver(id, order, at)));
  const [first] = answers as [Answer];
  assert.equal(first.status, 200, first.text);
  for (const answer of answers) assert.deepEqual([answer.status, answer.text], [200, first.text]);
  const runId = String(first.body['id']);

  const gate = await openGate(countersign, runId);
  assert.equal((await api.approve(gate)).status, 200);
  await temporal.client.workflow.getHandle(runId).result();
  for (const attempt of [31, 32]) {
    const later = await deliver(id, order, attempt);
    assert.deepEqual([later.status, later.text], [200, first.text]);
  }
  const other = await deliver(id, `${order}-b`);
  assert.deepEqual([other.status, other.body['code']], [422, 'idempotency_key_reused']);

  const started = await eventually(async () => {
    const found = [];
    for await (const row of temporal.client.workflow.list({ query: `WorkflowId STARTS_WITH 'hook-shop-'` })) {
      if (row.taskQueue === taskQueue) found.push(row.workflowId);
    }
    return found.length > 0 ? found : undefined;
  });
  assert.deepEqual(started, [runId]);
  assert.equal((await ledger.lines()).filter(({ body }) => JSON.stringify(body).includes(order)).length, 1);

  const { body } = await api.call('GET', `/runs/${runId}`);
  const { headers, ...trigger } = body['trigger'] as { headers: Record<string, string> };
  assert.deepEqual(trigger, { kind: 'hook', name: 'shop', id });
  assert.equal(headers['webhook-id'], id);
  assert.equal(headers['cookie'], undefined);
  assert.deepEqual(body['startedBy'], { id: 'hook:shop', name: 'shop', roles: [] });
  const [fact] = await factsOf(countersign, runId, 'run_started');
  assert.deepEqual(fact?.trigger, body['trigger']);
});

/** What GET /runs/:id says of a run that was started past the API, approved there and paid once. */
async function approvedLikeAnyOther(runId: string): Promise<Record<string, unknown>> {
  const gate = await openGate(countersign, runId);
  assert.equal((await api.approve(gate)).status, 200);
  await temporal.client.workflow.getHandle(runId).result();
  const { status, body } = await api.call('GET', `/runs/${runId}`);
  assert.deepEqual([status, body['status']], [200, 'completed']);
  const lines = (await ledger.lines()).filter(({ body: sent }) => JSON.stringify(sent).includes(runId));
  assert.deepEqual(
    lines.map(({ outcome }) => outcome),
    ['refunded'],
  );
  return body;
}

test('a plain Temporal client starts a run, and it is one like any other', async () => {
  const connection = await Connection.connect({ address });
  const client = new Client({ connection, namespace, identity: 'orders@shop' });
  const workflowId = temporal.id('plain');
  const start = () =>
    client.workflow.start('runSpec', {
      workflowId,
      taskQueue,
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
      args: [{ v: 1, spec, input: { order: workflowId } }],
    });
  await start();
  await assert.rejects(start(), /already started/i);
  const body = await approvedLikeAnyOther(workflowId);
  assert.deepEqual(body['trigger'], { kind: 'temporal', identity: 'orders@shop' });
  assert.deepEqual(body['input'], { order: workflowId });
  assert.equal(body['startedBy'], undefined);
  await assert.rejects(start(), /already started/i);
  await connection.close();
});

test('what a start by a Temporal client says of itself is shown as it said it', async () => {
  const workflowId = temporal.id('own-word');
  const trigger = { kind: 'nightly', id: '2026-11-29' };
  await temporal.client.workflow.start('runSpec', {
    workflowId,
    taskQueue,
    args: [{ v: 1, spec, input: { order: workflowId }, trigger, startedBy: { id: 'batch' } }],
  });
  const body = await approvedLikeAnyOther(workflowId);
  assert.deepEqual([body['trigger'], body['startedBy']], [trigger, { id: 'batch' }]);
});

test('the start by the Temporal CLI that docs/hooks.md shows is one, and is listed by its spec', async () => {
  const text = readFileSync(new URL('../docs/hooks.md', import.meta.url), 'utf8');
  const command = /^temporal workflow start [^]*?(?=^```)/m.exec(text)?.[0] ?? assert.fail('no such command');
  const { path } = await findTemporalCli();
  const runId = temporal.id('cli');
  const own = command
    .replaceAll('refund-ord-1001', runId)
    .replaceAll('"ord-1001"', `"${runId}"`)
    .replace('--task-queue countersign', `--task-queue ${taskQueue}`)
    .replace(/^temporal/, `"$CLI" --command-timeout 60s`);
  const env = {
    PATH: process.env['PATH'],
    TEMPORAL_ADDRESS: address,
    TEMPORAL_NAMESPACE: namespace,
    CLI: path,
  };
  await promisify(execFile)('sh', ['-c', own], { env });
  const body = await approvedLikeAnyOther(runId);
  const trigger = body['trigger'] as { kind: string; identity: string };
  assert.equal(trigger.kind, 'temporal');
  assert.match(trigger.identity, /^temporal-cli:/);
  await eventually(async () => {
    const { body: page } = await api.call('GET', '/runs?spec=refund');
    return (page['runs'] as { id: string }[]).some(({ id }) => id === runId);
  });
});
