// P2 on a real server over real HTTP: of all decisions on a gate, sent too early, at once, again or too late,
// one wins; every other one is refused, answered and recorded. A crowd of them is in crowd.server.test.ts.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Answer } from './support/api-harness.ts';
import { assertInHistory, signalledIds, startApi } from './support/api-server.ts';
import { eventually } from './support/eventually.ts';
import { clientOf, decisionOn, factsOf, openGate, openGates, type SeenGate } from './support/gates.ts';
import { startLedger } from './support/ledger.ts';
import { linesOf, questionSpec, startGate } from './support/refund-gates.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { startWorker } from './support/worker.ts';
import { approvalKey } from '../src/core/approval-key.ts';
import { hashPayload } from '../src/core/hash.ts';
import type { Spec } from '../src/core/spec/spec.ts';

const temporal = await openTemporal();
const { client, address, namespace, taskQueue } = temporal;
const countersign = clientOf(temporal);
const ledger = await startLedger();
const { path: secretsFile } = await makeSecrets();
const api = await startApi(temporal, { secretsFile });
const otherApi = await startApi(temporal, { secretsFile });
await startWorker({ address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url });

const start = (name: string, spec?: Spec): Promise<SeenGate> => startGate(temporal, countersign, name, spec);

/** The gate at that position, once the run stands there: the memo of the one before may still say pending. */
async function gateAt(runId: string, position: string): Promise<SeenGate> {
  const find = async (): Promise<SeenGate | undefined> =>
    (await openGates(countersign, runId)).find((gate) => gate.position === position);
  return eventually(find, { message: `the gate "${position}" of run "${runId}"` });
}

test('P2: the same request three times at once, and again after the end, is one decision with one answer (case 16)', async () => {
  for (const idempotencyKey of ['"k-1"', undefined]) {
    const gate = await start('thrice');
    const { runId } = gate;
    const again = idempotencyKey === undefined ? {} : { idempotencyKey };
    const call = { body: { reason: 'damaged' }, ...again };
    const answers = await Promise.all([
      api.approve(gate, call),
      api.approve(gate, call),
      otherApi.approve(gate, call),
    ]);
    const finals = await Promise.all(answers.map((answer) => api.final(answer)));
    assert.deepEqual(await client.workflow.getHandle(runId).result(), { status: 'completed' });
    finals.push(await api.approve(gate, call), await otherApi.approve(gate, call));
    for (const { status, body } of finals) {
      assert.equal(status, 200);
      assert.deepEqual(body, finals[0]!.body);
    }
    await assertInHistory(client, runId, answers);
    assert.equal((await signalledIds(client, runId)).size, 1);
    assert.equal((await factsOf(countersign, runId, 'approval_granted')).length, 1);
    assert.equal((await factsOf(countersign, runId, 'decision_refused')).length, 0);
    assert.equal((await linesOf(ledger, runId)).length, 1);
  }
});

test('P2: a decision has one time, whichever worker tells it', async () => {
  const place = { ...temporal, taskQueue: `${taskQueue}-twice` };
  const settings = { address, namespace, taskQueue: place.taskQueue, secretsFile };
  const step = (id: string) => ({ id, approval: { title: id } });
  const twoSteps: Spec = { version: 1, name: 'two-steps', steps: [step('first'), step('second')] };
  const worker = await startWorker(settings);
  const gate = await startGate(place, clientOf(place), 'told-again', twoSteps);
  const { runId } = gate;
  const answer = await api.approve(gate, { idempotencyKey: 'k' });
  assert.equal(answer.status, 200, answer.text);
  await gateAt(runId, 'second');
  await worker.stop();
  await startWorker(settings);

  const decisionId = String(answer.body['decisionId']);
  const [receipt] = await countersign.queryReceipts(runId, [decisionId], 30_000);
  const memo = (await countersign.describeRun(runId))?.approvals.find(({ key }) => key === gate.key)?.memo;
  const at = Date.parse(String(answer.body['at']));
  assert.deepEqual([receipt?.settlement?.at, memo?.at], [at, at]);
  const again = await api.approve(gate, { idempotencyKey: 'k' });
  assert.deepEqual(again.body, answer.body);
  await client.workflow.getHandle(runId).terminate();
});

