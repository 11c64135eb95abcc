// P1, P2 and P4 on a real server: a long run of a spec continues as new between two steps. What is done is not
// done again, outputs are still there, and who looks from outside sees one run.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defineSearchAttributeKey, SearchAttributeType, TypedSearchAttributes } from '@temporalio/common';
import { z } from 'zod';
import type { Spec } from '../src/core/spec/spec.ts';
import { eventually } from './support/eventually.ts';
import { clientOf, decisionOn, openGates, receiptOf } from './support/gates.ts';
import { startLedger } from './support/ledger.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { testTools } from './support/tools.ts';
import { startWorker } from './support/worker.ts';

const temporal = await openTemporal();
const { address, namespace, taskQueue, client } = temporal;
const countersign = clientOf(temporal);
const ledger = await startLedger();
const { path: secretsFile } = await makeSecrets();
const size = 230_000;
const wordy = {
  name: 'wordy',
  arguments: z.looseObject({}),
  idempotency: 'key' as const,
  run: () => Promise.resolve({ text: 'x'.repeat(size) }),
};
const settings = { address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url };
await startWorker(settings, { tools: [...testTools(ledger.url), wordy] });

/** Starts it as the API does, except that it continues after so many events. */
async function start(name: string, spec: Spec, continueAfterEvents: number): Promise<string> {
  const runId = temporal.id(name);
  const specKey = defineSearchAttributeKey('CountersignSpec', SearchAttributeType.KEYWORD);
  const common = { v: 1, spec, input: { order: runId }, trigger: { kind: 'test' }, startedBy: { id: 'eve' } };
  await client.workflow.start('runSpec', {
    workflowId: runId,
    taskQueue,
    args: [{ ...common, continueAfterEvents }],
    memo: { request: 'hash-of-the-request' },
    typedSearchAttributes: new TypedSearchAttributes([{ key: specKey, value: spec.name }]),
  });
  return runId;
}

const openAt = (runId: string, position: string) =>
  eventually(async () => (await openGates(countersign, runId)).find((gate) => gate.position === position), {
    message: `the gate "${position}" of run "${runId}"`,
  });

async function sentFor(order: string) {
  const lines = (await ledger.lines()).filter(({ body }) => (body as { order?: string }).order === order);
  return lines.map(({ key, outcome, body }) => ({
    key,
    outcome,
    refund: (body as { refund?: string }).refund,
  }));
}

test('P4: a run of a spec that continues between its steps does each once and is one run (case 28)', async () => {
  const spec: Spec = {
    version: 1,
    name: temporal.id('long'),
    steps: [
      { id: 'tell', tool: 'notify.send', with: { order: '${{ input.order }}' } },
      {
        id: 'refund',
        tool: 'payments.refund',
        with: { order: '${{ input.order }}', amount: '10.00' },
        before: { approve: { ttl: '1h' } },
      },
      { id: 'close', approval: { title: 'Close ${{ steps.refund.output.refund }}?', ttl: '1h' } },
      {
        id: 'last',
        tool: 'notify.send',
        with: { order: '${{ input.order }}', refund: '${{ steps.refund.output.refund }}' },
      },
    ],
    output: { refund: '${{ steps.refund.output.refund }}' },
  };
  const runId = await start('long', spec, 5);
  const refund = await openAt(runId, 'refund');
  const approve = decisionOn(refund, 'approve');
  await countersign.sendDecision(runId, approve);
  const close = await openAt(runId, 'close');
  // the gate of an earlier execution: its answer is kept, and who comes late is told of it
  assert.equal((await receiptOf(countersign, approve, runId)).verdict, 'accepted');
  const late = decisionOn(refund, 'reject');
  await countersign.sendDecision(runId, late);
  const answer = await receiptOf(countersign, late, runId);
  assert.deepEqual([answer.code, answer.gate], ['already_resolved', 'approved']);
  await countersign.sendDecision(runId, decisionOn(close, 'approve'));
  const result = (await client.workflow.getHandle(runId).result()) as { output: { refund: string } };

  const { root } = refund;
  const id = result.output.refund;
  assert.match(id, /^re_/);
  assert.deepEqual(await sentFor(runId), [
    { key: `${root}:tell`, outcome: 'refunded', refund: undefined },
    { key: `${root}:refund`, outcome: 'refunded', refund: undefined },
    { key: `${root}:last`, outcome: 'refunded', refund: id },
  ]);
  const facts = await countersign.readTrail(runId);
  const told = facts.map(({ type, position }) => (position === undefined ? type : `${type} ${position}`));
  assert.deepEqual(told, [
    'run_started', 'step_started tell', 'effect_started tell', 'tool_result tell', 'step_completed tell', 'run_continued',
    'step_started refund', 'approval_requested refund', 'approval_granted refund', 'effect_started refund', 'tool_result refund',
    'step_completed refund', 'run_continued', 'step_started close', 'approval_requested close', 'decision_refused refund',
    'approval_granted close', 'step_completed close', 'run_continued', 'step_started last', 'effect_started last',
    'tool_result last', 'step_completed last', 'run_finished',
  ]); // prettier-ignore
  const run = await countersign.describeRun(runId);
  assert.deepEqual(
    [run?.root, run?.requestHash, run?.spec, run?.closeStatus],
    [root, 'hash-of-the-request', spec.name, 'completed'],
  );
  assert.deepEqual(run?.approvals.map(({ position, memo }) => [position, memo.state]).sort(), [
    ['close', 'approved'],
    ['refund', 'approved'],
  ]);
  const listed = await eventually(async () => {
    const { runs } = await countersign.listRuns({ spec: spec.name, pageSize: 20 });
    return runs.some(({ closeStatus }) => closeStatus === 'completed') && runs;
  });
  assert.deepEqual(listed.map((one) => one.runId), [runId], 'the earlier executions are no runs of their own'); // prettier-ignore
});

test('a run of a spec whose outputs are too large to be handed on stays in its execution, and completes', async () => {
  const steps = Array.from({ length: 9 }, (_, index) => ({ id: `step-${index}`, tool: 'wordy', with: {} }));
  const runId = await start('wordy', { version: 1, name: 'wordy', steps }, 1);
  assert.deepEqual(await client.workflow.getHandle(runId).result(), { status: 'completed' });
  const facts = await countersign.readTrail(runId);
  const done = facts.filter(({ type }) => type === 'step_completed').map(({ position }) => position);
  assert.deepEqual(done, steps.map(({ id }) => id)); // prettier-ignore
  const fitting = Math.floor((1536 * 1024) / size);
  assert.equal(facts.filter(({ type }) => type === 'run_continued').length, fitting);
});

test('a first execution that claims to continue another is refused (P4)', async () => {
  const runId = temporal.id('forged');
  const spec: Spec = { version: 1, name: 'forged', steps: [{ id: 'tell', tool: 'notify.send', with: {} }] };
  const continued = { steps: {}, carried: { v: 1, kind: 'carried', root: 'r', runId: 'r' } };
  const input = { v: 1, spec, input: {}, trigger: {}, startedBy: {}, continued };
  const handle = await client.workflow.start('runSpec', { workflowId: runId, taskQueue, args: [input] });
  await assert.rejects(handle.result());
  const end = (await countersign.readTrail(runId)).find((fact) => fact.type === 'run_finished');
  assert.equal(end?.error?.['code'], 'invalid_start');
});
