// P4, P9 and P6 on a real server: a workflow reset takes a run back in time, but nothing out of the world.
// The effect has the same key, what a person said counts for what is asked anew only if it is the same, and
// the trail keeps what was cut off.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { z } from 'zod';
import type { Spec } from '../src/core/spec/spec.ts';
import type { TrailFact } from '../src/core/trail-fact.ts';
import { clientOf, decisionOn, factsOf, openGate, receiptOf, startSpec } from './support/gates.ts';
import { fetchHistory } from './support/history.ts';
import { kinds, startGate } from './support/kinds.ts';
import { startLedger } from './support/ledger.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { testTools } from './support/tools.ts';
import { startWorker } from './support/worker.ts';

const temporal = await openTemporal();
const { client, address, namespace, taskQueue } = temporal;
const countersign = clientOf(temporal);
const ledger = await startLedger();
const { path: secretsFile } = await makeSecrets();
const asItWas = `sha256:${'a'.repeat(64)}`;
let currentHash: string | undefined = asItWas;
const settings = { address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url };
const tools = testTools(ledger.url);
const worker = await startWorker(settings, { tools, deps: { currentSpecHash: () => currentHash } });

/** Takes the run back to its n-th completed workflow task (from 1), which is then done again. */
async function reset(workflowId: string, task: number): Promise<void> {
  const { events } = await fetchHistory(client, workflowId);
  const tasks = events?.filter((event) => event.workflowTaskCompletedEventAttributes) ?? [];
  const eventId = tasks[task - 1]?.eventId;
  assert.ok(eventId, `the run has ${tasks.length} workflow tasks`);
  await client.workflowService.resetWorkflowExecution({
    namespace,
    workflowExecution: { workflowId },
    reason: 'a test',
    workflowTaskFinishEventId: eventId,
    requestId: randomUUID(),
  });
}

async function sentFor(runId: string) {
  const lines = await ledger.lines();
  return lines
    .filter(({ body }) => (body as { order: string }).order === runId)
    .map(({ key, outcome }) => [key, outcome]);
}

/** Facts after the reset, and those that it cut off. */
function parts(facts: readonly TrailFact[]) {
  assert.deepEqual(
    facts.map(({ seq }) => seq),
    facts.map((_, index) => index + 1),
    'the trail is dense',
  );
  const at = facts.findIndex(({ type }) => type === 'run_reset');
  assert.ok(at > 0, `no run_reset in ${facts.map(({ type }) => type).join()}`);
  const cut = facts.filter(({ superseded }) => superseded);
  assert.ok(
    facts.slice(at).every(({ superseded }) => !superseded),
    'nothing after the reset is superseded',
  );
  return { cut: cut.map(({ type }) => type), after: facts.slice(at + 1).map(({ type }) => type) };
}

for (const kind of kinds) {
  const step = kind === 'runSpec' ? ['step_started'] : [];
  const stepEnd = kind === 'runSpec' ? ['step_completed'] : [];
  const asked = [...step, 'approval_requested'];
  const ran = ['effect_started', 'tool_result', ...stepEnd, 'run_finished'];

  test(`P4: reset to before the gate, the person is asked again under the same key, and the target does it once (${kind}) (case 26)`, async () => {
    const runId = temporal.id('reset');
    const gate = await startGate(temporal, countersign, kind, runId);
    const approve = decisionOn(gate, 'approve');
    await countersign.sendDecision(runId, approve);
    await client.workflow.getHandle(runId).result();
    assert.deepEqual(await sentFor(runId), [[`${gate.root}:refund`, 'refunded']]);

    await reset(runId, 1);
    const again = await openGate(countersign, runId);
    assert.deepEqual([again.key, again.hash, again.root], [gate.key, gate.hash, gate.root]);
    // Temporal applied it again before the gate was open: it is no yes that was kept
    const early = await receiptOf(countersign, approve, runId);
    assert.deepEqual([early.verdict, early.code], ['refused', 'not_open']);
    assert.equal((await sentFor(runId)).length, 1);

    await countersign.sendDecision(runId, approve);
    await client.workflow.getHandle(runId).result();
    assert.deepEqual(await sentFor(runId), [
      [`${gate.root}:refund`, 'refunded'],
      [`${gate.root}:refund`, 'replayed'],
    ]);
    const facts = await countersign.readTrail(runId);
    const { cut, after } = parts(facts);
    assert.deepEqual(cut, [...asked, 'approval_granted', ...ran]);
    assert.deepEqual(after, ['decision_refused', ...asked, 'approval_granted', ...ran]);
    assert.equal(facts.filter(({ type }) => type === 'run_started').length, 1);
  });

  test(`P4: reset to after the approval was sent, it counts again for the same payload, and the target does it once (${kind}) (case 26)`, async () => {
    const runId = temporal.id('reset-later');
    const gate = await startGate(temporal, countersign, kind, runId);
    const approve = decisionOn(gate, 'approve');
    await countersign.sendDecision(runId, approve);
    await client.workflow.getHandle(runId).result();

    // an own workflow has one task more before its gate is open
    await reset(runId, kind === 'runSpec' ? 2 : 3);
    await client.workflow.getHandle(runId).result();
    assert.deepEqual(await sentFor(runId), [
      [`${gate.root}:refund`, 'refunded'],
      [`${gate.root}:refund`, 'replayed'],
    ]);
    const facts = await countersign.readTrail(runId);
    const { cut, after } = parts(facts);
    assert.deepEqual(cut, ['approval_granted', ...ran]);
    assert.deepEqual(after, ['approval_granted', ...ran]);
    const granted = await factsOf(countersign, runId, 'approval_granted');
    assert.deepEqual(
      granted.map(({ decision }) => decision.decisionId),
      [approve.decisionId, approve.decisionId],
    );
  });
}