test('P2: an Idempotency-Key stands for one decision: the other one under it is 422, before and after the end (case 16)', async () => {
  const gate = await start('reused');
  const { runId } = gate;
  const key = { idempotencyKey: 'once' };
  const wrong = { key: gate.key, hash: `sha256:${'0'.repeat(64)}` };
  assert.equal((await api.approve(wrong, key)).status, 412);
  for (const one of [api, otherApi]) {
    const other = await one.reject(gate, key);
    assert.equal(`${other.status} ${String(other.body['code'])}`, '422 idempotency_key_reused', other.text);
  }
  const winning = { idempotencyKey: 'win', body: { reason: 'yes' } };
  assert.equal((await api.approve(gate, winning)).status, 200);
  assert.deepEqual(await client.workflow.getHandle(runId).result(), { status: 'completed' });
  for (const one of [api, otherApi]) {
    for (const other of [
      await one.reject(gate, winning),
      await one.approve(gate, { ...winning, body: { reason: 'no' } }),
    ]) {
      assert.equal(`${other.status} ${String(other.body['code'])}`, '422 idempotency_key_reused', other.text);
    }
    assert.equal((await one.approve(gate, winning)).status, 200);
  }
  assert.equal((await factsOf(countersign, runId, 'approval_granted')).length, 1);
});

test('P2: two people with the same Idempotency-Key are two decisions with two verdicts', async () => {
  const gate = await start('same-key');
  const { runId } = gate;
  const [ann, bob] = await Promise.all([
    api.approve(gate, { as: 'ann', idempotencyKey: '1' }),
    otherApi.approve(gate, { as: 'bob', idempotencyKey: '1' }),
  ]);
  const finals = [await api.final(ann, { as: 'ann' }), await otherApi.final(bob, { as: 'bob' })];
  assert.deepEqual(finals.map(({ status }) => status).sort(), [200, 409]);
  await client.workflow.getHandle(runId).result();
  const [granted] = await factsOf(countersign, runId, 'approval_granted');
  const won = finals.find(({ status }) => status === 200)?.body;
  assert.equal(won?.['decisionId'], granted?.decision.decisionId);
  assert.deepEqual(won?.['by'], granted?.by);
  const lost = finals.find(({ status }) => status === 409)?.body['winner'] as { by: { id: string } };
  assert.equal(lost.by.id, granted?.by.id);
  for (const as of ['ann', 'bob']) {
    const repeated = await api.approve(gate, { as, idempotencyKey: '1' });
    assert.equal(repeated.status, as === granted?.by.id ? 200 : 409);
  }
});

test('P2: two gates in a run and again under the same workflow id: four keys, four decisions', async () => {
  const runId = temporal.id('again');
  const gateNamed = (name: string) => {
    return { name, tool: 'payments.refund', arguments: { order: runId, amount: '1.00' } };
  };
  const old: SeenGate[] = [];
  const states: unknown[] = [];
  for (const round of [1, 2]) {
    const handle = await client.workflow.start('gatesInARow', {
      workflowId: runId,
      taskQueue,
      args: [{ gates: [gateNamed('one'), gateNamed('two')] }],
    });
    for (const name of ['one', 'two']) {
      const gate = await gateAt(runId, name);
      for (const earlier of old) {
        // of this run: already decided; of the run before it: not found, whatever it was
        const refused = await api.reject(earlier, { as: 'bob' });
        assert.equal(refused.status, earlier.root === gate.root ? 409 : 404, refused.text);
        assert.equal((await api.call('GET', `/approvals/${gate.key}`)).body['state'], 'pending');
      }
      const kind = round === 1 ? 'approve' : 'reject';
      assert.equal((await api[kind](gate)).status, 200);
      old.push(gate);
    }
    states.push(await handle.result());
  }
  assert.equal(new Set(old.map(({ key }) => key)).size, 4);
  assert.deepEqual(states, [
    ['approved', 'approved'],
    ['rejected', 'rejected'],
  ]);
  assert.deepEqual(
    (await linesOf(ledger, runId)).map(({ key }) => key),
    [`${old[0]!.root}:one`, `${old[0]!.root}:two`],
  );
});

