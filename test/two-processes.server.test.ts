// DESIGN §7 on a real server: an Idempotency-Key holds over API processes, at the same moment and later.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startApi } from './support/api-server.ts';
import { clientOf } from './support/gates.ts';
import { questionSpec } from './support/refund-gates.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { startWorker } from './support/worker.ts';

const temporal = await openTemporal();
const { address, namespace, taskQueue, client } = temporal;
const countersign = clientOf(temporal);
const { path: secretsFile } = await makeSecrets();
await startWorker({ address, namespace, taskQueue, secretsFile });
const apis = [await startApi(temporal, { secretsFile }), await startApi(temporal, { secretsFile })];

const requests = [
  {
    path: '/runs',
    body: { spec: questionSpec, input: {} },
    other: { spec: questionSpec, input: { x: 1 } },
    id: 'id',
  },
  {
    path: '/approvals',
    body: { tool: 'payments.refund', arguments: { order: 'o', amount: '1.00' } },
    other: { tool: 'payments.refund', arguments: { order: 'o', amount: '2.00' } },
    id: 'runId',
  },
];

for (const { path, body, other, id } of requests) {
  test(`the same Idempotency-Key at two API processes at once starts one: POST ${path}`, async () => {
    for (let round = 0; round < 10; round += 1) {
      const idempotencyKey = temporal.id('key');
      const answers = await Promise.all(
        [0, 1, 0, 1].map((nth) => apis[nth]!.call('POST', path, { body, idempotencyKey })),
      );
      const said = answers.map(
        ({ status, body: { code } }) => `${status} ${typeof code === 'string' ? code : 'ok'}`,
      );
      // one started it; another process finds it, and the same one says that it is under way
      assert.equal(said.filter((one) => one === '201 ok').length, 1, said.join());
      const allowed = ['201 ok', '200 ok', '409 idempotency_in_flight'];
      assert.ok(
        said.every((one) => allowed.includes(one)),
        said.join(),
      );
      const ids = new Set(answers.filter(({ status }) => status < 300).map((answer) => answer.body[id]));
      assert.equal(ids.size, 1);
      for (const api of apis) {
        const again = await api.call('POST', path, { body, idempotencyKey });
        assert.deepEqual([again.status, again.body[id]], [200, [...ids][0]], again.text);
        const reused = await api.call('POST', path, { body: other, idempotencyKey });
        assert.equal(`${reused.status} ${String(reused.body['code'])}`, '422 idempotency_key_reused');
      }
      const [runId] = ids;
      assert.equal((await countersign.describeRun(String(runId)))?.closeStatus, undefined);
      await client.workflow.getHandle(String(runId)).terminate();
    }
  });
}

test('a run that nobody could have started, by an id that Temporal does not take, is as unknown as any other', async () => {
  const [api] = apis;
  for (const id of ['x'.repeat(256), 'x'.repeat(2_000), 'é'.repeat(128)]) {
    for (const path of ['', '/trail', '/events']) {
      const answer = await api!.call('GET', `/runs/${encodeURIComponent(id)}${path}`);
      assert.equal(`${answer.status} ${String(answer.body['code'])}`, '404 run_not_found');
    }
    assert.equal((await api!.call('POST', `/runs/${encodeURIComponent(id)}/cancel`)).status, 404);
    assert.deepEqual(
      (await api!.call('GET', `/approvals?run=${encodeURIComponent(id)}`)).body['approvals'],
      [],
    );
  }
  assert.deepEqual((await api!.call('GET', '/approvals?run=')).body['approvals'], []);
});
