// P4 on a real server: the key is a function of run and position alone, so whatever makes an effect's activity
// run again, the target does it once; and a call that has no place of its own is refused.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { WorkflowFailedError } from '@temporalio/client';
import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import { z } from 'zod';
import type { Tool } from '../src/tool.ts';
import { openDeployment, sideBySide, type Deployment } from './support/deployment.ts';
import { eventually } from './support/eventually.ts';
import { factsOf, openGate, openGates, startSpec } from './support/gates.ts';
import { kinds, startGate } from './support/kinds.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal, type TestTemporal } from './support/temporal.ts';

const temporal = await openTemporal();
const { client } = temporal;
const { path: secretsFile } = await makeSecrets();
const deploy = (): Promise<Deployment> => openDeployment(temporal, secretsFile);

/** For tests that neither hold nor break the ledger: they share one, and look at their own lines. */
let calmDeployment: Promise<Deployment> | undefined;
async function calm(): Promise<Deployment> {
  calmDeployment ??= deploy().then(async (deployment) => {
    await deployment.start();
    return deployment;
  });
  return calmDeployment;
}

/** Key and outcome of the ledger's lines of these runs, by their roots. */
async function paidBy(
  { ledger, countersign }: Deployment,
  ...runIds: string[]
): Promise<(string | null)[][]> {
  const runs = await Promise.all(runIds.map((runId) => countersign.describeRun(runId)));
  const roots = runs.map((run) => run?.root ?? assert.fail('there is no such run'));
  const lines = (await ledger.lines()).filter(({ key }) => roots.some((root) => key?.startsWith(root)));
  return lines.map(({ key, outcome }) => [key, outcome]);
}

/** Why a run failed: `code: message`. */
async function failureOf(runId: string): Promise<string> {
  const error: unknown = await client.workflow
    .getHandle(runId)
    .result()
    .then(
      () => assert.fail(`run "${runId}" did not fail`),
      (reason: unknown) => reason,
    );
  assert.ok(error instanceof WorkflowFailedError, String(error));
  assert.ok(error.cause instanceof ApplicationFailure, String(error.cause));
  return `${error.cause.type ?? ''}: ${error.cause.message}`;
}

/** A keyed tool that does not care when its time is up: it waits for the target, and notes what it was told. */
function patientTool(ledgerUrl: string): { tool: Tool; answers: unknown[] } {
  const answers: unknown[] = [];
  const tool: Tool = {
    name: 'payments.patient',
    arguments: z.looseObject({}),
    idempotency: 'key',
    requiresApproval: true,
    timeoutMs: 3_000,
    async run({ idempotencyKey }, args) {
      const headers = { 'idempotency-key': idempotencyKey };
      const response = await fetch(`${ledgerUrl}/refunds`, {
        method: 'POST',
        headers,
        body: JSON.stringify(args),
      });
      const answer: unknown = await response.json();
      answers.push(answer);
      return answer;
    },
  };
  return { tool, answers };
}

/** Starts an own workflow with a gated refund at each of these names. */
async function startRefunds(own: TestTemporal, type: string, names: string[]): Promise<string> {
  const workflowId = own.id('refunds');
  const refund = { tool: 'payments.refund', arguments: { order: workflowId, amount: '1.00' } };
  const gates = names.map((name) => ({ name, ...refund }));
  await client.workflow.start(type, { workflowId, taskQueue: own.taskQueue, args: [{ gates }] });
  return workflowId;
}