const refundSpec = (order: string): Spec => ({
  version: 1,
  name: 'reset',
  steps: [
    { id: 'refund', tool: 'payments.refund', with: { order, amount: '10.00' }, before: { approve: {} } },
  ],
});

test('P9: reset after the spec changed, the decision that is applied again is refused; restored, it counts (case 27)', async () => {
  const runId = temporal.id('reset-spec');
  await startSpec(countersign, runId, refundSpec(runId), {}, asItWas);
  const gate = await openGate(countersign, runId);
  const approve = decisionOn(gate, 'approve');
  await countersign.sendDecision(runId, approve);
  await client.workflow.getHandle(runId).result();
  try {
    currentHash = `sha256:${'b'.repeat(64)}`;
    await reset(runId, 2);
    const receipt = await receiptOf(countersign, approve, runId);
    assert.deepEqual([receipt.code, receipt.gate], ['spec_changed', 'pending']);
    assert.match(receipt.message ?? '', /a{12}.*b{12}/);
    assert.equal((await openGate(countersign, runId)).key, gate.key);
    assert.equal((await sentFor(runId)).length, 1);
  } finally {
    currentHash = asItWas;
  }
  await countersign.sendDecision(runId, approve);
  assert.deepEqual(await client.workflow.getHandle(runId).result(), { status: 'completed' });
  assert.deepEqual(await sentFor(runId), [
    [`${gate.root}:refund`, 'refunded'],
    [`${gate.root}:refund`, 'replayed'],
  ]);
  const { after } = parts(await countersign.readTrail(runId));
  assert.deepEqual(after.slice(0, 2), ['decision_refused', 'approval_granted']);
});

test('P3: reset under a build that freezes another payload, the old approval is for something else (case 27)', async () => {
  const runId = temporal.id('reset-build');
  await startSpec(countersign, runId, refundSpec(runId), {});
  const gate = await openGate(countersign, runId);
  const approve = decisionOn(gate, 'approve');
  await countersign.sendDecision(runId, approve);
  await client.workflow.getHandle(runId).result();
  await worker.stop();

  const dollars = z.strictObject({
    order: z.string(),
    amount: z.string(),
    currency: z.string().default('USD'),
  });
  const changed = tools.map((tool) =>
    tool.name === 'payments.refund' ? { ...tool, arguments: dollars } : tool,
  );
  await startWorker(settings, { tools: changed, deps: { currentSpecHash: () => currentHash } });
  await reset(runId, 1);
  const again = await openGate(countersign, runId);
  assert.equal(again.key, gate.key);
  assert.notEqual(again.hash, gate.hash);
  assert.equal((await receiptOf(countersign, approve, runId)).code, 'not_open');
  await countersign.sendDecision(runId, approve);
  const receipt = await receiptOf(countersign, approve, runId);
  assert.deepEqual([receipt.code, receipt.gate], ['payload_changed', 'pending']);
  assert.equal((await sentFor(runId)).length, 1);
  await countersign.sendDecision(runId, decisionOn(again, 'reject'));
  await client.workflow.getHandle(runId).result();
  assert.deepEqual(await sentFor(runId), [[`${gate.root}:refund`, 'refunded']]);
});
