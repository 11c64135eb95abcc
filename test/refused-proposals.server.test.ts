// P3 and P11 on a real server: a proposal that cannot be frozen fails its run at once, by name, and nobody is
// asked: no endless retry, no silent change, no half a case.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WorkflowFailedError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import type { Step } from '../src/core/spec/spec.ts';
import { clientOf, openGate, startSpec } from './support/gates.ts';
import { eventTypes, fetchHistory } from './support/history.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { startWorker } from './support/worker.ts';

const temporal = await openTemporal();
const { client, address, namespace, taskQueue } = temporal;
const countersign = clientOf(temporal);
const { path: secretsFile } = await makeSecrets();
// without a ledger: any effect would fail, and be seen in the trail
await startWorker({ address, namespace, taskQueue, secretsFile });

/** The run fails with `code: message`; nobody was asked, nothing was done, no workflow task failed on the way. */
async function failureOf(runId: string): Promise<string> {
  const error: unknown = await client.workflow
    .getHandle(runId)
    .result()
    .then(
      (result) => assert.fail(`run "${runId}" did not fail: ${JSON.stringify(result)}`),
      (reason: unknown) => reason,
    );
  assert.ok(error instanceof WorkflowFailedError, String(error));
  assert.ok(error.cause instanceof ApplicationFailure, String(error.cause));
  const types = eventTypes(await fetchHistory(client, runId));
  assert.ok(!types.includes('WorkflowTaskFailed'), `a workflow task failed: ${types.join()}`);
  assert.ok(!types.includes('WorkflowPropertiesModified'), 'somebody was asked');
  const trail = await countersign.readTrail(runId);
  assert.ok(!trail.some(({ type }) => /^(approval|effect|tool)_/.test(type)), JSON.stringify(trail));
  return `${error.cause.type ?? ''}: ${error.cause.message}`;
}

async function startOwn(type: string, input: object): Promise<string> {
  const runId = temporal.id(type);
  await client.workflow.start(type, { workflowId: runId, taskQueue, args: [input] });
  return runId;
}

async function startSteps(steps: Step[], input: Record<string, string> = {}): Promise<string> {
  const runId = temporal.id('spec');
  await startSpec(countersign, runId, { version: 1, name: 'refused', steps }, input);
  return runId;
}

const odd: [string, RegExp][] = [
  ['nan', /at \/items\/0\/amount: .*NaN/], ['infinity', /at \/items\/0\/amount: .*Infinity/],
  ['undefined', /at \/items\/0\/amount: undefined is not JSON/], ['date', /at \/items\/0\/amount: a Date/],
  ['map', /at \/items\/0\/amount: a Map/], ['set', /at \/items\/0\/amount: a Set/], ['bigint', /at \/items\/0\/amount: a BigInt/],
  ['function', /at \/items\/0\/amount: a function/], ['hole', /at \/items\/0\/amount: the array has a hole/],
  ['surrogate', /at \/items\/0\/amount: .*lone surrogate/], ['cycle', /at \/items\/0\/amount: .*contains itself/],
  ['nothing', /at the top: undefined is not JSON/],
]; // prettier-ignore

for (const [name, message] of odd) {
  test(`P3: ${name} in the arguments of one's own gate() or effect() is refused with its path`, async () => {
    for (const ungated of [false, true]) {
      const tool = ungated ? 'notify.send' : 'payments.refund';
      const runId = await startOwn('oddProposal', { odd: name, ungated, tool });
      const told = await failureOf(runId);
      assert.match(told, /^invalid_value: step "pay": /);
      assert.match(told, message);
      // it was seen in the workflow, before anything was sent
      assert.ok(!eventTypes(await fetchHistory(client, runId)).includes('ActivityTaskScheduled'));
    }
  });
}

test('P3: a 3 MB argument fails at once, naming step, size and limit (case 47, own workflow)', async () => {
  for (const ungated of [false, true]) {
    const runId = await startOwn('oddProposal', { odd: 'large', ungated, tool: 'payments.refund' });
    assert.match(
      await failureOf(runId),
      /^payload_too_large: step "pay": .*30000\d\d bytes.*limit is 262144 bytes/,
    );
  }
});

