// P2, P4 and P6 on a real server: a run continues as new while its gates wait, and nobody can tell from
// outside. The gates keep key, case and deadline, decisions that waited are judged in the next execution, and
// trail, receipts and memo tell one story.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lookUpDecision } from '../src/api/look-up-decision.ts';
import { gateOf } from '../src/api/gate-record.ts';
import type { Principal } from '../src/api/auth.ts';
import type { TrailFact } from '../src/core/trail-fact.ts';
import { signProof } from '../src/core/proof.ts';
import { createClient } from '../src/client.ts';
import { createApiHarness } from './support/api-harness.ts';
import { eventually } from './support/eventually.ts';
import { clientOf, decisionOn, factsOf, openGates, receiptOf, type SeenGate } from './support/gates.ts';
import { fetchHistory } from './support/history.ts';
import { startLedger } from './support/ledger.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { fastForward } from './support/time.ts';
import { startWorker } from './support/worker.ts';
import type { CarriedGatesInput } from './support/workflows/carried.ts';

const temporal = await openTemporal();
const { address, namespace, taskQueue, client } = temporal;
const countersign = clientOf(temporal);
const ledger = await startLedger();
const { path: secretsFile, secrets } = await makeSecrets();
const settings = { address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url };
let worker = await startWorker(settings);

const hour = 3_600_000;
const principal: Principal = { id: 'ann', name: 'Ann', kind: 'person', roles: ['admin'], scopes: ['admin'] };

/** Two gates, a and b, each a refund of an order of its own. */
async function start(name: string, more: Partial<CarriedGatesInput> = {}): Promise<[SeenGate, SeenGate]> {
  const runId = temporal.id(name);
  const gates = ['a', 'b'].map((item) => ({
    name: item,
    tool: 'payments.refund',
    arguments: { order: `${runId}/${item}`, amount: '1.00' },
    ttl: '1h',
  }));
  const input: CarriedGatesInput = { gates, lingerMs: 3 * hour, ...more };
  await client.workflow.start('carriedGates', { workflowId: runId, taskQueue, args: [input] });
  const [a, b] = await openGates(countersign, runId, 2);
  assert.ok(a && b);
  return [a, b];
}

const executionOf = async (runId: string): Promise<string> =>
  (await client.workflow.getHandle(runId).describe()).runId;

/** @returns the Temporal run id of the execution that continued the run */
async function roll(runId: string): Promise<string> {
  const before = await executionOf(runId);
  await client.workflow.getHandle(runId).signal('roll');
  return eventually(
    async () => {
      const now = await executionOf(runId);
      return now !== before && now;
    },
    { message: `run "${runId}" in its next execution` },
  );
}

/** Runs `send` while no worker is there, so that all of it is in history before anything is judged. */
async function withoutWorker(send: () => Promise<void>): Promise<void> {
  await worker.stop();
  await send();
  worker = await startWorker(settings);
}

async function paid(runId: string) {
  const lines = await ledger.lines();
  return lines
    .filter(({ body }) => (body as { order: string }).order.startsWith(runId))
    .map(({ key, outcome }) => [key, outcome]);
}

/** Dense, each fact once, and one question a gate. */
function oneStory(facts: readonly TrailFact[], gates: readonly SeenGate[]): void {
  assert.deepEqual(
    facts.map(({ seq }) => seq),
    facts.map((_fact, index) => index + 1),
  );
  const current = facts.filter(({ superseded }) => superseded !== true);
  assert.equal(current.filter(({ type }) => type === 'run_started').length, 1);
  const asked = current.flatMap((fact) => (fact.type === 'approval_requested' ? [fact.key] : []));
  assert.deepEqual(asked.sort(), gates.map(({ key }) => key).sort());
}

for (const plain of [false, true]) {
  const how = plain ? "Temporal's own continueAsNew" : 'continueRun';
  test(`P4: open gates go on as they were in the next execution, and each pays once (${how}) (case 28)`, async () => {
    const gates = await start('open', { plain });
    const { runId, root } = gates[0];
    await roll(runId);
    assert.deepEqual(await openGates(countersign, runId, 2), gates, 'the same keys and hashes');
    await roll(runId);
    assert.deepEqual(await openGates(countersign, runId, 2), gates);
    const [approve, reject] = [decisionOn(gates[0], 'approve'), decisionOn(gates[1], 'reject')];
    await countersign.sendDecision(runId, approve);
    await countersign.sendDecision(runId, reject);
    assert.equal((await receiptOf(countersign, approve, runId)).verdict, 'accepted');
    assert.equal((await receiptOf(countersign, reject, runId)).verdict, 'accepted');
    await eventually(async () => (await paid(runId)).length === 1);
    assert.deepEqual(await paid(runId), [[`${root}:a`, 'refunded']]);
    const facts = await countersign.readTrail(runId);
    oneStory(facts, gates);
    assert.equal(facts.filter(({ type }) => type === 'run_continued').length, 2);
    assert.equal(gateOf(facts, gates[0].key)?.outcome?.state, 'approved');
    assert.equal(gateOf(facts, gates[1].key)?.outcome?.state, 'rejected');
    const { approvals, status } = (await countersign.describeRun(runId)) ?? {};
    assert.deepEqual(
      approvals?.map(({ position, memo }) => [position, memo.state]).sort(),
      [['a', 'approved'], ['b', 'rejected']],
    ); // prettier-ignore
    assert.equal(status, 'running');
    await client.workflow.getHandle(runId).terminate();
  });
}

