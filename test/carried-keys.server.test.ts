// P4 on a real server: keys over continue-as-new. Names count on, a grant holds in the next execution, what is
// underway ends before a run is carried, and a run that would begin its positions again is refused.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import type { TrailFact } from '../src/core/trail-fact.ts';
import { eventually } from './support/eventually.ts';
import { clientOf, decisionOn, factsOf, openGate, openGates, receiptOf } from './support/gates.ts';
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
await startWorker({ address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url });

const refund = (order: string, name = 'refund') => ({
  name,
  tool: 'payments.refund',
  arguments: { order, amount: '1.00' },
});

async function start(type: string, name: string, input: (runId: string) => object): Promise<string> {
  const runId = temporal.id(name);
  await client.workflow.start(type, { workflowId: runId, taskQueue, args: [input(runId)] });
  return runId;
}

/** Approves the gate at `position`, once it is open. */
async function approve(runId: string, position: string): Promise<string> {
  const gate = await eventually(
    async () => (await openGates(countersign, runId)).find((one) => one.position === position),
    { message: `the gate "${position}" in run "${runId}"` },
  );
  await countersign.sendDecision(runId, decisionOn(gate, 'approve'));
  return gate.root;
}

async function paid(order: string) {
  const lines = (await ledger.lines()).filter(({ body }) => (body as { order?: string }).order === order);
  return lines.map(({ key, outcome }) => [key, outcome]);
}

async function failureOf(runId: string) {
  const [end] = await factsOf(countersign, runId, 'run_finished');
  return end?.error;
}

test('P4: a name counts on over executions, so each round has a key of its own', async () => {
  const runId = await start('gateEachRound', 'rounds', (order) => ({ gate: refund(order), rounds: 3 }));
  const root = await approve(runId, 'refund');
  await approve(runId, 'refund#2');
  await approve(runId, 'refund#3');
  assert.equal(await client.workflow.getHandle(runId).result(), 'approved');
  assert.deepEqual(await paid(runId), [
    [`${root}:refund`, 'refunded'],
    [`${root}:refund#2`, 'refunded'],
    [`${root}:refund#3`, 'refunded'],
  ]);
});

test('P4: a grant that was handed to the next execution is the right to one effect there', async () => {
  const runId = await start('askThenAct', 'grant', (order) => ({ gate: refund(order) }));
  const root = await approve(runId, 'refund');
  const output = (await client.workflow.getHandle(runId).result()) as { refund?: string };
  assert.match(output.refund ?? '', /./);
  assert.deepEqual(await paid(runId), [[`${root}:refund`, 'refunded']]);
});

test('P4: a child run that continues as new keeps the root and the prefix of its keys', async () => {
  const order = temporal.id('order');
  const child = { child: 'gateEachRound', args: [{ gate: refund(order), rounds: 2 }] };
  const runId = await start('parentOf', 'parent', () => child);
  const root = await approve(`${runId}/sub`, 'refund');
  await approve(`${runId}/sub`, 'refund#2');
  assert.equal(await client.workflow.getHandle(runId).result(), 'approved');
  assert.equal(root, (await countersign.describeRun(runId))?.root);
  assert.deepEqual(await paid(order), [
    [`${root}:sub/refund`, 'refunded'],
    [`${root}:sub/refund#2`, 'refunded'],
  ]);
});

test('P4: an effect and a child run that are underway end before the run continues', async () => {
  const runId = await start('carryWhileUnderway', 'underway', (order) => ({
    gate: refund(order),
    child: refund(`${order}/child`),
  }));
  const first = (await client.workflow.getHandle(runId).describe()).runId;
  await ledger.hold();
  try {
    await approve(runId, 'refund');
    await eventually(async () => (await paid(runId)).length === 1, { message: 'the effect underway' });
    await client.workflow.getHandle(runId).signal('roll');
    await approve(`${runId}/sub`, 'refund');
    await eventually(async () => (await paid(`${runId}/child`)).length === 1);
    assert.equal((await client.workflow.getHandle(runId).describe()).runId, first);
  } finally {
    await ledger.release();
  }
  const outputs = (await client.workflow.getHandle(runId).result()) as unknown[];
  assert.equal(outputs.length, 2, JSON.stringify(outputs));
  assert.notEqual((await client.workflow.getHandle(runId).describe()).runId, first);
  assert.equal((await paid(runId)).length, 1);
  assert.equal((await paid(`${runId}/child`)).length, 1);
});

