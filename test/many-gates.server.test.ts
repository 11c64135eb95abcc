// 200 gates in one run on a real server: each is listed, each is decided, and the memo that holds them stays
// within what Temporal takes and a list can carry.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startApi } from './support/api-server.ts';
import { eventually } from './support/eventually.ts';
import { clientOf, openGates } from './support/gates.ts';
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

/** Without a cache each decision replays all gates, which is what it costs there: 40 show the same. */
const count = process.env['COUNTERSIGN_TEST_CACHE'] === '0' ? 40 : 200;
/** DESIGN §8: at most 400 bytes a pending gate, beside the name of its field. */
const bytesPerGate = 400;
/** Of the settled ones the newest 20 stay. */
const settledKept = 20;

test('P2: 200 pending gates in one run: each is listed, each is decided, and the memo keeps within its limit (case 49)', async () => {
  const runId = temporal.id('many');
  const gates = Array.from({ length: count }, (_, index) => ({
    name: `pay/item-${index}`,
    tool: 'payments.refund',
    // the longest title there may be in a memo
    title: `Refund ${index} `.padEnd(500, 'é'),
    arguments: { order: `${runId}/${index}`, amount: '1.00' },
  }));
  const handle = await client.workflow.start('gatesSideBySide', {
    workflowId: runId,
    taskQueue,
    args: [{ gates }],
  });
  // each look reads the whole memo
  const isOpen = async () => (await countersign.describeRun(runId))?.approvals.length === count;
  await eventually(isOpen, { pauseMs: 500, timeoutMs: 180_000, message: 'all gates are open' });
  const seen = await openGates(countersign, runId, count);
  assert.equal(new Set(seen.map(({ key }) => key)).size, count);
  assert.ok((await memoBytes(runId)) <= count * (bytesPerGate + 40), 'the memo of pending gates');

  type Row = { key: string; runId: string; state: string };
  const ofRun = await api.call('GET', `/approvals?run=${runId}`);
  const keys = (ofRun.body['approvals'] as Row[]).map(({ key }) => key);
  assert.deepEqual(keys.toSorted(), seen.map(({ key }) => key).toSorted());
  // the index may lag behind the last gates
  const listed = await eventually(async () => {
    const rows = await api.find('/approvals', (row) => row['runId'] === runId);
    return rows.length === count ? rows : undefined;
  });
  assert.ok(listed.every(({ state }) => state === 'pending'));

  // ten at a time, by both, each on its own hash
  for (let from = 0; from < count; from += 10) {
    const answers = await Promise.all(
      seen.slice(from, from + 10).map(async (gate, index) => {
        const as = index % 2 === 0 ? 'ann' : 'bob';
        return api.final(await (index % 3 === 0 ? api.reject(gate, { as }) : api.approve(gate, { as })), {
          as,
        });
      }),
    );
    for (const { status, text } of answers) assert.equal(status, 200, text);
  }
  const states = (await handle.result()) as string[];
  const approved = states.filter((state) => state === 'approved').length;
  assert.deepEqual(
    [approved, states.filter((state) => state === 'rejected').length],
    [count - (count / 10) * 4, (count / 10) * 4],
  );
  const paid = (await ledger.lines()).filter(({ body }) =>
    (body as { order: string }).order.startsWith(runId),
  );
  assert.equal(paid.length, approved);
  assert.equal(new Set(paid.map(({ key }) => key)).size, approved);
  assert.ok((await memoBytes(runId)) <= settledKept * (bytesPerGate + 40), 'the memo of settled gates');
  const kept = (await countersign.describeRun(runId))?.approvals ?? [];
  assert.equal(kept.length, settledKept);
  // what the memo forgot, the trail still tells
  const forgotten = seen.find(({ key }) => !kept.some((entry) => entry.key === key));
  assert.ok(forgotten !== undefined);
  assert.notEqual((await api.call('GET', `/approvals/${forgotten.key}`)).body['state'], 'pending');
});

async function memoBytes(runId: string): Promise<number> {
  const { raw } = await client.workflow.getHandle(runId).describe();
  const fields = Object.entries(raw.workflowExecutionInfo?.memo?.fields ?? {});
  return fields.reduce((sum, [name, { data }]) => sum + name.length + (data?.length ?? 0), 0);
}