describe('once', sideBySide, () => {
  for (const kind of kinds) {
    test(`P4: an attempt whose time is up, and a target that answers later: the same key again, done once (case 21, ${kind})`, async () => {
      const { temporal: own, countersign, ledger, start, untilHeld, approve } = await deploy();
      const { tool, answers } = patientTool(ledger.url);
      await start({ tools: [tool] });
      const gate = await startGate(own, countersign, kind, own.id('late'), { tool: tool.name });
      await ledger.hold();
      await approve(gate);
      await untilHeld(2);
      assert.deepEqual(answers, [], 'the first attempt was answered in time');
      await ledger.release();
      await client.workflow.getHandle(gate.runId).result();
      await eventually(() => answers.length >= 2, { message: 'the late answer of the first attempt' });

      const { refunds, keys } = await ledger.counts();
      assert.deepEqual({ refunds, keys }, { refunds: 1, keys: 1 });
      for (const answer of answers) assert.deepEqual(answer, { refund: 're_1' });
      const results = await factsOf(countersign, gate.runId, 'tool_result');
      assert.equal(results.length, 1);
      assert.ok((results[0]?.attempts ?? 0) >= 2);
      assert.deepEqual(
        [results[0]?.idempotencyKey, results[0]?.output],
        [`${gate.root}:refund`, { refund: 're_1' }],
      );
    });
  }

  test('P4: a target that is down at first is asked again under the same key', async () => {
    const { temporal: own, countersign, ledger, start, approve } = await deploy();
    await start();
    for (const kind of kinds) {
      const gate = await startGate(own, countersign, kind, own.id('down'));
      await ledger.fail({ status: 503, times: 2 });
      await approve(gate);
      await client.workflow.getHandle(gate.runId).result();
      const key = `${gate.root}:refund`;
      const asked = (await ledger.lines()).slice(-3).map((line) => [line.outcome, line.key]);
      assert.deepEqual(asked, [
        ['refused', key],
        ['refused', key],
        ['refunded', key],
      ]);
    }
    assert.equal((await ledger.counts()).requests, 3 * kinds.length);
  });

  test('P4: two runs at the same position have different keys, and each is paid (case 29)', async () => {
    const deployment = await calm();
    const { temporal: own, countersign, approve } = deployment;
    const options = { arguments: { order: 'the-same', amount: '10.00' } };
    const first = await startGate(own, countersign, 'runSpec', own.id('run'), options);
    const second = await startGate(own, countersign, 'oneGated', own.id('run'), options);
    assert.equal(first.hash, second.hash);
    assert.notEqual(first.root, second.root);
    for (const gate of [first, second]) {
      await approve(gate);
      await client.workflow.getHandle(gate.runId).result();
    }
    assert.deepEqual(await paidBy(deployment, first.runId, second.runId), [
      [`${first.root}:refund`, 'refunded'],
      [`${second.root}:refund`, 'refunded'],
    ]);
  });

  test('P4: a name used again after its earlier use is the next position, with a key of its own', async () => {
    const deployment = await calm();
    const { temporal: own, countersign, approve } = deployment;
    const runId = await startRefunds(own, 'gatesInARow', ['pay', 'pay', 'pay']);
    const positions = ['pay', 'pay#2', 'pay#3'];
    const roots: string[] = [];
    for (const position of positions) {
      const gate = await eventually(async () => {
        const open = await openGate(countersign, runId);
        return open.position === position ? open : undefined;
      });
      roots.push(gate.root);
      await approve(gate);
    }
    await client.workflow.getHandle(runId).result();
    const expected = positions.map((position, index) => [`${roots[index] ?? ''}:${position}`, 'refunded']);
    assert.deepEqual(await paidBy(deployment, runId), expected);
  });

  test('P4: a name that is none, or that only the system may make, fails the run and asks nobody (case 29)', async () => {
    const deployment = await calm();
    const { temporal: own, countersign } = deployment;
    const names = ['a:b', '', 'a b', 'pay#2', 'each[0]', 'pay/', '../pay', 'x'.repeat(181)];
    for (const name of names) {
      const runId = await startRefunds(own, 'gatesInARow', [name]);
      assert.match(await failureOf(runId), /^invalid_name: position "/, name);
      const trail = await countersign.readTrail(runId);
      assert.deepEqual(
        trail.map(({ type }) => type),
        ['run_started', 'run_finished'],
      );
      assert.deepEqual(await paidBy(deployment, runId), []);
    }
  });

  test('P4: a name used while its earlier use is open is refused, and pays nothing', async () => {
    const deployment = await calm();
    const { temporal: own, countersign } = deployment;
    const runId = await startRefunds(own, 'gatesSideBySide', ['pay', 'pay']);
    const refused = /^duplicate_position: position "pay".*earlier use is open.*"pay\/item-17"/;
    assert.match(await failureOf(runId), refused);
    assert.deepEqual(await factsOf(countersign, runId, 'effect_started'), []);
    assert.deepEqual(await paidBy(deployment, runId), []);

    // by its item each has a place: both are asked
    const named = await startRefunds(own, 'gatesSideBySide', ['pay/item-0', 'pay/item-1']);
    const open = await openGates(countersign, named, 2);
    assert.deepEqual(
      open.map(({ position }) => position),
      ['pay/item-0', 'pay/item-1'],
    );
    await client.workflow.getHandle(named).terminate();
  });

  for (const kind of kinds) {
    test(`P4: a run cancelled while its effect is in flight: it is awaited and recorded, and nothing follows (${kind})`, async () => {
      const { temporal: own, countersign, ledger, start, untilHeld, approve } = await deploy();
      await start();
      const runId = own.id('cancelled');
      const payment = { tool: 'payments.refund', arguments: { order: runId, amount: '1.00' } };
      if (kind === 'runSpec') {
        const steps = [
          { id: 'pay', tool: payment.tool, with: payment.arguments, before: { approve: {} } },
          { id: 'then', tool: 'notify.send', with: { to: 'customer' } },
        ];
        await startSpec(countersign, runId, { version: 1, name: 'cancelled', steps }, {});
      } else {
        const gates = ['pay', 'then'].map((name) => ({ name, ...payment }));
        await client.workflow.start('gatesInARow', {
          workflowId: runId,
          taskQueue: own.taskQueue,
          args: [{ gates }],
        });
      }
      const gate = await openGate(countersign, runId);
      await ledger.hold();
      await approve(gate);
      await untilHeld();
      await client.workflow.getHandle(runId).cancel();
      assert.deepEqual(await factsOf(countersign, runId, 'tool_result'), []);
      await ledger.release();
      const ended = client.workflow.getHandle(runId).result();
      if (kind === 'runSpec') {
        await assert.rejects(ended, (error: unknown) => {
          return error instanceof WorkflowFailedError && error.cause instanceof CancelledFailure;
        });
        assert.equal((await countersign.describeRun(runId))?.closeStatus, 'cancelled');
      } else {
        assert.deepEqual(await ended, ['approved', 'cancelled']);
      }
      const [result] = await factsOf(countersign, runId, 'tool_result');
      assert.deepEqual([result?.position, result?.output], ['pay', { refund: 're_1' }]);
      assert.deepEqual(await ledger.counts(), { requests: 1, keys: 1, refunds: 1 });
    });
  }
});
