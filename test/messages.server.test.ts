// P8 on a real server: no message can hurt a run. Whatever is sent by whoever can reach the namespace, the
// run stays healthy, the next good decision works, and the trail says what came.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startApi } from './support/api-server.ts';
import { eventually } from './support/eventually.ts';
import { clientOf, decisionOn, openGate, receiptOf, type SeenGate } from './support/gates.ts';
import { fetchHistory, taskFailures } from './support/history.ts';
import {
  badHeader,
  hostileSignals,
  payload,
  sendRaw,
  type HostileSignal,
} from './support/hostile-signals.ts';
import { startLedger } from './support/ledger.ts';
import { linesOf, startGate } from './support/refund-gates.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { startWorker } from './support/worker.ts';
import { approvalKey } from '../src/core/approval-key.ts';
import { hashPayload } from '../src/core/hash.ts';
import { signalNames } from '../src/core/names.ts';
import type { TrailFact } from '../src/core/trail-fact.ts';

const temporal = await openTemporal();
const { client, address, namespace, taskQueue } = temporal;
const countersign = clientOf(temporal);
const ledger = await startLedger();
const { path: secretsFile } = await makeSecrets();
const api = await startApi(temporal, { secretsFile });
await startWorker({ address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url });

const start = (name: string): Promise<SeenGate> => startGate(temporal, countersign, name);

/** The gate that a run will open at `refund`, and what it will be about: all of it can be foretold. */
async function foretold(runId: string): Promise<SeenGate> {
  const run = await countersign.describeRun(runId);
  assert.ok(run);
  const { root } = run;
  const tool = 'payments.refund';
  const { hash } = hashPayload({ tool, arguments: { order: runId, amount: '10.00', currency: 'EUR' } });
  const position = 'refund';
  return { runId, root, position, key: approvalKey({ workflowId: runId, position, root }), hash };
}

const gateInput = (runId: string) => ({
  name: 'refund',
  tool: 'payments.refund',
  arguments: { order: runId, amount: '10.00' },
});

async function refundsOf(runId: string): Promise<number> {
  return (await linesOf(ledger, runId)).length;
}

async function sendAll(runId: string, signals: readonly HostileSignal[]): Promise<void> {
  for (const signal of signals) await sendRaw(temporal, runId, signal);
}

async function assertHealthy(runId: string): Promise<void> {
  assert.deepEqual(taskFailures(await fetchHistory(client, runId)), []);
}

/** Each signal that was sent, in its order, has its one fact: refused with that code, or ignored. */
async function assertRecorded(
  runId: string,
  sent: readonly HostileSignal[],
  expected: (signal: HostileSignal) => HostileSignal['expected'] = (signal) => signal.expected,
  signalsBefore = 0,
): Promise<void> {
  const { events = [] } = await fetchHistory(client, runId);
  const arrived = (events ?? []).filter((event) => event.workflowExecutionSignaledEventAttributes);
  const ids = arrived.map(({ eventId }) => Number(eventId)).slice(signalsBefore);
  const trail = await countersign.readTrail(runId);
  const said = sent.map((signal, index) => {
    const facts = trail.filter((fact) => isAbout(fact, signal, ids[index]));
    const words = facts.map((fact) => (fact.type === 'decision_refused' ? fact.code : 'ignored'));
    return `${signal.title}: ${words.join(' and ')}`;
  });
  assert.deepEqual(
    said,
    sent.map((signal) => `${signal.title}: ${expected(signal)}`),
  );
}

function isAbout(fact: TrailFact, { decisionId }: HostileSignal, eventId: number | undefined): boolean {
  if (fact.type === 'signal_ignored') return fact.eventId === eventId;
  if (fact.type !== 'decision_refused') return false;
  if (decisionId === undefined) return fact.eventId === eventId;
  return fact.decision?.decisionId === decisionId;
}

test('P8: no malformed signal hurts a spec run whose gate is open', async () => {
  const gate = await start('hostile-spec');
  const signals = hostileSignals(gate);
  await sendAll(gate.runId, signals);
  const view = await api.call('GET', `/approvals/${gate.key}`);
  assert.equal(view.body['state'], 'pending');
  assert.equal((await api.approve(gate)).status, 200);
  assert.deepEqual(await client.workflow.getHandle(gate.runId).result(), { status: 'completed' });
  await assertHealthy(gate.runId);
  await assertRecorded(gate.runId, signals);
  assert.equal(await refundsOf(gate.runId), 1);
});

test('P8: no malformed signal hurts an own workflow: before it asks, while it asks, and after', async () => {
  const runId = temporal.id('hostile-own');
  const input = { gates: [{ ...gateInput(runId), lingerMs: 0 }] };
  const handle = await client.workflow.start('gatesAfterGo', { workflowId: runId, taskQueue, args: [input] });
  const expectedGate = await foretold(runId);
  const early = hostileSignals(expectedGate);
  await sendAll(runId, early);
  await handle.signal('go');
  const gate = await openGate(countersign, runId);
  assert.deepEqual(gate, expectedGate);

  const open = hostileSignals(gate);
  await sendAll(runId, open);
  assert.equal((await api.reject(gate, { body: { reason: 'enough' } })).status, 200);
  assert.deepEqual(await handle.result(), ['rejected']);
  await assertHealthy(runId);
  const judged = (signal: HostileSignal): HostileSignal['expected'] => {
    const { decisionId, expected } = signal;
    if (decisionId === undefined || expected === 'unknown_key' || open.includes(signal)) return expected;
    return 'not_open';
  };
  await assertRecorded(runId, [...early, { title: 'go', expected: 'ignored' }, ...open], judged);
  assert.equal(await refundsOf(runId), 0);
});

