// P1 and P4 on a real server with real worker processes, killed by SIGKILL in the windows that matter: after
// the target did it and before the worker could report, before the effect, and during the whole wait.
import assert from 'node:assert/strict';
import { createServer, type AddressInfo } from 'node:net';
import { describe, test } from 'node:test';
import { eventually } from './support/eventually.ts';
import { openDeployment, sideBySide, type Deployment } from './support/deployment.ts';
import { factsOf, openGate, startSpec, type SeenGate } from './support/gates.ts';
import { eventTypes, fetchHistory } from './support/history.ts';
import { kinds, startGate, type Kind } from './support/kinds.ts';
import type { Ledger } from './support/ledger.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { fastForward } from './support/time.ts';

const temporal = await openTemporal();
const { client } = temporal;
const { path: secretsFile } = await makeSecrets();
const deploy = (): Promise<Deployment> => openDeployment(temporal, secretsFile);
const day = 24 * 3_600_000;

async function assertPaid(kind: Kind, gate: SeenGate): Promise<void> {
  const result = (await client.workflow.getHandle(gate.runId).result()) as Record<string, unknown>;
  if (kind === 'runSpec') assert.deepEqual(result, { status: 'completed' });
  else assert.deepEqual([result['state'], result['output']], ['approved', { refund: 're_1' }]);
}

/** A target that takes the connection and never reads a byte. */
async function startDeafTarget() {
  const server = createServer({ pauseOnConnect: true });
  const connected = new Promise<void>((resolve) => server.once('connection', () => resolve()));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, connected, close: () => server.close() };
}

async function assertEachOnce(ledger: Ledger, gate: SeenGate, paid: Record<string, string>): Promise<void> {
  const lines = await ledger.lines();
  assert.deepEqual(
    lines.map(({ key, outcome, body }) => [key, outcome, body]),
    [
      [`${gate.root}:notify`, 'refunded', { to: 'customer' }],
      [`${gate.root}:model`, 'refunded', { prompt: 'how much?' }],
      [`${gate.root}:pay`, 'refunded', paid],
    ],
  );
}

