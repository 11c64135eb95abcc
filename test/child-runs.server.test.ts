// Child runs: gates with keys of their own, effects with keys of the top run, over a reset of the parent
// with the child open and with it finished (CASES 29, 30).
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { clientOf, decisionOn, factsOf, openGate, receiptOf } from './support/gates.ts';
import { eventually } from './support/eventually.ts';
import { fetchHistory } from './support/history.ts';
import { startLedger } from './support/ledger.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { startWorker } from './support/worker.ts';

const temporal = await openTemporal();
const { address, namespace, taskQueue, client } = temporal;
const countersign = clientOf(temporal);
const ledger = await startLedger();
const { path: secretsFile } = await makeSecrets();
const worker = await startWorker({ address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url });
after(() => worker.stop());

const hour = 3_600_000;
const refund = (order: string) => ({
  name: 'refund',
  tool: 'payments.refund',
  arguments: { order, amount: '1.00' },
});

async function startParent(name: string, child: string, args: unknown[]): Promise<string> {
  const runId = temporal.id(name);
  await client.workflow.start('parentOf', {
    workflowId: runId,
    taskQueue,
    args: [{ child, args, pauseMs: hour }],
  });
  return runId;
}

async function approve(runId: string): Promise<{ root: string; key: string }> {
  const gate = await openGate(countersign, runId);
  const decision = decisionOn(gate, 'approve');
  assert.equal(await countersign.sendDecision(runId, decision), true);
  await receiptOf(countersign, decision, runId);
  return gate;
}

/** Resets to the end of the first workflow task: before the child was started. */
async function resetToStart(runId: string): Promise<void> {
  const history = await fetchHistory(client, runId);
  const first = history.events?.find((event) => event.workflowTaskCompletedEventAttributes);
  const { runId: temporalRunId } = await client.workflow.getHandle(runId).describe();
  await client.workflowService.resetWorkflowExecution({
    namespace,
    workflowExecution: { workflowId: runId, runId: temporalRunId },
    workflowTaskFinishEventId: first?.eventId ?? null,
    requestId: temporal.id('reset'),
    reason: 'test',
  });
}

/** The keys that the list of waiting runs has for a run; visibility lags behind, so it is asked until there. */
function listedKeys(runId: string): Promise<string[]> {
  return eventually(async () => {
    let cursor: string | undefined;
    do {
      const page = await countersign.listAwaiting({ pageSize: 20, ...(cursor ? { cursor } : {}) });
      const run = page.runs.find((one) => one.runId === runId);
      if (run !== undefined) return run.approvals.map(({ key }) => key);
      cursor = page.cursor;
    } while (cursor !== undefined);
    return undefined;
  });
}

const linesOf = async (order: string) =>
  (await ledger.lines()).filter(({ body }) => (body as { order: string }).order === order);

test('P4: a child at depth two: its gate is in the list, its effect has the root of the top run (case 30)', async () => {
  const order = temporal.id('order');
  const runId = await startParent('depth', 'parentOf', [{ child: 'oneGated', args: [refund(order)] }]);
  const root = (await countersign.describeRun(runId))?.root;
  const leaf = `${runId}/sub/sub`;
  const { key } = await openGate(countersign, leaf);
  assert.deepEqual(await listedKeys(leaf), [key]);
  const gate = await approve(leaf);
  assert.equal(gate.root, root);
  await client.workflow.getHandle(leaf).result();
  assert.deepEqual(
    (await linesOf(order)).map(({ key }) => key),
    [`${root}:sub/sub/refund`],
  );
  const [started] = await factsOf(countersign, leaf, 'effect_started');
  assert.equal(started?.idempotencyKey, `${root}:sub/sub/refund`);
  await client.workflow.getHandle(runId).terminate();
});

