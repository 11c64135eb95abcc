// DESIGN §7's status table on a real server over real HTTP: the rows that no other file of this kind reaches.
// Each refusal leaves the gate as it was, and says what to do.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Answer } from './support/api-harness.ts';
import { startApi } from './support/api-server.ts';
import { clientOf, openGate, openGates, startSpec } from './support/gates.ts';
import { questionSpec, refundSpec, startGate } from './support/refund-gates.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { startWorker } from './support/worker.ts';

const temporal = await openTemporal();
const { client, address, namespace, taskQueue } = temporal;
const countersign = clientOf(temporal);
const { path: secretsFile } = await makeSecrets();
const settings = { address, namespace, taskQueue, secretsFile };
const api = await startApi(temporal, { secretsFile });
await startWorker(settings);

const saying = ({ status, body }: Answer): string => `${status} ${String(body['code'] ?? body['verdict'])}`;
const stateOf = async (key: string) => (await api.call('GET', `/approvals/${key}`)).body['state'];

test('409 spec_changed: the spec that was shown is not the current one; it stays, and can be rejected', async () => {
  const runId = temporal.id('changed');
  const shown = `sha256:${'5'.repeat(64)}`;
  await startSpec(countersign, runId, refundSpec, { order: runId }, shown);
  const gate = await openGate(countersign, runId);
  const answer = await api.final(await api.approve(gate));
  assert.equal(saying(answer), '409 spec_changed', answer.text);
  assert.match(String(answer.body['detail']), /55555555/);
  assert.equal(await stateOf(gate.key), 'pending');
  assert.equal(saying(await api.final(await api.reject(gate))), '200 accepted');
});

test('403 unproven: an API whose key the workers do not know signs in vain', async () => {
  const { path: foreign } = await makeSecrets();
  const stranger = await startApi(temporal, { secretsFile: foreign });
  const gate = await startGate(temporal, countersign, 'unproven', questionSpec);
  const answer = await stranger.final(await stranger.approve(gate));
  assert.equal(saying(answer), '403 unproven', answer.text);
  assert.equal(await stateOf(gate.key), 'pending');
  assert.equal(saying(await api.final(await api.approve(gate))), '200 accepted');
});

test('503 check_failed: what admits cannot check; with Retry-After, and the gate stays', async () => {
  const place = { ...temporal, taskQueue: `${taskQueue}-broken` };
  let isBroken = true;
  const currentSpecHash = (): undefined => {
    if (isBroken) throw new Error('the specs cannot be read');
  };
  await startWorker({ ...settings, taskQueue: place.taskQueue }, { deps: { currentSpecHash } });
  const runId = temporal.id('broken');
  await startSpec(clientOf(place), runId, questionSpec, {}, `sha256:${'6'.repeat(64)}`);
  const gate = await openGate(countersign, runId);
  const answer = await api.final(await api.approve(gate));
  assert.equal(saying(answer), '503 check_failed', answer.text);
  assert.ok(Number(answer.headers.get('retry-after')) > 0);
  assert.equal(await stateOf(gate.key), 'pending');
  isBroken = false;
  assert.equal(saying(await api.final(await api.reject(gate))), '200 accepted');
});

test('422 invalid_edit: edited arguments that break the schema; and 403 not_allowed for a kind that it does not take', async () => {
  const gate = await startGate(temporal, countersign, 'edit');
  const edit = (args: unknown) =>
    api.call('POST', `/approvals/${gate.key}/edit`, { body: { payloadHash: gate.hash, arguments: args } });
  const answer = await api.final(await edit({ order: gate.runId, amount: 12.5 }));
  assert.equal(saying(answer), '422 invalid_edit', answer.text);
  assert.match(String(answer.body['detail']), /amount/);
  assert.equal(await stateOf(gate.key), 'pending');
  await client.workflow.getHandle(gate.runId).terminate();

  const question = await startGate(temporal, countersign, 'no-edit', questionSpec);
  const body = { payloadHash: question.hash, arguments: {} };
  const refused = await api.final(await api.call('POST', `/approvals/${question.key}/edit`, { body }));
  assert.equal(saying(refused), '403 not_allowed', refused.text);
  assert.equal(await stateOf(question.key), 'pending');
  await client.workflow.getHandle(question.runId).terminate();
});

test('409 ambiguous_approval: a run id where two are pending names both, and decides neither', async () => {
  const runId = temporal.id('two');
  const gates = ['a', 'b'].map((name) => ({
    name,
    tool: 'payments.refund',
    arguments: { order: `${runId}/${name}`, amount: '1.00' },
  }));
  const handle = await client.workflow.start('gatesSideBySide', {
    workflowId: runId,
    taskQueue,
    args: [{ gates }],
  });
  const seen = await openGates(countersign, runId, 2);
  const answer = await api.call('POST', `/runs/${runId}/reject`, { body: {} });
  assert.equal(saying(answer), '409 ambiguous_approval', answer.text);
  assert.deepEqual((answer.body['keys'] as string[]).toSorted(), seen.map(({ key }) => key).toSorted());
  for (const { key } of seen) assert.equal(await stateOf(key), 'pending');
  assert.equal(
    saying(await api.final(await api.call('POST', `/runs/${seen[0]!.key}/reject`, { body: {} }))),
    '200 accepted',
  );
  await handle.terminate();
});

test('409 run_closed: there is nothing to cancel in a run that has ended; a cancelled one is 202 again', async () => {
  const gate = await startGate(temporal, countersign, 'ended', questionSpec);
  assert.equal(saying(await api.final(await api.reject(gate))), '200 accepted');
  await client.workflow.getHandle(gate.runId).result();
  assert.equal(saying(await api.call('POST', `/runs/${gate.runId}/cancel`)), '409 run_closed');
  const other = await startGate(temporal, countersign, 'cancelled', questionSpec);
  for (let time = 0; time < 2; time += 1) {
    assert.equal((await api.call('POST', `/runs/${other.runId}/cancel`)).status, 202);
    await client.workflow
      .getHandle(other.runId)
      .result()
      .catch(() => undefined);
  }
  const late = await api.approve(other);
  assert.equal(saying(late), '409 already_resolved', late.text);
});