test('P8: no malformed signal hurts a run that lives on after its gate', async () => {
  const runId = temporal.id('hostile-late');
  const args = [{ ...gateInput(runId), lingerMs: 3_600_000 }];
  const handle = await client.workflow.start('oneGated', { workflowId: runId, taskQueue, args });
  const gate = await openGate(countersign, runId);
  assert.equal((await api.reject(gate)).status, 200);
  const signals = hostileSignals(gate);
  await sendAll(runId, signals);
  // asked of the worker: it took all of them and still answers
  const late = decisionOn(gate, 'approve');
  await countersign.sendDecision(runId, late);
  assert.equal((await receiptOf(countersign, late, runId)).code, 'already_resolved');
  await assertHealthy(runId);
  const judged = ({ decisionId, expected }: HostileSignal): HostileSignal['expected'] =>
    decisionId === undefined || expected === 'unknown_key' ? expected : 'already_resolved';
  await assertRecorded(runId, signals, judged, 1);
  await handle.terminate();
});

test('P8: many signals of the greatest size do not hurt a run', async () => {
  const gate = await start('hostile-size');
  const huge = { payloads: [payload(`"${'x'.repeat(1_900_000)}"`)] };
  for (let count = 0; count < 6; count += 1) await sendRaw(temporal, gate.runId, huge);
  assert.equal((await api.call('GET', `/approvals/${gate.key}`)).body['state'], 'pending');
  assert.equal((await api.final(await api.approve(gate))).status, 200);
  assert.deepEqual(await client.workflow.getHandle(gate.runId).result(), { status: 'completed' });
  await assertHealthy(gate.runId);
});

test('P8: a good decision under a bad header counts', async () => {
  const gate = await start('header');
  const decision = decisionOn(gate, 'approve');
  await sendRaw(temporal, gate.runId, { payloads: [payload(JSON.stringify(decision))], header: badHeader });
  assert.deepEqual(await client.workflow.getHandle(gate.runId).result(), { status: 'completed' });
  await assertHealthy(gate.runId);
});

test('P8: 300 refused signals, then a good one: it counts (case 38)', async () => {
  const gate = await start('refused-300');
  const other = { ...gate, key: approvalKey({ workflowId: gate.runId, position: 'later', root: gate.root }) };
  const refused = Array.from({ length: 100 }, () => [
    payload('{"approve": true}'),
    payload(JSON.stringify(decisionOn(gate, 'approve', { payloadHash: `sha256:${'0'.repeat(64)}` }))),
    payload(JSON.stringify(decisionOn(other, 'approve'))),
  ]).flat();
  await Promise.all(refused.map((one) => sendRaw(temporal, gate.runId, { payloads: [one] })));
  const answer = await api.final(await api.approve(gate));
  assert.equal(answer.status, 200, answer.text);
  assert.deepEqual(await client.workflow.getHandle(gate.runId).result(), { status: 'completed' });
  await assertHealthy(gate.runId);
  const counts: Record<string, number> = {};
  for (const fact of await countersign.readTrail(gate.runId)) {
    if (fact.type === 'decision_refused') counts[fact.code] = (counts[fact.code] ?? 0) + 1;
  }
  assert.deepEqual(counts, { malformed: 100, payload_changed: 100, not_open: 100 });
  assert.equal(await refundsOf(gate.runId), 1);
});

test('P8: a run remembers the answers to its last 1,000 decisions and no more', async () => {
  const gate = await start('receipts');
  const other = {
    ...gate,
    key: approvalKey({ workflowId: gate.runId, position: 'later', root: gate.root }),
  };
  const decisions = Array.from({ length: 1_100 }, () => decisionOn(other, 'reject'));
  const ids = decisions.map(({ decisionId }) => decisionId);
  const handle = client.workflow.getHandle(gate.runId); // without a deadline for each
  for (let start = 0; start < decisions.length; start += 100) {
    const batch = decisions.slice(start, start + 100);
    await Promise.all(batch.map((decision) => handle.signal(signalNames.decide, decision)));
  }
  const last = decisionOn(gate, 'approve', { payloadHash: `sha256:${'0'.repeat(64)}` });
  await countersign.sendDecision(gate.runId, last);
  assert.equal((await receiptOf(countersign, last, gate.runId)).code, 'payload_changed');
  const known = await countersign.queryReceipts(gate.runId, [...ids, last.decisionId], 10_000);
  assert.equal(known.length, 1_000);
  // batch by batch in order: the first 101 are forgotten, the rest of the first batches' order is the server's
  const kept = new Set(known.map(({ decisionId }) => decisionId));
  assert.ok(ids.slice(200).every((id) => kept.has(id)));
  assert.equal((await api.approve(gate)).status, 200);
  assert.deepEqual(await client.workflow.getHandle(gate.runId).result(), { status: 'completed' });
});

test('P8: refused requests are recorded as facts up to 50 a gate, and answered all the same beyond', async () => {
  const gate = await start('refused-http');
  const wrong = { key: gate.key, hash: `sha256:${'0'.repeat(64)}` };
  const codes = new Set<unknown>();
  for (let count = 0; count < 60; count += 1) {
    const { status, body } = await api.approve(wrong, { idempotencyKey: `try-${count}` });
    codes.add(`${status} ${String(body['code'])} ${String(body['currentHash'])}`);
  }
  assert.deepEqual([...codes], [`412 payload_changed ${gate.hash}`]);
  const trail = await countersign.readTrail(gate.runId);
  assert.equal(trail.filter(({ type }) => type === 'decision_refused').length, 50);
  assert.equal((await api.approve(gate)).status, 200);
  await eventually(async () => (await refundsOf(gate.runId)) === 1, { message: 'the refund' });
});
