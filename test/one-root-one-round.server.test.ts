// P4: the ways of Temporal to run again under the same root would use the first round's keys again; a run
// started so is refused before anything happens.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clientOf, decisionOn, factsOf, openGate } from './support/gates.ts';
import { startLedger } from './support/ledger.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { startWorker } from './support/worker.ts';

const temporal = await openTemporal();
const { address, namespace, taskQueue, client } = temporal;
const countersign = clientOf(temporal);
const ledger = await startLedger();
const { path: secretsFile } = await makeSecrets();
await startWorker({ address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url });

const gateFor = (order: string) => ({
  name: 'refund',
  tool: 'payments.refund',
  arguments: { order, amount: '1.00' },
});

async function failureOf(runId: string) {
  const [end] = await factsOf(countersign, runId, 'run_finished');
  return end?.error;
}

for (const workflowType of ['oneGated', 'runSpec']) {
  test(`${workflowType} with a workflow retry policy fails by name, and nobody is asked (P4)`, async () => {
    const runId = temporal.id('retry');
    const options = { workflowId: runId, taskQueue, args: [gateFor(runId)], retry: { maximumAttempts: 2 } };
    const handle = await client.workflow.start(workflowType, options);
    await assert.rejects(handle.result());
    const error = await failureOf(runId);
    assert.equal(error?.['code'], 'invalid_start');
    assert.match(JSON.stringify(error?.['message']), /retry policy/);
    assert.deepEqual((await countersign.describeRun(runId))?.approvals, []);
  });
}

test('a workflow that continues as new after a gate is refused in its second round, and pays once (P4)', async () => {
  const runId = temporal.id('continued');
  const args = [{ gate: gateFor(runId), rounds: 2 }];
  const handle = await client.workflow.start('continuedGate', { workflowId: runId, taskQueue, args });
  const gate = await openGate(countersign, runId);
  await countersign.sendDecision(runId, decisionOn(gate, 'approve'));
  await assert.rejects(handle.result());
  assert.equal((await failureOf(runId))?.['code'], 'invalid_start');
  const paid = (await ledger.lines()).filter(({ body }) => (body as { order: string }).order === runId);
  assert.equal(paid.length, 1);
});
