// P5 on a real server: a target that forgets keys after a while (`keyTtl`), and a workflow reset. The run does not
// see the attempts that it was reset from, so after the key's life a person is asked before the next one.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import type { Spec } from '../src/core/spec/spec.ts';
import { eventually } from './support/eventually.ts';
import { clientOf, decisionOn, factsOf, openGates } from './support/gates.ts';
import { fetchHistory } from './support/history.ts';
import { startLedger } from './support/ledger.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { testTools } from './support/tools.ts';
import { startWorker } from './support/worker.ts';

const temporal = await openTemporal();
const { address, namespace, taskQueue, client } = temporal;
const countersign = clientOf(temporal);
const ledger = await startLedger();
const { path: secretsFile } = await makeSecrets();
const keyTtlMs = 2_000;
const [notify] = testTools(ledger.url).filter(({ name }) => name === 'notify.send');
assert.ok(notify);
const tools = [
  ...testTools(ledger.url),
  { ...notify, name: 'forgetful', keyTtl: keyTtlMs },
  { ...notify, name: 'faithful', keyTtl: '30d' },
];
await startWorker({ address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url }, { tools });

async function sentFor(order: string) {
  const lines = (await ledger.lines()).filter(({ body }) => (body as { order?: string }).order === order);
  return lines.map(({ key, outcome }) => [key, outcome]);
}

/** Waits until the key of what was sent first is older than the target remembers it. */
async function outlive(order: string): Promise<void> {
  await eventually(async () => {
    const [first] = (await ledger.lines()).filter(({ body }) => (body as { order?: string }).order === order);
    return first !== undefined && Date.now() - Date.parse(first.time) > keyTtlMs;
  });
}

/** Takes the execution (default: the current one) back to its first workflow task. */
async function resetToStart(workflowId: string, runId?: string): Promise<void> {
  const { events } = await fetchHistory(client, workflowId, runId);
  const first = events?.find((event) => event.workflowTaskCompletedEventAttributes);
  assert.ok(first?.eventId);
  await client.workflowService.resetWorkflowExecution({
    namespace,
    workflowExecution: { workflowId, ...(runId === undefined ? {} : { runId }) },
    workflowTaskFinishEventId: first.eventId,
    requestId: randomUUID(),
    reason: 'a test',
  });
}

/** The question that stands in the place of the effect; a person says that it did not happen, and it is tried. */
async function askedThenDone(runId: string, position: string, order: string, key: string): Promise<void> {
  const [gate] = await openGates(countersign, runId);
  assert.equal(gate?.position, `${position}/in-doubt`);
  assert.equal((await sentFor(order)).length, 1, 'no attempt was made');
  const doubt = (await factsOf(countersign, runId, 'effect_in_doubt')).at(-1);
  assert.match(doubt?.message ?? '', /attempt 1 was not made: the run was reset and began \d+ s ago/);
  await countersign.sendDecision(runId, decisionOn(gate, 'approve'));
  await client.workflow.getHandle(runId).result();
  assert.deepEqual(await sentFor(order), [
    [key, 'refunded'],
    [key, 'replayed'],
  ]);
}

/** A run of one ungated effect. */
async function start(kind: 'runSpec' | 'own', tool: string): Promise<{ runId: string; key: string }> {
  const runId = temporal.id('key-life');
  const call = { tool, arguments: { order: runId } };
  const spec: Spec = { version: 1, name: 'key-life', steps: [{ id: 'tell', tool, with: call.arguments }] };
  const ofSpec = { v: 1, spec, input: {}, trigger: {}, startedBy: {} };
  const own = { before: { name: 'tell', ...call }, gates: [] };
  const handle = await client.workflow.start(kind === 'own' ? 'effectThenGates' : 'runSpec', {
    ...{ workflowId: runId, taskQueue },
    args: [kind === 'own' ? own : ofSpec],
  });
  await handle.result();
  return { runId, key: `${handle.firstExecutionRunId}:tell` };
}

for (const kind of ['runSpec', 'own'] as const) {
  test(`P5: after a reset there is no automatic attempt under a key that the target may have forgotten (${kind})`, async () => {
    const { runId, key } = await start(kind, 'forgetful');
    await outlive(runId);
    await resetToStart(runId);
    await askedThenDone(runId, 'tell', runId, key);
  });

  test(`P4: after a reset a key that the target still knows is sent again by itself (${kind})`, async () => {
    const { runId, key } = await start(kind, 'faithful');
    await resetToStart(runId);
    await eventually(async () => (await sentFor(runId)).length === 2);
    await client.workflow.getHandle(runId).result();
    assert.deepEqual(await sentFor(runId), [
      [key, 'refunded'],
      [key, 'replayed'],
    ]);
  });
}

test('P5: a run that continues as new after a reset remembers that its keys may be old', async () => {
  const runId = temporal.id('key-life-continued');
  const order = `${runId}/second`;
  const steps = [
    { id: 'first', tool: 'notify.send', with: { order: `${runId}/first` } },
    { id: 'second', tool: 'forgetful', with: { order } },
  ];
  const spec: Spec = { version: 1, name: 'key-life', steps };
  const input = { v: 1, spec, input: {}, trigger: {}, startedBy: {}, continueAfterEvents: 1 };
  const handle = await client.workflow.start('runSpec', { workflowId: runId, taskQueue, args: [input] });
  const root = handle.firstExecutionRunId;
  await handle.result();
  assert.notEqual((await client.workflow.getHandle(runId).describe()).runId, root);
  await outlive(order);
  await resetToStart(runId, root);
  await askedThenDone(runId, 'second', order, `${root}:second`);
});

test('P5: a child of a parent that was reset knows that its keys may be old', async () => {
  const order = temporal.id('order');
  const runId = temporal.id('key-life-parent');
  const before = { name: 'tell', tool: 'forgetful', arguments: { order } };
  const child = { child: 'effectThenGates', args: [{ before, gates: [] }] };
  const handle = await client.workflow.start('parentOf', { workflowId: runId, taskQueue, args: [child] });
  await handle.result();
  await outlive(order);
  await resetToStart(runId);
  await askedThenDone(`${runId}/sub`, 'tell', order, `${handle.firstExecutionRunId}:sub/tell`);
});