describe('a killed worker', sideBySide, () => {
  for (const kind of kinds) {
    test(`P4: the target did it, the worker is killed before it can report: the same key again, done once (case 21, ${kind})`, async () => {
      const { temporal: own, countersign, ledger, spawn, untilHeld, approve } = await deploy();
      const worker = await spawn();
      const gate = await startGate(own, countersign, kind, temporal.id('reported'));
      await ledger.hold();
      await approve(gate);
      await untilHeld();
      await worker.kill();
      await ledger.release();
      assert.deepEqual(await ledger.counts(), { requests: 1, keys: 1, refunds: 1 });
      assert.deepEqual(await factsOf(countersign, gate.runId, 'tool_result'), [], 'it could report');

      const next = await spawn();
      await assertPaid(kind, gate);
      const key = `${gate.root}:refund`;
      const lines = await ledger.lines();
      assert.deepEqual(
        lines.map((line) => [line.outcome, line.key, line.refund]),
        [
          ['refunded', key, 're_1'],
          ['replayed', key, 're_1'],
        ],
      );
      const results = await factsOf(countersign, gate.runId, 'tool_result');
      assert.deepEqual(
        results.map(({ attempts, idempotencyKey, output }) => [attempts, idempotencyKey, output]),
        [[2, key, { refund: 're_1' }]],
      );
      assert.equal((await factsOf(countersign, gate.runId, 'approval_granted')).length, 1);
      await next.stop();
    });

    test(`P4: a worker killed after its attempt began and before the target heard of it: another does it once (case 25, ${kind})`, async () => {
      const { temporal: own, countersign, ledger, spawn, approve } = await deploy();
      const deaf = await startDeafTarget();
      const worker = await spawn({ ledgerUrl: deaf.url });
      const gate = await startGate(own, countersign, kind, temporal.id('unheard'));
      await approve(gate);
      await deaf.connected;
      await worker.kill();
      deaf.close();
      assert.equal((await ledger.counts()).requests, 0);

      const next = await spawn();
      await assertPaid(kind, gate);
      assert.deepEqual(await ledger.counts(), { requests: 1, keys: 1, refunds: 1 });
      const [result] = await factsOf(countersign, gate.runId, 'tool_result');
      assert.deepEqual([result?.attempts, result?.idempotencyKey], [2, `${gate.root}:refund`]);
      await next.stop();
    });
  }

  test('P4: accepted, and every worker killed before the effect starts: it starts by itself when one is back (case 25)', async () => {
    const { temporal: own, countersign, ledger, spawn, approve } = await deploy();
    const worker = await spawn({ withoutEffects: true });
    const gate = await startGate(own, countersign, 'runSpec', temporal.id('accepted'));
    await approve(gate);
    await eventually(async () => (await factsOf(countersign, gate.runId, 'effect_started')).length === 1);
    await worker.kill();
    assert.equal((await factsOf(countersign, gate.runId, 'approval_granted')).length, 1);
    const { raw } = await client.workflow.getHandle(gate.runId).describe();
    assert.deepEqual(
      raw.pendingActivities?.map(({ attempt, lastStartedTime }) => [attempt, lastStartedTime ?? null]),
      [[1, null]],
      'the effect had started',
    );
    assert.equal((await ledger.counts()).requests, 0);

    const next = await spawn();
    await assertPaid('runSpec', gate);
    assert.deepEqual(await ledger.counts(), { requests: 1, keys: 1, refunds: 1 });
    await next.stop();
  });

  for (const kind of kinds) {
    test(`P1: a run waits for six days with no process at all, and is decided by the seventh (${kind})`, async () => {
      const { temporal: own, countersign, ledger, spawn, approve } = await deploy();
      const worker = await spawn();
      const gate = await startGate(own, countersign, kind, temporal.id('waits'), { ttl: '7d' });
      await worker.kill();
      const before = eventTypes(await fetchHistory(client, gate.runId));
      await fastForward(temporal, gate.runId, 6 * day);
      const description = await client.workflow.getHandle(gate.runId).describe();
      // nothing of it runs anywhere, and nothing waits for a worker
      assert.deepEqual(description.raw.pendingActivities ?? [], []);
      assert.equal(description.raw.pendingWorkflowTask ?? undefined, undefined);
      const after = eventTypes(await fetchHistory(client, gate.runId)).slice(before.length);
      assert.deepEqual(
        after.filter((type) => !/TimeSkipping|OptionsUpdated/.test(type)),
        [],
      );
      assert.equal((await openGate(countersign, gate.runId)).hash, gate.hash);

      const next = await spawn();
      await approve(gate);
      await assertPaid(kind, gate);
      const [memo] = (await countersign.describeRun(gate.runId))?.approvals ?? [];
      const [requested] = await factsOf(countersign, gate.runId, 'approval_requested');
      assert.ok(
        (memo?.memo.at ?? 0) - Date.parse(requested?.requestedAt ?? '') >= 6 * day,
        'six days did not pass',
      );
      assert.deepEqual(await ledger.counts(), { requests: 1, keys: 1, refunds: 1 });
      await next.stop();
    });
  }

  test('P1: notify, ask, gate, pay: with the worker killed while it waits, each happens once (case 19, runSpec)', async () => {
    const { countersign, ledger, spawn, approve } = await deploy();
    const worker = await spawn();
    const runId = temporal.id('case-19');
    const steps = [
      { id: 'notify', tool: 'notify.send', with: { to: 'customer' } },
      { id: 'model', tool: 'notify.send', with: { prompt: 'how much?' } },
      {
        id: 'pay',
        tool: 'payments.refund',
        with: { order: '${{ steps.model.output.refund }}', amount: '5.00' },
        before: { approve: {} },
      },
    ];
    const output = '${{ steps }}';
    await startSpec(countersign, runId, { version: 1, name: 'case-19', steps, output }, {});
    const gate = await openGate(countersign, runId);
    await worker.kill();
    await approve(gate);
    const next = await spawn();
    const result = (await client.workflow.getHandle(runId).result()) as { output: Record<string, unknown> };
    assert.deepEqual(result.output, {
      notify: { output: { refund: 're_1' } },
      model: { output: { refund: 're_2' } },
      pay: { output: { refund: 're_3' } },
    });
    await assertEachOnce(ledger, gate, { order: 're_2', amount: '5.00', currency: 'EUR' });
    await next.stop();
  });

  test('P1: the same in an own workflow (case 19, effectsThenGate)', async () => {
    const { temporal: own, countersign, ledger, spawn, approve } = await deploy();
    const worker = await spawn();
    const runId = temporal.id('case-19');
    const args = { order: runId, amount: '5.00' };
    const input = {
      before: [
        { name: 'notify', tool: 'notify.send', arguments: { to: 'customer' } },
        { name: 'model', tool: 'notify.send', arguments: { prompt: 'how much?' } },
      ],
      gate: { name: 'pay', tool: 'payments.refund', arguments: args },
    };
    const handle = await client.workflow.start('effectsThenGate', {
      workflowId: runId,
      taskQueue: own.taskQueue,
      args: [input],
    });
    const gate = await openGate(countersign, runId);
    await worker.kill();
    await approve(gate);
    const next = await spawn();
    const { outputs } = (await handle.result()) as { outputs: unknown[] };
    assert.deepEqual(outputs, [{ refund: 're_1' }, { refund: 're_2' }]);
    await assertEachOnce(ledger, gate, { ...args, currency: 'EUR' });
    await next.stop();
  });
});