test('P2: a decision for gate B before B is open is not a yes: B asks, and A is untouched', async () => {
  const runId = temporal.id('early');
  const argumentsOf = (item: string) => ({ order: `${runId}/${item}`, amount: '1.00' });
  const gates = ['a', 'b'].map((item) => {
    return { name: item, tool: 'payments.refund', arguments: argumentsOf(item) };
  });
  const handle = await client.workflow.start('gatesInARow', {
    workflowId: runId,
    taskQueue,
    args: [{ gates }],
  });
  const a = await openGate(countersign, runId);
  const { hash } = hashPayload({
    tool: 'payments.refund',
    arguments: { ...argumentsOf('b'), currency: 'EUR' },
  });
  const key = approvalKey({ workflowId: runId, position: 'b', root: a.root });
  const b: SeenGate = { ...a, position: 'b', key, hash };

  const early = await api.approve(b, { idempotencyKey: 'early' });
  assert.equal(`${early.status} ${String(early.body['code'])}`, '409 not_open', early.text);
  assert.ok(Number(early.headers.get('retry-after')) > 0);
  const byHand = decisionOn(b, 'approve');
  await countersign.sendDecision(runId, byHand);
  assert.equal((await api.call('GET', `/approvals/${a.key}`)).body['state'], 'pending');
  assert.equal((await api.call('GET', `/approvals/${b.key}`)).status, 409);

  assert.equal((await api.reject(a)).status, 200);
  assert.deepEqual(await gateAt(runId, 'b'), b);
  const [refused] = await factsOf(countersign, runId, 'decision_refused');
  assert.deepEqual([refused?.code, refused?.decision], ['not_open', byHand]);
  assert.deepEqual(await linesOf(ledger, `${runId}/b`), []);
  // the very same request counts now, and so would the very same signal
  assert.equal((await api.approve(b, { idempotencyKey: 'early' })).status, 200);
  assert.deepEqual(await handle.result(), ['rejected', 'approved']);
  assert.equal((await linesOf(ledger, `${runId}/b`)).length, 1);
});

test('P2: an approval sent before anything was proposed approves none of what is proposed then', async () => {
  const runId = temporal.id('before-proposal');
  const gates = ['x', 'y'].map((item) => {
    return { name: item, tool: 'payments.refund', arguments: { order: `${runId}/${item}`, amount: '1.00' } };
  });
  const before = { name: 'ask', tool: 'notify.send', arguments: { order: `${runId}/model` } };
  await ledger.hold();
  const args = [{ before, gates }];
  const handle = await client.workflow.start('effectThenGates', { workflowId: runId, taskQueue, args });
  await eventually(async () => (await linesOf(ledger, `${runId}/model`)).length === 1, {
    message: 'the model is asked',
  });
  const run = await countersign.describeRun(runId);
  const root = run?.root ?? '';
  for (const { name: position, tool, arguments: args } of gates) {
    const key = approvalKey({ workflowId: runId, position, root });
    const { hash } = hashPayload({ tool, arguments: { ...args, currency: 'EUR' } });
    const gate = { runId, root, key, position, hash };
    await countersign.sendDecision(runId, decisionOn(gate, 'approve'));
    assert.equal((await api.approve(gate)).status, 409);
  }
  await ledger.release();
  const seen = await openGates(countersign, runId, 2);
  const refused = await factsOf(countersign, runId, 'decision_refused');
  assert.deepEqual(
    refused.map(({ code }) => code),
    ['not_open', 'not_open'],
  );
  for (const gate of seen) assert.equal((await api.reject(gate)).status, 200);
  assert.deepEqual(await handle.result(), ['rejected', 'rejected']);
  assert.deepEqual([...(await linesOf(ledger, `${runId}/x`)), ...(await linesOf(ledger, `${runId}/y`))], []);
});

test('P2: a decision while the run is completing is 200 or 409, and a late one starts no run (case 39)', async () => {
  for (let round = 0; round < 20; round += 1) {
    const gate = await start('closing', questionSpec);
    const { runId } = gate;
    const before = await countersign.describeRun(runId);
    const winner = api.approve(gate);
    let ended = false;
    const end = client.workflow
      .getHandle(runId)
      .result()
      .then(() => (ended = true));
    const late: Answer[] = [];
    // one after the other, without a pause, until the run has ended and one more after it
    for (let more = true; more;) {
      more = !ended;
      late.push(await otherApi.reject(gate, { as: 'bob', idempotencyKey: `late-${late.length}` }));
    }
    await end;
    const answers = [await winner, ...late];
    await assertInHistory(client, runId, answers);
    const finals: Answer[] = [];
    for (const [index, answer] of answers.entries()) {
      finals.push(await api.final(answer, { as: index === 0 ? 'ann' : 'bob' }));
    }
    const states = finals.map(({ status }) => status);
    assert.ok(
      states.every((status) => status === 200 || status === 409),
      states.join(),
    );
    const settled = await countersign.readTrail(runId);
    const wins = settled.filter(({ type }) => type === 'approval_granted' || type === 'approval_rejected');
    assert.equal(wins.length, 1);
    const after = await countersign.describeRun(runId);
    assert.equal(after?.temporalRunId, before?.temporalRunId);
    assert.equal(after?.closeStatus, 'completed');
  }
});
