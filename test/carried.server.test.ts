import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clientOf, decisionOn, factsOf, openGates } from './support/gates.ts';
import { startLedger } from './support/ledger.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { startWorker } from './support/worker.ts';
import { eventually } from './support/eventually.ts';

const temporal = await openTemporal();
const { address, namespace, taskQueue, client } = temporal;
const countersign = clientOf(temporal);
const ledger = await startLedger();
const { path: secretsFile } = await makeSecrets();
await startWorker({ address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url });

for (const plain of [false, true]) {
test(`smoke ${plain}`, async () => {
  const runId = temporal.id('carried');
  const gates = ['a', 'b'].map((name) => ({ name, tool: 'payments.refund', arguments: { order: `${runId}/${name}`, amount: '1.00' }, ttl: '1h' }));
  const handle = await client.workflow.start('carriedGates', { workflowId: runId, taskQueue, args: [{ gates, plain }] });
  const seen = await openGates(countersign, runId, 2);
  const first = (await handle.describe()).runId;
  await handle.signal('roll');
  await eventually(async () => (await handle.describe()).runId !== first);
  console.log((await handle.describe()).memo, (await countersign.describeRun(runId)));
  const again = await openGates(countersign, runId, 2);
  assert.deepEqual(again, seen);
  for (const gate of again) await countersign.sendDecision(runId, decisionOn(gate, 'approve'));
  console.log(await client.workflow.getHandle(runId).result());
  console.log((await countersign.readTrail(runId)).map((f) => [f.seq, f.type, f.position, f.temporalRunId === first]));
  console.log((await handle.describe()).memo);
});
}