test('P2: one tool and one name in a run, its child and its child: each is decided by its key, earlier steps run once (case 30)', async () => {
  const order = temporal.id('order');
  const notice = (at: string) => ({
    name: 'tell',
    tool: 'notify.send',
    arguments: { order: `${order}/tell-${at}` },
  });
  const level = (at: string, child?: object) => ({
    before: notice(at),
    gate: refund(`${order}/${at}`),
    ...(child === undefined ? {} : { child }),
  });
  const runId = temporal.id('three');
  await client.workflow.start('gateAndChild', {
    workflowId: runId,
    taskQueue,
    args: [level('top', level('middle', level('leaf')))],
  });
  const ids = { top: runId, middle: `${runId}/sub`, leaf: `${runId}/sub/sub` };
  const gates = {
    top: await openGate(countersign, ids.top),
    middle: await openGate(countersign, ids.middle),
    leaf: await openGate(countersign, ids.leaf),
  };
  const { root } = gates.top;
  for (const [at, { key, position }] of Object.entries(gates)) {
    assert.equal(position, 'refund');
    assert.deepEqual(await listedKeys(ids[at as keyof typeof ids]), [key]);
  }
  const paid = async () => {
    const lines = await ledger.lines();
    const own = lines.filter(({ body }) => (body as { order: string }).order.startsWith(order));
    return own
      .map(({ key, body }) => [(body as { order: string }).order.slice(order.length + 1), key])
      .sort();
  };
  const told = [
    ['tell-leaf', `${root}:sub/sub/tell`],
    ['tell-middle', `${root}:sub/tell`],
    ['tell-top', `${root}:tell`],
  ];
  assert.deepEqual(await paid(), told);
  // sent to the wrong run, a decision is for nobody
  const stray = decisionOn(gates.leaf, 'approve');
  await countersign.sendDecision(ids.middle, stray);
  assert.equal((await receiptOf(countersign, stray, ids.middle)).code, 'unknown_key');

  await countersign.sendDecision(ids.leaf, decisionOn(gates.leaf, 'approve'));
  await client.workflow.getHandle(ids.leaf).result();
  assert.deepEqual(await paid(), [['leaf', `${root}:sub/sub/refund`], ...told]);
  await countersign.sendDecision(ids.middle, decisionOn(gates.middle, 'reject'));
  await client.workflow.getHandle(ids.middle).result();
  await countersign.sendDecision(ids.top, decisionOn(gates.top, 'approve'));
  assert.deepEqual(await client.workflow.getHandle(runId).result(), ['approved', ['rejected', ['approved']]]);
  assert.deepEqual(
    await paid(),
    [['leaf', `${root}:sub/sub/refund`], ...told, ['top', `${root}:refund`]].sort(),
  );
});

test('P4: a parent reset with its child finished: the child runs again on the same key, paid once (case 29)', async () => {
  const order = temporal.id('order');
  const runId = await startParent('finished', 'oneGated', [refund(order)]);
  const child = `${runId}/sub`;
  const { root } = await approve(child);
  await client.workflow.getHandle(child).result();
  const before = (await client.workflow.getHandle(child).describe()).runId;
  await resetToStart(runId);
  await eventually(async () => (await client.workflow.getHandle(child).describe()).runId !== before);
  const again = await approve(child);
  assert.equal(again.root, root);
  await client.workflow.getHandle(child).result();
  const lines = await linesOf(order);
  assert.deepEqual(
    lines.map(({ key, outcome }) => ({ key, outcome })),
    [
      { key: `${root}:sub/refund`, outcome: 'refunded' },
      { key: `${root}:sub/refund`, outcome: 'replayed' },
    ],
  );
  await client.workflow.getHandle(runId).terminate();
});

test('P4: a parent reset with its child open: the old child ends, the new one asks again (case 29)', async () => {
  const order = temporal.id('order');
  const runId = await startParent('open', 'oneGated', [refund(order)]);
  const child = `${runId}/sub`;
  const first = await openGate(countersign, child);
  const before = (await client.workflow.getHandle(child).describe()).runId;
  await resetToStart(runId);
  await eventually(async () => (await client.workflow.getHandle(child).describe()).runId !== before);
  const again = await approve(child);
  assert.equal(again.root, first.root);
  await client.workflow.getHandle(child).result();
  assert.deepEqual(
    (await linesOf(order)).map(({ key }) => key),
    [`${first.root}:sub/refund`],
  );
  await client.workflow.getHandle(runId).terminate();
});
