// P2 and P6 on a real server: one decision wins, the others are refused, answered and recorded; and what
// one gate costs in events and workflow tasks (DESIGN §3).
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { fetchHistory, historyCounts } from './support/history.ts';
import { clientOf, decisionOn, factsOf, openGate, openGates, receiptOf, startSpec } from './support/gates.ts';
import { startLedger } from './support/ledger.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { startWorker } from './support/worker.ts';
import type { Spec } from '../src/core/spec/spec.ts';

const temporal = await openTemporal();
const { client } = temporal;
const countersign = clientOf(temporal);
const ledger = await startLedger();
const { address, namespace, taskQueue } = temporal;
const { path: secretsFile } = await makeSecrets();
const worker = await startWorker({ address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url });
after(() => worker.stop());

const refundSpec: Spec = {
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

async function startRefund(name: string): Promise<string> {
  const runId = temporal.id(name);
  await startSpec(countersign, runId, refundSpec, { order: runId });
  return runId;
}

test('an approved payload runs once, and costs at most 23 events and 3 workflow tasks', async () => {
  const runId = await startRefund('approve');
  const gate = await openGate(countersign, runId);
  const approve = decisionOn(gate, 'approve', { reason: 'the parcel was damaged' });
  assert.equal(await countersign.sendDecision(runId, approve), true);
  assert.deepEqual(await client.workflow.getHandle(runId).result(), { status: 'completed' });

  const lines = (await ledger.lines()).filter(({ body }) => (body as { order: string }).order === runId);
  assert.deepEqual(
    lines.map(({ key, outcome, body }) => ({ key, outcome, body })),
    [
      {
        key: `${gate.root}:refund`,
        outcome: 'refunded',
        body: { order: runId, amount: '10.00', currency: 'EUR' },
      },
    ],
  );
  const [granted] = await factsOf(countersign, runId, 'approval_granted');
  assert.deepEqual(granted?.decision, approve);
  assert.deepEqual(granted?.by, { id: 'ann', verified: false });

  const counts = historyCounts(await fetchHistory(client, runId));
  assert.ok(counts.events <= 23, `${counts.events} events`);
  assert.ok(counts.workflowTasks <= 3, `${counts.workflowTasks} workflow tasks`);
});

test('an own workflow with one gated() costs at most 33 events and 5 workflow tasks', async () => {
  const runId = temporal.id('own');
  const gateInput = { name: 'refund', tool: 'payments.refund', arguments: { order: runId, amount: '1.00' } };
  const handle = await client.workflow.start('oneGated', { workflowId: runId, taskQueue, args: [gateInput] });
  const gate = await openGate(countersign, runId);
  assert.equal(await countersign.sendDecision(runId, decisionOn(gate, 'approve')), true);
  const result = (await handle.result()) as { state: string; output?: { refund?: string } };
  assert.equal(result.state, 'approved');
  assert.match(result.output?.refund ?? '', /./);
  const counts = historyCounts(await fetchHistory(client, runId));
  assert.ok(counts.events <= 33, `${counts.events} events`);
  assert.ok(counts.workflowTasks <= 5, `${counts.workflowTasks} workflow tasks`);
});

test('a second decision on a settled gate changes nothing, and is refused by name', async () => {
  const runId = temporal.id('second');
  const gateInput = { name: 'refund', tool: 'payments.refund', arguments: { order: runId, amount: '1.00' } };
  const args = [{ ...gateInput, lingerMs: 3_600_000 }];
  const handle = await client.workflow.start('oneGated', { workflowId: runId, taskQueue, args });
  const gate = await openGate(countersign, runId);
  const reject = decisionOn(gate, 'reject', { by: { id: 'bob' }, reason: 'not damaged' });
  await countersign.sendDecision(runId, reject);
  assert.equal((await receiptOf(countersign, reject, runId)).verdict, 'accepted');

  const approve = decisionOn(gate, 'approve');
  await countersign.sendDecision(runId, approve);
  const receipt = await receiptOf(countersign, approve, runId);
  assert.equal(receipt.code, 'already_resolved');
  assert.equal(receipt.gate, 'rejected');
  assert.equal(receipt.settlement?.by?.id, 'bob');

  // the winner again, to the letter: the same answer, no new fact
  await countersign.sendDecision(runId, reject);
  assert.equal((await receiptOf(countersign, reject, runId)).verdict, 'accepted');
  assert.equal((await factsOf(countersign, runId, 'approval_rejected')).length, 1);
  const refused = await factsOf(countersign, runId, 'decision_refused');
  assert.deepEqual(
    refused.map(({ code, decision }) => ({ code, id: decision?.decisionId })),
    [{ code: 'already_resolved', id: approve.decisionId }],
  );
  assert.equal(
    (await ledger.lines()).filter(({ body }) => (body as { order: string }).order === runId).length,
    0,
  );
  await handle.terminate();
});

test('ten gates side by side take thirty decisions: each gate has its one winner', async () => {
  const runId = temporal.id('ten');
  const gates = Array.from({ length: 10 }, (_, index) => ({
    name: `pay/item-${index}`,
    tool: 'payments.refund',
    arguments: { order: `${runId}/${index}`, amount: '1.00' },
  }));
  const handle = await client.workflow.start('gatesSideBySide', {
    workflowId: runId,
    taskQueue,
    args: [{ gates }],
  });
  const seen = await openGates(countersign, runId, 10);
  assert.equal(new Set(seen.map(({ key }) => key)).size, 10);
  const decisions = seen.flatMap((gate, index) => [
    decisionOn(gate, index % 2 === 0 ? 'approve' : 'reject', { by: { id: 'first' } }),
    decisionOn(gate, 'approve', { by: { id: 'second' } }),
    decisionOn(gate, 'reject', { by: { id: 'third' } }),
  ]);
  await Promise.all(decisions.map((decision) => countersign.sendDecision(runId, decision)));
  const states = (await handle.result()) as string[];
  const facts = await countersign.readTrail(runId);
  const won = facts.filter(({ type }) => type === 'approval_granted' || type === 'approval_rejected');
  assert.equal(won.length, 10);
  const approved = states.filter((state) => state === 'approved').length;
  const paid = (await ledger.lines()).filter(({ body }) =>
    (body as { order: string }).order.startsWith(runId),
  );
  assert.equal(paid.length, approved);
  assert.equal(new Set(paid.map(({ key }) => key)).size, approved);
});