test('P2: decisions that wait when the run continues are judged in the next execution, each once (case 28)', async () => {
  const gates = await start('queue');
  const { runId } = gates[0];
  const first = await executionOf(runId);
  const comments = Array.from({ length: 5 }, (_, index) =>
    decisionOn(gates[0], 'comment', { reason: `remark ${index}`, by: { id: `person-${index}` } }),
  );
  const reject = decisionOn(gates[0], 'reject');
  await withoutWorker(async () => {
    for (const comment of comments) await countersign.sendDecision(runId, comment);
    await countersign.sendDecision(runId, reject);
    await client.workflow.getHandle(runId).signal('roll');
  });
  for (const decision of [...comments, reject]) {
    assert.equal((await receiptOf(countersign, decision, runId)).verdict, 'accepted');
  }
  const facts = await countersign.readTrail(runId);
  oneStory(facts, gates);
  const judged = facts.flatMap((fact) =>
    fact.type === 'approval_commented' || fact.type === 'approval_rejected'
      ? [{ id: fact.decision.decisionId, here: fact.temporalRunId === first }]
      : [],
  );
  assert.deepEqual(
    judged.map(({ id }) => id),
    [...comments, reject].map(({ decisionId }) => decisionId),
    'in the order in which they were sent',
  );
  const carried = judged.filter(({ here }) => !here).length;
  assert.ok(carried > 0, 'none was waiting when the run continued');
  await client.workflow.getHandle(runId).terminate();
});

test('P4: approved while the run comes to a standstill, the effect runs in the next execution, once', async () => {
  const gates = await start('held');
  const { runId, root } = gates[0];
  const first = await executionOf(runId);
  const [approve, late] = [decisionOn(gates[0], 'approve'), decisionOn(gates[0], 'reject')];
  await withoutWorker(async () => {
    await countersign.sendDecision(runId, approve);
    await countersign.sendDecision(runId, late);
    await client.workflow.getHandle(runId).signal('roll');
  });
  await eventually(async () => (await factsOf(countersign, runId, 'tool_result')).length === 1);
  const facts = await countersign.readTrail(runId);
  oneStory(facts, gates);
  const where = (type: TrailFact['type']) => facts.find((fact) => fact.type === type)?.temporalRunId;
  assert.equal(where('approval_granted'), first, 'judged before the run continued');
  assert.notEqual(where('effect_started'), first, 'run after it');
  assert.equal((await receiptOf(countersign, late, runId)).code, 'already_resolved');
  assert.deepEqual(await paid(runId), [[`${root}:a`, 'refunded']]);
  await client.workflow.getHandle(runId).terminate();
});

test('P2: what was settled before the run continued is already resolved after it, and its answers are kept', async () => {
  const gates = await start('late');
  const { runId } = gates[0];
  const winner = decisionOn(gates[0], 'reject', { by: { id: 'bob' }, reason: 'not damaged' });
  const loser = decisionOn(gates[0], 'approve');
  await countersign.sendDecision(runId, winner);
  await receiptOf(countersign, winner, runId);
  await countersign.sendDecision(runId, loser);
  await receiptOf(countersign, loser, runId);
  await roll(runId);
  await roll(runId);
  const old = await receiptOf(countersign, winner, runId);
  assert.deepEqual([old.verdict, old.gate, old.settlement?.by?.id], ['accepted', 'rejected', 'bob']);
  assert.equal((await receiptOf(countersign, loser, runId)).code, 'already_resolved');

  const late = decisionOn(gates[0], 'approve');
  await countersign.sendDecision(runId, late);
  const answer = await receiptOf(countersign, late, runId);
  assert.deepEqual(
    [answer.code, answer.gate, answer.settlement?.by?.id],
    ['already_resolved', 'rejected', 'bob'],
  );
  const before = (await countersign.readTrail(runId)).length;
  await countersign.sendDecision(runId, winner); // to the letter
  const again = decisionOn(gates[1], 'comment', { reason: 'after it' });
  await countersign.sendDecision(runId, again);
  await receiptOf(countersign, again, runId);
  assert.equal((await receiptOf(countersign, winner, runId)).verdict, 'accepted');
  const facts = await countersign.readTrail(runId);
  oneStory(facts, gates);
  assert.deepEqual(facts.slice(before).map(({ type }) => type), ['approval_commented']); // prettier-ignore
  const refused = facts.flatMap((fact) =>
    fact.type === 'decision_refused' ? [[fact.code, fact.decision?.decisionId]] : [],
  );
  assert.deepEqual(refused, [['already_resolved', loser.decisionId], ['already_resolved', late.decisionId]]); // prettier-ignore

  // the API's own look, over the chain: signals and verdicts have event ids that begin again in each execution
  const deps = { client: countersign, now: Date.now };
  const told = await lookUpDecision(deps, principal, gates[0].key, winner.decisionId);
  assert.equal(told.status, 200);
  for (const { decisionId } of [loser, late]) {
    await assert.rejects(lookUpDecision(deps, principal, gates[0].key, decisionId), {
      code: 'already_resolved',
    });
  }
  await client.workflow.getHandle(runId).terminate();
});

