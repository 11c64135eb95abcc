// Each kind of decision on a real server: what it does to the gate, the effect and the trail.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { createFreezeCase } from '../src/activities/freeze-case.ts';
import type { CaseRecord } from '../src/core/case.ts';
import type { Decision } from '../src/core/decision.ts';
import type { Spec } from '../src/core/spec/spec.ts';
import { eventually } from './support/eventually.ts';
import {
  clientOf,
  decisionOn,
  factsOf,
  openGate,
  receiptOf,
  signedDecision,
  startSpec,
  type SeenGate,
} from './support/gates.ts';
import { startLedger } from './support/ledger.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { testTools } from './support/tools.ts';
import { startWorker } from './support/worker.ts';

const temporal = await openTemporal();
const { address, namespace, taskQueue, client } = temporal;
const countersign = clientOf(temporal);
const ledger = await startLedger();
const { path: secretsFile, secrets } = await makeSecrets();
const worker = await startWorker({ address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url });
after(() => worker.stop());

const spec = (tool: string): Spec => ({
  version: 1,
  name: 'pay',
  steps: [
    {
      id: 'pay',
      tool,
      with: { order: '${{ input.order }}', amount: '10.00' },
      before: { approve: { title: 'Pay', ttl: '1h' } },
    },
  ],
});

async function start(name: string, tool = 'payments.refund'): Promise<{ runId: string; gate: SeenGate }> {
  const runId = temporal.id(name);
  await startSpec(countersign, runId, spec(tool), { order: runId });
  return { runId, gate: await openGate(countersign, runId) };
}

async function send(runId: string, decision: Decision) {
  assert.equal(await countersign.sendDecision(runId, decision), true);
  return receiptOf(countersign, decision, runId);
}

const signed = (gate: SeenGate, kind: Decision['decision'], more: Partial<Decision> = {}) =>
  signedDecision(temporal, secrets, gate, kind, more);
const requester = { by: { id: 'starter' } };

async function paid(runId: string) {
  const lines = await ledger.lines();
  return lines.filter(({ body }) => (body as { order: string }).order === runId);
}

test('an edit runs the edited payload, hashed anew; one that breaks the schema changes nothing', async () => {
  const { runId, gate } = await start('edit');
  const broken = await signed(gate, 'edit', { arguments: { order: runId, amount: 12 } });
  assert.equal((await send(runId, broken)).code, 'invalid_edit');
  const edit = await signed(gate, 'edit', { arguments: { order: runId, amount: '4.00' } });
  assert.equal((await send(runId, edit)).verdict, 'accepted');
  await client.workflow.getHandle(runId).result();
  const [line, ...more] = await paid(runId);
  assert.equal(more.length, 0);
  assert.deepEqual(line?.body, { order: runId, amount: '4.00', currency: 'EUR' });
  const [fact] = await factsOf(countersign, runId, 'approval_edited');
  assert.notEqual(fact?.payloadHash, gate.hash);
  assert.deepEqual(fact?.arguments, line?.body);
});

test('an amendment by the requester makes every earlier decision stale (P3)', async () => {
  const { runId, gate } = await start('amend');
  const payload = { arguments: { order: runId, amount: '5.00' } };
  assert.equal((await send(runId, await signed(gate, 'amend', payload))).code, 'not_allowed');
  assert.equal((await send(runId, decisionOn(gate, 'amend', { ...payload, ...requester }))).code, 'unproven');
  assert.equal(
    (await send(runId, await signed(gate, 'amend', { ...payload, ...requester }))).verdict,
    'accepted',
  );
  assert.equal((await send(runId, await signed(gate, 'approve'))).code, 'payload_changed');
  const amended = await eventually(async () => {
    const now = await openGate(countersign, runId);
    return now.hash === gate.hash ? undefined : now;
  });
  const [listed] = (await countersign.describeRun(runId))?.approvals ?? [];
  assert.match(
    listed?.memo.title ?? '',
    /^\(amended\) (?!\(amended\))/,
    'the title is of the first arguments',
  );
  assert.equal((await send(runId, await signed(amended, 'approve'))).verdict, 'accepted');
  await client.workflow.getHandle(runId).result();
  assert.deepEqual(
    (await paid(runId)).map(({ body }) => (body as { amount: string }).amount),
    ['5.00'],
  );
});

test('a respond answers in the place of the tool: no effect, its result is the output', async () => {
  const { runId, gate } = await start('respond');
  assert.equal(
    (await send(runId, await signed(gate, 'respond', { result: { by: 'hand' } }))).verdict,
    'accepted',
  );
  assert.deepEqual(await client.workflow.getHandle(runId).result(), { status: 'completed' });
  assert.equal((await paid(runId)).length, 0);
  const [done] = await factsOf(countersign, runId, 'step_completed');
  assert.deepEqual(done?.output, { by: 'hand' });
});

test('a withdrawal by the requester ends the run as cancelled; by anyone else it is refused', async () => {
  const { runId, gate } = await start('withdraw');
  assert.equal((await send(runId, await signed(gate, 'withdraw'))).code, 'not_allowed');
  assert.equal((await send(runId, await signed(gate, 'withdraw', requester))).verdict, 'accepted');
  assert.deepEqual(await client.workflow.getHandle(runId).result(), {
    status: 'cancelled',
    step: 'pay',
    gate: 'withdrawn',
  });
  assert.equal((await factsOf(countersign, runId, 'run_cancelled')).length, 1);
  assert.equal((await paid(runId)).length, 0);
});

