import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startApi } from './support/api-server.ts';
import { clientOf } from './support/gates.ts';
import { fetchHistory, eventTypes } from './support/history.ts';
import { startGate } from './support/refund-gates.ts';
import { startLedger } from './support/ledger.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { startWorker } from './support/worker.ts';
const temporal = await openTemporal();
const { client, address, namespace, taskQueue } = temporal;
const countersign = clientOf(temporal);
const ledger = await startLedger();
const { path: secretsFile } = await makeSecrets();
const api = await startApi(temporal, { secretsFile });
await startWorker({ address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url });

test('x', { timeout: 100_000 }, async () => {
  const par = Number(process.env['PAR']); const t0 = performance.now(); let timeouts = 0; let n = 0; let slow = 0;
  for (let r = 0; r < Math.ceil(20 / par); r++) {
    await Promise.all(Array.from({ length: par }, async () => {
      const t = performance.now();
      const gate = await startGate(temporal, countersign, 'zz');
      await api.approve(gate);
      await client.workflow.getHandle(gate.runId).result();
      slow = Math.max(slow, performance.now() - t);
      timeouts += eventTypes(await fetchHistory(client, gate.runId)).filter((t) => t === 'WorkflowTaskTimedOut').length; n++;
    }));
  }
  console.error('PAR', par, 'cache', process.env['COUNTERSIGN_TEST_CACHE'], 'runs', n, 'timeouts', timeouts, 'slowest', Math.round(slow), 'total', Math.round(performance.now() - t0));
});