test('P3: arguments that templates make too large fail at once, naming step, size and limit (case 47, spec)', async () => {
  const text = 'é'.repeat(140_000);
  const before = { approve: {} };
  const large = { order: '${{ input.text }}', amount: '1.00' };
  const sized = /^payload_too_large: step "pay": .*2800\d\d bytes.*limit is 262144/;
  const gated = await startSteps([{ id: 'pay', tool: 'payments.refund', with: large, before }], { text });
  assert.match(await failureOf(gated), sized);
  const plain = await startSteps([{ id: 'pay', tool: 'notify.send', with: large }], { text });
  assert.match(await failureOf(plain), sized);
  // more than could ever fit is not even put together
  const doubled = { ...large, order: '${{ input.text }}${{ input.text }}' };
  const huge = await startSteps([{ id: 'pay', tool: 'payments.refund', with: doubled, before }], { text });
  assert.match(await failureOf(huge), /^payload_too_large: step "pay": order: .*more than 262144 characters/);
  const titled = await startSteps([{ id: 'release', approval: { title: '${{ input.text }}' } }], { text });
  assert.match(
    await failureOf(titled),
    /^payload_too_large: step "release": .*2800\d\d bytes.*limit is 262144/,
  );
});

test('P3: a title or a reasoning too long for a case fails at once, naming step, size and limit (case 47)', async () => {
  for (const name of ['title', 'reasoning']) {
    const runId = await startOwn('wordyGate', { [name]: 3_000_000 });
    const rule = new RegExp(
      `^payload_too_large: step "pay": the ${name} has 3000000 bytes, the limit is \\d+`,
    );
    assert.match(await failureOf(runId), rule);
  }
  const longest = await startOwn('wordyGate', { title: 4 * 1024, reasoning: 256 * 1024 });
  await openGate(countersign, longest);
  const [requested] = (await countersign.readTrail(longest)).filter(
    ({ type }) => type === 'approval_requested',
  );
  assert.ok(requested?.type === 'approval_requested');
  assert.deepEqual([requested.title.length, requested.reasoning?.length], [4 * 1024, 256 * 1024]);
  await client.workflow.getHandle(longest).terminate();
});

test('P11: a time that is none fails the run before anybody is asked', async () => {
  for (const ttl of [0, -1, 1.5, 1e17]) {
    const runId = await startOwn('wordyGate', { ttl });
    assert.match(await failureOf(runId), /^invalid_value: step "pay": ttl must be a duration/);
  }
});

test('P3: arguments that break the schema fail the run at their step, naming the field, before anyone is asked', async () => {
  const wrong = { order: 'ord-1', amount: 12.5, to: 'x' };
  const own = await startOwn('oneGated', { name: 'pay', tool: 'payments.refund', arguments: wrong });
  const spec = await startSteps([
    { id: 'pay', tool: 'payments.refund', with: wrong, before: { approve: {} } },
  ]);
  for (const runId of [own, spec]) {
    const told = await failureOf(runId);
    assert.match(told, /^invalid_arguments: step "pay", tool "payments\.refund": amount: .*expected string/);
    assert.match(told, /"to"/);
  }
});

test('a tool that is not there, and a reference to what is not there, fail the run before anyone is asked', async () => {
  const unknown = await startOwn('oneGated', { name: 'pay', tool: 'payments.refnd', arguments: {} });
  assert.match(
    await failureOf(unknown),
    /^unknown_tool: step "pay": no tool "payments\.refnd"; known: .*payments\.refund/,
  );
  const dangling = { order: '${{ input.orderId }}', amount: '1.00' };
  const spec = await startSteps([
    { id: 'pay', tool: 'payments.refund', with: dangling, before: { approve: {} } },
  ]);
  assert.match(await failureOf(spec), /^unresolved_reference: step "pay": .*orderId/);
});

test('P8: the longest ids and positions there may be still open a gate (case 48)', async () => {
  const position = 'p'.repeat(180);
  for (const id of [`${'ü'.repeat(114)}${temporal.id('x')}`, `${'~/ %'.repeat(57)}${temporal.id('x')}`]) {
    const workflowId = id.slice(-255);
    const input = { name: position, tool: 'payments.refund', arguments: { order: 'o', amount: '1.00' } };
    await client.workflow.start('oneGated', { workflowId, taskQueue, args: [input] });
    const gate = await openGate(countersign, workflowId);
    assert.equal(gate.position, position);
    assert.ok(gate.key.length > 400);
    await client.workflow.getHandle(workflowId).terminate();
  }
});