test('a comment is recorded once, and decides nothing', async () => {
  const { runId, gate } = await start('comment');
  const comment = await signed(gate, 'comment', { reason: 'I asked the customer' });
  assert.equal((await send(runId, comment)).verdict, 'accepted');
  assert.equal((await send(runId, comment)).verdict, 'accepted');
  assert.equal((await send(runId, await signed(gate, 'reject'))).verdict, 'accepted');
  await client.workflow.getHandle(runId).result();
  assert.equal((await factsOf(countersign, runId, 'approval_commented')).length, 1);
});

/** A refund by a target without keys whose answer is lost. */
async function startDoubt(name: string): Promise<{ runId: string; doubt: SeenGate }> {
  const { runId, gate } = await start(name, 'payments.plain');
  await ledger.fail({ status: 500, times: 1 });
  assert.equal((await send(runId, await signed(gate, 'approve'))).verdict, 'accepted');
  const doubt = await eventually(async () => {
    const asked = await openGate(countersign, runId);
    return asked.position === 'pay/in-doubt' ? asked : undefined;
  });
  assert.equal((await countersign.describeRun(runId))?.status, 'in_doubt');
  return { runId, doubt };
}

test('in doubt is a question to a person: it did not happen, try again, under a new position (P5)', async () => {
  const { runId, doubt } = await startDoubt('again');
  assert.equal((await send(runId, await signed(doubt, 'approve'))).verdict, 'accepted');
  assert.deepEqual(await client.workflow.getHandle(runId).result(), { status: 'completed' });
  const started = await factsOf(countersign, runId, 'effect_started');
  assert.deepEqual(
    started.map(({ idempotencyKey }) => idempotencyKey),
    [`${doubt.root}:pay`, `${doubt.root}:pay#retry-1`],
  );
});

test('in doubt: it happened, and the person says with what result (P5)', async () => {
  const { runId, doubt } = await startDoubt('happened');
  assert.equal(
    (await send(runId, await signed(doubt, 'respond', { result: { refund: 'r-9' } }))).verdict,
    'accepted',
  );
  assert.deepEqual(await client.workflow.getHandle(runId).result(), { status: 'completed' });
  const done = await factsOf(countersign, runId, 'step_completed');
  assert.deepEqual(
    done.map(({ position, output }) => ({ position, output })),
    [{ position: 'pay', output: { refund: 'r-9' } }],
  );
});

test('in doubt: given up, the run fails by name (P5)', async () => {
  const { runId, doubt } = await startDoubt('given-up');
  assert.equal((await send(runId, await signed(doubt, 'reject'))).verdict, 'accepted');
  await assert.rejects(client.workflow.getHandle(runId).result());
  const [end] = await factsOf(countersign, runId, 'run_finished');
  assert.equal(end?.error?.['code'], 'effect_in_doubt');
});

async function freezeRequest(runId: string): Promise<Omit<CaseRecord, 'key' | 'root'>> {
  const freezeCase = createFreezeCase({ tools: testTools(ledger.url) });
  const frozen = await freezeCase({
    v: 1,
    position: 'request',
    key: '',
    root: '',
    phase: 'before',
    tool: 'payments.refund',
    arguments: { order: runId, amount: '3.00' },
    now: Date.now(),
    ...{ requestedBy: { id: 'starter' } },
  });
  assert.equal(frozen.kind, 'case');
  const { key: _key, root: _root, ...rest } = frozen;
  return { ...rest, requestedByApi: true };
}

const trigger = { kind: 'test' };
const startedBy = { id: 'starter' };

test('a requested approval is open from its first event: a decision sent before any worker looked counts', async () => {
  const runId = temporal.id('request');
  const frozen = await freezeRequest(runId);
  await countersign.startApproval({ runId, case: frozen, trigger, startedBy, requestHash: 'x' });
  const gate = await openGate(countersign, runId);
  assert.equal(gate.hash, frozen.payloadHash);
  assert.equal((await send(runId, await signed(gate, 'approve'))).verdict, 'accepted');
  const result = (await client.workflow.getHandle(runId).result()) as { status: string };
  assert.equal(result.status, 'completed');
  assert.deepEqual(
    (await paid(runId)).map(({ key }) => key),
    [`${gate.root}:request`],
  );
  assert.equal((await factsOf(countersign, runId, 'approval_requested'))[0]?.eventId, 1);
});

test('a requested approval that the worker freezes to another hash ends before asking', async () => {
  const runId = temporal.id('mismatch');
  const frozen = await freezeRequest(runId);
  const changed = { ...frozen, arguments: { order: runId, amount: '3000.00', currency: 'EUR' } };
  await countersign.startApproval({ runId, case: changed, trigger, startedBy, requestHash: 'x' });
  await assert.rejects(client.workflow.getHandle(runId).result());
  const [end] = await factsOf(countersign, runId, 'run_finished');
  assert.equal(end?.error?.['code'], 'freeze_mismatch');
  assert.equal((await paid(runId)).length, 0);
});
