// P4 on a real server: what comes while an effect runs, and what would come after it, changes nothing.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startApi } from './support/api-server.ts';
import { eventually } from './support/eventually.ts';
import { clientOf, decisionOn, factsOf } from './support/gates.ts';
import { fetchHistory } from './support/history.ts';
import { kinds, startGate } from './support/kinds.ts';
import { startLedger } from './support/ledger.ts';
import { linesOf } from './support/refund-gates.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { fastForward } from './support/time.ts';
import { startWorker } from './support/worker.ts';

const temporal = await openTemporal();
const { client, address, namespace, taskQueue } = temporal;
const countersign = clientOf(temporal);
const ledger = await startLedger();
const { path: secretsFile } = await makeSecrets();
const api = await startApi(temporal, { secretsFile });
await startWorker({ address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url });

const inFlight = (runId: string) =>
  eventually(async () => (await linesOf(ledger, runId)).length === 1, { message: `the effect of ${runId}` });

for (const kind of kinds) {
  test(`P4: 50 foreign signals, queries and late decisions while the effect runs: one attempt (case 23, ${kind})`, async () => {
    const gate = await startGate(temporal, countersign, kind, temporal.id('busy'), { stayOpen: true });
    const { runId } = gate;
    const handle = client.workflow.getHandle(runId);
    await ledger.hold();
    assert.equal((await api.final(await api.approve(gate))).status, 200);
    await inFlight(runId);
    const late = Array.from({ length: 50 }, (_, index) => [
      handle.signal('unrelated', { index }),
      // Temporal may lose one that waits while its task is given out again; it is sent all the same
      temporal.connection
        .withDeadline(Date.now() + 5_000, () => handle.query('state'))
        .catch(() => undefined),
      countersign.sendDecision(runId, decisionOn(gate, index % 2 === 0 ? 'reject' : 'approve')),
    ]);
    await Promise.all(late.flat());
    const byHttp = await api.reject(gate, { as: 'bob' });
    assert.equal(byHttp.status, 409, byHttp.text);
    await ledger.release();
    const [result] = await eventually(async () => {
      const results = await factsOf(countersign, runId, 'tool_result');
      return results.length > 0 ? results : undefined;
    });
    assert.equal(result?.attempts, 1);
    assert.equal((await linesOf(ledger, runId)).length, 1);
    const refused = await factsOf(countersign, runId, 'decision_refused');
    assert.deepEqual([...new Set(refused.map(({ code }) => code))], ['already_resolved']);
    assert.equal(refused.length, 50);
    await handle.terminate();
  });

  test(`P11: an effect that ends after the deadline would have come: no second event, by the clock or by anyone (case 18, ${kind})`, async () => {
    const gate = await startGate(temporal, countersign, kind, temporal.id('long'), { ttl: '3s' });
    const { runId } = gate;
    const handle = client.workflow.getHandle(runId);
    const expiresAt = (await countersign.describeRun(runId))?.approvals[0]?.memo.expiresAt ?? 0;
    await ledger.hold();
    const answer = await api.final(await api.approve(gate));
    assert.equal(answer.status, 200, answer.text);
    await inFlight(runId);
    await eventually(() => Date.now() > expiresAt + 500, { message: 'the deadline has passed' });
    await ledger.release();
    await handle.result();
    const before = await fetchHistory(client, runId);
    const types = (await countersign.readTrail(runId)).map(({ type }) => type);
    assert.equal(types.filter((type) => type === 'approval_granted').length, 1);
    assert.ok(!types.includes('approval_expired'), types.join());
    const fired = (before.events ?? []).filter((event) => event.timerFiredEventAttributes);
    assert.deepEqual(fired, []);
    assert.equal((await linesOf(ledger, runId)).length, 1);
  });
}

test('P11: a run that lives on is left until every timer would have fired: nothing changes (case 18)', async () => {
  const runId = temporal.id('left');
  const gate = await startGate(temporal, countersign, 'oneGated', runId, { ttl: '10m', stayOpen: true });
  assert.equal((await api.final(await api.approve(gate))).status, 200);
  await eventually(async () => (await factsOf(countersign, runId, 'tool_result')).length === 1);
  const facts = (await countersign.readTrail(runId)).length;
  await fastForward(temporal, runId, 2 * 3_600_000);
  await client.workflow.getHandle(runId).result();
  const trail = await countersign.readTrail(runId);
  assert.deepEqual(
    trail.slice(facts).map(({ type }) => type),
    ['run_finished'],
  );
  assert.equal((await linesOf(ledger, runId)).length, 1);
  const closed = await countersign.describeRun(runId);
  assert.equal((await api.reject(gate, { as: 'bob' })).status, 409);
  assert.deepEqual(await countersign.describeRun(runId), closed);
});
