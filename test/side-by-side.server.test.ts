// P1 and P8 on a real server: runs that share one worker, and a run that many signals wait for. The SDK ends
// what it evicts or what computes for too long in ways that stop more than that run (src/worker.ts).
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { NativeConnection } from '@temporalio/worker';
import { signalNames } from '../src/core/names.ts';
import type { Spec } from '../src/core/spec/spec.ts';
import { createWorker } from '../src/worker.ts';
import { testBundle } from './support/bundle.ts';
import { clientOf, decisionOn, openGate, receiptOf, startSpec } from './support/gates.ts';
import { fetchHistory, eventTypes } from './support/history.ts';
import { startLedger } from './support/ledger.ts';
import { skipWithoutCache as skip } from './support/project.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { spawnWorker, startWorker } from './support/worker.ts';

const temporal = await openTemporal();
const ledger = await startLedger();
const { path: secretsFile } = await makeSecrets();
const { address, namespace } = temporal;

const spec: Spec = {
  version: 1,
  name: 'refund',
  steps: [
    {
      id: 'refund',
      tool: 'payments.refund',
      with: { order: '${{ input.order }}', amount: '10.00' },
      before: { approve: { title: 'Refund ${{ input.order }}', ttl: '1h' } },
    },
  ],
};

for (const maxCachedWorkflows of [0, 10]) {
  test(
    `P1: twenty runs on a worker that caches ${maxCachedWorkflows}: none stands because of another`,
    { skip },
    async () => {
      const taskQueue = temporal.id('queue');
      const client = clientOf({ ...temporal, taskQueue });
      const settings = { address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url };
      const worker = await startWorker({ ...settings, maxCachedWorkflows });
      after(() => worker.stop());
      const runIds = Array.from({ length: 20 }, () => temporal.id('side'));
      await Promise.all(runIds.map((runId) => startSpec(client, runId, spec, { order: runId })));
      const decide = async (runId: string): Promise<void> => {
        await client.sendDecision(runId, decisionOn(await openGate(client, runId), 'approve'));
        await temporal.client.workflow.getHandle(runId).result();
      };
      await Promise.all(runIds.map(decide));
      for (const runId of runIds) {
        const types = eventTypes(await fetchHistory(temporal.client, runId));
        assert.equal(types.filter((type) => type === 'WorkflowTaskTimedOut').length, 0, runId);
      }
      await worker.stop();
    },
  );
}

test('P8: 2,500 decisions that came while no worker was there end no worker, and the next one is judged', async () => {
  const taskQueue = temporal.id('queue');
  const client = clientOf({ ...temporal, taskQueue });
  const settings = { address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url };
  const first = await startWorker(settings);
  const runId = temporal.id('flood');
  await startSpec(client, runId, spec, { order: runId });
  const gate = await openGate(client, runId);
  await first.stop();
  const handle = temporal.client.workflow.getHandle(runId); // without a deadline for each
  const late = { ...gate, root: '01a00000-0000-7000-8000-000000000000' };
  for (let sent = 0; sent < 2_500; sent += 50) {
    const batch = Array.from({ length: 50 }, () => decisionOn(late, 'reject'));
    await Promise.all(batch.map((decision) => handle.signal(signalNames.decide, decision)));
  }
  const approve = decisionOn(gate, 'approve');
  await client.sendDecision(runId, approve);

  const worker = await spawnWorker(settings);
  assert.deepEqual(await handle.result(), { status: 'completed' });
  assert.equal((await receiptOf(client, approve, runId)).verdict, 'accepted');
  assert.ok(worker.running());
  await worker.stop();
});

test('P8: the time that an activation may take is ours, not the five seconds after which Node may end', async () => {
  const connection = await NativeConnection.connect({ address });
  const worker = await createWorker({
    ...{
      connection,
      namespace,
      taskQueue: temporal.id('queue'),
      tools: [],
      grantKeys: () => [],
      proofKeys: () => [],
    },
    ...{ unsigned: 'allow', approvalTtlMs: 60_000, currentSpecHash: () => undefined, log: () => undefined },
    workflowBundle: { codePath: await testBundle() },
  });
  // the SDK hands the option on without naming it in its types: a release that stops must be noticed
  assert.equal((worker.options as { isolateExecutionTimeoutMs?: number }).isolateExecutionTimeoutMs, 60_000);
  const running = worker.run();
  worker.shutdown();
  await running;
  await connection.close();
});
