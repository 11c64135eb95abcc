// `GET /events` on a real server: what happens in all runs, once and in one order, over two API processes and
// the end of one of them; and that runs of one's own workflow types are in it, and in the lists.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startApi } from './support/api-server.ts';
import { listen, type HeardEvent } from './support/event-listener.ts';
import { eventually } from './support/eventually.ts';
import { clientOf, decisionOn, openGate } from './support/gates.ts';
import { startLedger } from './support/ledger.ts';
import { startGate } from './support/refund-gates.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { startWorker } from './support/worker.ts';

const temporal = await openTemporal();
const { client, address, namespace, taskQueue } = temporal;
const countersign = clientOf(temporal);
const ledger = await startLedger();
const { path: secretsFile } = await makeSecrets();
const worker = await startWorker({ address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url });
after(() => worker.stop());
const events = { heartbeatMs: 200 };
const api = await startApi(temporal, { secretsFile, events });
const otherApi = await startApi(temporal, { secretsFile, events });

/** Other files' runs are on this server too. */
function of(runIds: readonly string[]) {
  return ({ data }: HeardEvent) => runIds.includes(String(data['runId']));
}

async function takeOf(listener: ReturnType<typeof listen>, runIds: readonly string[], count: number) {
  const heard: HeardEvent[] = [];
  while (heard.length < count) heard.push(...(await listener.take(1)).filter(of(runIds)));
  return heard;
}

test('what happens in all runs is heard once and in order; who comes back gets exactly the rest, from any process', async () => {
  const ownId = temporal.id('own');
  const listener = listen(await api.open('/events'));
  const gate = await startGate(temporal, countersign, 'spec');
  const input = { name: 'refund', tool: 'payments.refund', arguments: { order: ownId, amount: '1.00' } };
  await client.workflow.start('oneGated', { workflowId: ownId, taskQueue, args: [input] });
  const own = await openGate(countersign, ownId);
  await countersign.sendDecision(
    ownId,
    decisionOn(own, 'approve', { payloadHash: `sha256:${'0'.repeat(64)}` }),
  );
  assert.equal((await api.final(await api.reject(gate))).status, 200);
  assert.equal((await api.final(await api.approve(own))).status, 200);
  await client.workflow.getHandle(ownId).result();

  const runIds = [gate.runId, ownId];
  const trails = await Promise.all(runIds.map((runId) => countersign.readTrail(runId)));
  const count = trails.flat().length;
  const heard = await takeOf(listener, runIds, count);
  for (const [index, runId] of runIds.entries()) {
    assert.deepEqual(
      heard.filter(of([runId])).map(({ data }) => data),
      JSON.parse(JSON.stringify(trails[index]?.map((fact) => ({ runId, ...fact })))),
      'as in the trail',
    );
  }
  const times = heard.map(({ id }) => id.split('/')[0]);
  assert.deepEqual(times, times.toSorted());
  const types = heard.filter(of([ownId])).map(({ type }) => type);
  for (const type of ['decision_refused', 'approval_granted', 'tool_result', 'run_finished']) {
    assert.ok(types.includes(type), `${type} of a run of one's own workflow`);
  }
  await listener.leave();

  // from the first, a middle and the last place, by the other process and by one that has only just started
  const places = [0, 4, count - 1];
  const newApi = await startApi(temporal, { secretsFile, events });
  for (const [nth, place] of places.entries()) {
    const again = listen(await [otherApi, newApi, otherApi][nth]!.open('/events', 'ann', heard[place]?.id));
    const rest = await takeOf(again, runIds, count - 1 - place);
    assert.deepEqual(rest, heard.slice(place + 1));
    await again.leave();
  }
});

test('a listener that was cut off with its API process misses nothing and hears nothing twice', async () => {
  const first = await startApi(temporal, { secretsFile, events });
  const listener = listen(await first.open('/events'));
  const gate = await startGate(temporal, countersign, 'cut');
  const before = await takeOf(listener, [gate.runId], 2);
  const place = listener.place();
  await listener.leave();
  await first.close();
  // nobody listens, and no process of the API sweeps
  await client.workflow.getHandle(gate.runId).signal('decide', decisionOn(gate, 'reject'));
  await client.workflow.getHandle(gate.runId).result();
  const again = listen(await otherApi.open('/events', 'bob', place));
  const trail = await countersign.readTrail(gate.runId);
  const rest = await takeOf(again, [gate.runId], trail.length - 2);
  assert.deepEqual(
    [...before, ...rest].map(({ data }) => data['seq']),
    trail.map(({ seq }) => seq),
  );
  await again.leave();
});

test('while nothing happens there are heartbeats; a listener of all runs needs credentials and a good place', async () => {
  const listener = listen(await api.open('/events'));
  const heard = listener.next().catch(() => undefined);
  await eventually(() => listener.comments() > 3);
  await listener.leave();
  await heard;
  assert.equal((await api.call('GET', '/events', { as: 'nobody' })).status, 401);
  for (const place of ['17', '9999-12-31T23:59:59.999Z/some-run/1']) {
    const bad = await api.call('GET', '/events', { headers: { 'last-event-id': place } });
    assert.equal(`${bad.status} ${String(bad.body['code'])}`, '400 invalid_request', place);
  }
});

test("runs of one's own workflow types are in the lists of runs and of decisions", async () => {
  const runId = temporal.id('listed');
  const since = new Date(Date.now() - 60_000).toISOString();
  const input = { name: 'refund', tool: 'payments.refund', arguments: { order: runId, amount: '1.00' } };
  await client.workflow.start('oneGated', { workflowId: runId, taskQueue, args: [input] });
  const gate = await openGate(countersign, runId);
  await api.find(`/runs?status=awaiting_approval&since=${since}`, ({ id }) => id === runId);
  assert.equal((await api.final(await api.reject(gate))).status, 200);
  await client.workflow.getHandle(runId).result();
  await api.find(`/runs?since=${since}`, ({ id, closedAt }) => id === runId && closedAt !== undefined);
  const [decided] = await api.find(`/decisions?since=${since}`, ({ key }) => key === gate.key);
  assert.equal(decided?.['verdict'], 'rejected');
});