test('P4: what was carried by an earlier execution is refused, and nobody is asked', async () => {
  const runId = await start('wronglyCarried', 'stale', (order) => ({ gate: refund(order), rounds: 3 }));
  await approve(runId, 'refund');
  await approve(runId, 'refund#2');
  await assert.rejects(client.workflow.getHandle(runId).result());
  const error = await failureOf(runId);
  assert.equal(error?.['code'], 'invalid_start');
  assert.match(JSON.stringify(error?.['message']), /was carried by ..[^"]+", this execution continues /);
  assert.equal((await paid(runId)).length, 2);
});

test('P4: restore() after something was used is refused, and so is what carry() did not make', async () => {
  const late = await start('wronglyCarried', 'late', (order) => ({
    gate: refund(order),
    rounds: 2,
    late: true,
  }));
  await approve(late, 'refund');
  await assert.rejects(client.workflow.getHandle(late).result());
  assert.equal((await failureOf(late))?.['code'], 'invalid_start');
  assert.equal((await paid(late)).length, 1);

  for (const carried of [{}, 'x', { v: 1, kind: 'carried', root: randomUUID() }]) {
    const forged = await start('gateEachRound', 'forged', (order) => ({
      gate: refund(order),
      rounds: 1,
      carried,
    }));
    await assert.rejects(client.workflow.getHandle(forged).result());
    const error = await failureOf(forged);
    assert.equal(error?.['code'], 'invalid_start');
    assert.match(JSON.stringify(error?.['message']), /handed to restore\(\)/);
  }
});

test('a run that would carry more than 1 MiB is told what is large, and goes on where it is', async () => {
  const note = 'x'.repeat(250_000);
  const runId = await start('carriesTooMuch', 'large', (order) => ({
    gates: ['a', 'b', 'c', 'd', 'e'].map((name) => ({
      name,
      tool: 'payments.gift',
      arguments: { order, note },
    })),
  }));
  const gates = await openGates(countersign, runId, 5);
  await client.workflow.getHandle(runId).signal('roll');
  for (const gate of gates) await countersign.sendDecision(runId, decisionOn(gate, 'reject'));
  const result = (await client.workflow.getHandle(runId).result()) as { problem: string; states: string[] };
  assert.match(
    result.problem,
    /would carry has \d{7} bytes \(5 names, .*"a" with 25\d{4}.*the limit is 1048576/,
  );
  assert.deepEqual(result.states, Array(5).fill('rejected'));
});

async function roll(runId: string): Promise<void> {
  const handle = client.workflow.getHandle(runId);
  const before = (await handle.describe()).runId;
  await handle.signal('roll');
  await eventually(async () => (await handle.describe()).runId !== before);
}

test('P2: a carried gate that nobody asks for again is decided all the same, also after another continuation', async () => {
  const runId = await start('asksOnceThenWaits', 'unclaimed', (order) => ({ gate: refund(order) }));
  const gate = await openGate(countersign, runId);
  await roll(runId);
  const comment = decisionOn(gate, 'comment', { reason: 'seen' });
  await countersign.sendDecision(runId, comment);
  assert.equal((await receiptOf(countersign, comment, runId)).verdict, 'accepted');
  await roll(runId);
  assert.deepEqual(await openGate(countersign, runId), gate);
  const approve = decisionOn(gate, 'approve');
  await countersign.sendDecision(runId, approve);
  assert.equal((await receiptOf(countersign, approve, runId)).gate, 'approved');
  await roll(runId); // its end is still nobody's
  const late = decisionOn(gate, 'reject');
  await countersign.sendDecision(runId, late);
  assert.equal((await receiptOf(countersign, late, runId)).code, 'already_resolved');
  await client.workflow.getHandle(runId).signal('end');
  assert.equal(await client.workflow.getHandle(runId).result(), null);
  const types = (await countersign.readTrail(runId)).map(({ type }) => type);
  assert.deepEqual(types.filter((type) => type.startsWith('approval_')), [
    'approval_requested', 'approval_commented', 'approval_granted',
  ]); // prettier-ignore
  assert.deepEqual(await paid(runId), []);
});

test('P11: a carried gate is cancelled with the scope of who asks for it again, and with the run', async () => {
  const dropped = await start('asksOnceThenWaits', 'dropped', (order) => ({
    gate: refund(order),
    again: true,
  }));
  await openGate(countersign, dropped);
  await roll(dropped);
  await client.workflow.getHandle(dropped).signal('drop');
  assert.equal(await client.workflow.getHandle(dropped).result(), 'cancelled');
  assert.equal((await factsOf(countersign, dropped, 'approval_cancelled')).length, 1);

  const cancelled = await start('carriedGates', 'cancelled', (order) => ({ gates: [refund(order)] }));
  await openGate(countersign, cancelled);
  await roll(cancelled);
  await client.workflow.getHandle(cancelled).cancel();
  await client.workflow
    .getHandle(cancelled)
    .result()
    .catch(() => undefined);
  assert.equal((await factsOf(countersign, cancelled, 'approval_cancelled')).length, 1);
  assert.deepEqual([...(await paid(dropped)), ...(await paid(cancelled))], []);
});

test('P6: reset to before it continued: its gates are as they were, the keys too, and the trail has both stories', async () => {
  const runId = await start('carriedGates', 'reset', (order) => ({
    gates: ['a', 'b'].map((name) => ({ ...refund(`${order}/${name}`, name), ttl: '1h' })),
    lingerMs: 3_600_000,
  }));
  const [a, b] = await openGates(countersign, runId, 2);
  assert.ok(a && b);
  const handle = client.workflow.getHandle(runId);
  const first = (await handle.describe()).runId;
  const reject = decisionOn(b, 'reject');
  await countersign.sendDecision(runId, reject);
  await receiptOf(countersign, reject, runId);
  await handle.signal('roll');
  const second = await eventually(async () => {
    const { runId: now } = await handle.describe();
    return now !== first && now;
  });
  const approved = decisionOn(a, 'approve');
  await countersign.sendDecision(runId, approved);
  await eventually(async () => (await factsOf(countersign, runId, 'tool_result')).length === 1);

  // to the task that took the rejection, which is done again: both gates are open there
  const { events } = await fetchHistory(client, runId, first);
  const signaled = events?.findIndex((event) => event.workflowExecutionSignaledEventAttributes) ?? -1;
  const before = events?.slice(signaled).find((event) => event.workflowTaskCompletedEventAttributes);
  assert.ok(before?.eventId);
  await client.workflowService.resetWorkflowExecution({
    namespace,
    workflowExecution: { workflowId: runId, runId: first },
    workflowTaskFinishEventId: before.eventId,
    requestId: randomUUID(),
    reason: 'a test',
  });
  // Temporal applies the signals again, those of the later execution too: the same decisions on the same gates
  await eventually(
    async () => {
      const facts = await countersign.readTrail(runId);
      const since = facts.slice(facts.findIndex(({ type }) => type === 'run_reset'));
      return ['approval_granted', 'approval_rejected', 'tool_result'].every((type) =>
        since.some((fact) => fact.type === type),
      );
    },
    { message: 'both decisions applied again' },
  );
  assert.deepEqual(await paid(`${runId}/a`), [
    [`${a.root}:a`, 'refunded'],
    [`${a.root}:a`, 'replayed'],
  ]);
  assert.deepEqual(await paid(`${runId}/b`), []);

  const facts = await countersign.readTrail(runId);
  assert.deepEqual(facts.map(({ seq }) => seq), facts.map((_fact, index) => index + 1)); // prettier-ignore
  const told = (list: readonly TrailFact[]) =>
    list
      .filter(({ type }) => !['signal_ignored', 'run_continued', 'run_terminated'].includes(type))
      .map(({ type, position }) => `${type} ${position ?? ''}`);
  const cut = facts.filter(({ superseded }) => superseded);
  assert.deepEqual(told(cut), [
    'approval_rejected b',
    'approval_granted a',
    'effect_started a',
    'tool_result a',
  ]);
  assert.ok(
    cut.some(({ temporalRunId }) => temporalRunId === second),
    'the later execution is in it',
  );
  const now = facts.filter(({ superseded }) => superseded !== true);
  assert.deepEqual(told(now).sort(), [
    'approval_granted a', 'approval_rejected b', 'approval_requested a', 'approval_requested b', 'effect_started a', 'run_reset ', 'run_started ',
    'tool_result a',
  ]); // prettier-ignore
  await handle.terminate();
});