test('P7: over HTTP a run that continued is one run: list, case, decision, its fate and the trail', async () => {
  const api = createApiHarness({
    client: createClient({ client, namespace, taskQueue }),
    sign: (decision, { workflowId }) => signProof(decision, { namespace, workflowId }, secrets.signingKey()),
    now: Date.now,
    receiptBudgetMs: 30_000,
  });
  const gates = await start('http');
  const [a, b] = gates;
  const before = await api.call('GET', `/approvals/${a.key}`);
  const begun = (await api.call('GET', `/runs/${a.runId}`)).body['createdAt'];
  await roll(a.runId);
  const after = await api.call('GET', `/approvals/${a.key}`);
  assert.deepEqual([after.status, after.headers.get('etag')], [200, before.headers.get('etag')]);
  assert.deepEqual(after.body['expiresAt'], before.body['expiresAt']);

  const mine = { headers: { 'idempotency-key': 'first' } };
  const approved = await api.approve(a.key, a.hash, mine);
  assert.deepEqual([approved.status, approved.body['state']], [200, 'approved']);
  await roll(a.runId);
  const again = await api.approve(a.key, a.hash, mine);
  assert.deepEqual([again.status, again.body['decisionId']], [200, approved.body['decisionId']]);
  const late = await api.reject(a.key, { as: 'bob' });
  assert.deepEqual([late.status, late.body['code']], [409, 'already_resolved']);
  const fate = await api.call('GET', `/approvals/${a.key}/decisions/${String(approved.body['decisionId'])}`);
  assert.deepEqual([fate.status, fate.body['state']], [200, 'approved']);
  const run = await api.call('GET', `/runs/${a.runId}`);
  assert.equal(run.body['createdAt'], begun);
  const pending = run.body['pendingApprovals'] as { key: string }[];
  assert.deepEqual(
    pending.map(({ key }) => key),
    [b.key],
  );
  assert.equal((await api.reject(b.key)).status, 200);
  const trail = (await api.call('GET', `/runs/${a.runId}/trail`)).body['trail'] ?? [];
  oneStory(trail as TrailFact[], gates);
  await eventually(async () => (await paid(a.runId)).length === 1);
  await client.workflow.getHandle(a.runId).terminate();
});

test('P11: the deadline of a gate is the same after the run continued', async () => {
  const gates = await start('deadline');
  const { runId } = gates[0];
  const expiresAt = async () =>
    (await countersign.describeRun(runId))?.approvals.map(({ memo }) => memo.expiresAt) ?? [];
  const before = await expiresAt();
  await roll(runId);
  assert.deepEqual(await expiresAt(), before);
  const timers = await eventually(async () => {
    const { events } = await fetchHistory(client, runId);
    const at = Number(events?.[0]?.eventTime?.seconds);
    const found = events?.flatMap(({ timerStartedEventAttributes: timer }) =>
      timer ? [at + Number(timer.startToFireTimeout?.seconds)] : [],
    );
    return (found?.length ?? 0) >= 2 && found;
  });
  // one of the two or three is the test's own
  for (const [index, deadline] of before.entries()) {
    const nearest = Math.min(...timers.map((end) => Math.abs(end - (deadline ?? 0) / 1000)));
    assert.ok(nearest <= 5, `gate ${index}: no timer ends within 5 s of its deadline (${nearest} s)`);
  }
  await fastForward(temporal, runId, 2 * hour);
  const expired = await eventually(async () => {
    const facts = await factsOf(countersign, runId, 'approval_expired');
    return facts.length === 2 && facts;
  });
  assert.deepEqual(expired.map(({ key }) => key).sort(), gates.map(({ key }) => key).sort());
  assert.deepEqual(await paid(runId), []);
  oneStory(await countersign.readTrail(runId), gates);
  await client.workflow.getHandle(runId).terminate();
});
