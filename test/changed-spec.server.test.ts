// P9 on a real server: a spec that changed since the pause is refused where the approver sees it, and the
// approval stays in place; restore the spec and it can be approved; rejecting is always possible.
import assert from 'node:assert/strict';
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { z } from 'zod';
import { approvalKey } from '../src/core/approval-key.ts';
import type { Decision } from '../src/core/decision.ts';
import { hashPayload, shortHash } from '../src/core/hash.ts';
import { openSpecRegistry } from '../src/spec-registry.ts';
import type { Tool } from '../src/tool.ts';
import { closeAfterFile } from './support/cleanup.ts';
import { eventually } from './support/eventually.ts';
import {
  clientOf,
  decisionOn,
  factsOf,
  openGate,
  receiptOf,
  signedDecision,
  startSpec,
} from './support/gates.ts';
import { startLedger } from './support/ledger.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { testTools } from './support/tools.ts';
import { specFolder, startWorker } from './support/worker.ts';

const temporal = await openTemporal();
const { client, address, namespace, taskQueue } = temporal;
const countersign = clientOf(temporal);
const ledger = await startLedger();
const { path: secretsFile, secrets } = await makeSecrets();
const tools = testTools(ledger.url);
const settings = { address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url };

const file = 'changes.yaml';
const original = `version: 1
name: changes
steps:
  - id: refund
    tool: payments.refund
    with: { order: '\${{ input.order }}', amount: '10.00' }
    before: { approve: { title: 'Refund \${{ input.order }}', ttl: 1h } }
  - id: tell
    tool: notify.send
    with: { order: '\${{ input.order }}', what: tell }
  - id: close
    tool: notify.send
    with: { order: '\${{ input.order }}', what: close }
`;
const [head = '', tell = '', close = ''] = original.split(/(?= {2}- id: (?:tell|close))/);

const folder = specFolder({ [file]: original });
const registry = await openSpecRegistry({ folder, tools, log: () => undefined });
closeAfterFile(async () => registry.close());
await startWorker(settings, { tools, deps: { currentSpecHash: (name) => registry.get(name)?.hash } });

/** Makes that the worker's specs: file name → text; the folder holds nothing else. */
async function haveSpecs(files: Record<string, string>): Promise<void> {
  for (const name of registryFiles) rmSync(join(folder, name), { force: true });
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(folder, '.new'), text);
    renameSync(join(folder, '.new'), join(folder, name));
    registryFiles.add(name);
  }
  await registry.refresh();
}
const registryFiles = new Set([file]);

/** Starts a run of the original spec and waits for its gate. */
async function startRun(name: string, of = registry) {
  const runId = temporal.id(name);
  const current = of.get('changes');
  assert.ok(current);
  await startSpec(countersign, runId, current.spec, { order: runId }, current.hash);
  return { runId, gate: await openGate(countersign, runId), hash: current.hash };
}

async function send(runId: string, decision: Decision) {
  assert.equal(await countersign.sendDecision(runId, decision), true);
  return receiptOf(countersign, decision, runId);
}

async function requestsOf(runId: string): Promise<number> {
  const lines = await ledger.lines();
  return lines.filter(({ body }) => (body as { order: string }).order === runId).length;
}

const sameSpec: Record<string, string> = {
  'a comment': `# reviewed\n${original}`,
  'key order': `name: changes\nversion: 1\n${original.replace(/^version: 1\nname: changes\n/, '')}`,
  'key order in a step': original.replace(
    '- id: tell\n    tool: notify.send\n',
    '- tool: notify.send\n    id: tell\n',
  ),
  quoting: original.replace('what: tell', 'what: "tell"').replace("amount: '10.00'", 'amount: "10.00"'),
};

const otherSpec: Record<string, Record<string, string>> = {
  'the next step renamed': { [file]: original.replace('id: tell', 'id: inform') },
  'two steps swapped': { [file]: head + close + tell },
  'a step less': { [file]: head + tell },
  'a title': { [file]: original.replace("'Refund ", "'Pay back ") },
  'an amount': { [file]: original.replace("'10.00'", "'99.00'") },
  'a deadline': { [file]: original.replace('ttl: 1h', 'ttl: 2h') },
  'an output more': { [file]: `${original}output: { done: true }\n` },
  'a default written out': { [file]: original.replace("'10.00' }", "'10.00', currency: EUR }") },
};

const noSpec: Record<string, Record<string, string>> = {
  'the file gone': {},
  'not YAML': { [file]: `${original}  - {` },
  'an unknown key': { [file]: `${original}steps2: []\n` },
  'renamed itself': { [file]: original.replace('name: changes', 'name: renamed') },
  'two files of its name': { [file]: original, 'again.yaml': original },
};

test('P9: an approval under a changed spec is refused with both hashes and stays; restored, the same decision counts', async () => {
  await haveSpecs({ [file]: original });
  const { runId, gate, hash } = await startRun('changed');
  const approve = await signedDecision(temporal, secrets, gate, 'approve');
  for (const [what, files] of [...Object.entries(otherSpec), ...Object.entries(noSpec)]) {
    await haveSpecs(files);
    const now = registry.get('changes')?.hash;
    assert.notEqual(now, hash, what);
    assert.equal(now === undefined, what in noSpec, what);
    const receipt = await send(runId, approve);
    assert.deepEqual([receipt.code, receipt.gate], ['spec_changed', 'pending'], what);
    assert.ok(receipt.message?.includes(shortHash(hash)), `${what}: ${receipt.message}`);
    assert.ok(
      receipt.message?.includes(now === undefined ? 'gone' : shortHash(now)),
      `${what}: ${receipt.message}`,
    );
    assert.equal((await openGate(countersign, runId)).key, gate.key, what);
  }
  assert.equal(await requestsOf(runId), 0);
  const refused = await factsOf(countersign, runId, 'decision_refused');
  assert.equal(refused.length, Object.keys({ ...otherSpec, ...noSpec }).length);
  assert.ok(
    refused.every(
      ({ code, decision }) => code === 'spec_changed' && decision?.decisionId === approve.decisionId,
    ),
  );

  await haveSpecs({ [file]: original });
  await countersign.sendDecision(runId, approve);
  assert.deepEqual(await client.workflow.getHandle(runId).result(), { status: 'completed' });
  const [granted] = await factsOf(countersign, runId, 'approval_granted');
  assert.equal(granted?.decision.decisionId, approve.decisionId);
  assert.equal(await requestsOf(runId), 3);
});

test('P9: a comment, key order and quoting are no change', async () => {
  await haveSpecs({ [file]: original });
  const hash = registry.get('changes')?.hash;
  for (const [what, text] of Object.entries(sameSpec)) {
    await haveSpecs({ [file]: original });
    const { runId, gate } = await startRun('same');
    assert.notEqual(text, original, what);
    await haveSpecs({ [file]: text });
    assert.equal(registry.get('changes')?.hash, hash, what);
    await countersign.sendDecision(runId, decisionOn(gate, 'approve'));
    assert.deepEqual(await client.workflow.getHandle(runId).result(), { status: 'completed' }, what);
    assert.equal(await requestsOf(runId), 3, what);
  }
});

test('P9: rejecting is always possible, whatever became of the spec', async () => {
  for (const [what, files] of [...Object.entries(otherSpec), ...Object.entries(noSpec)]) {
    await haveSpecs({ [file]: original });
    const { runId, gate } = await startRun('reject');
    await haveSpecs(files);
    await countersign.sendDecision(runId, decisionOn(gate, 'reject', { reason: what }));
    const result = await client.workflow.getHandle(runId).result();
    assert.deepEqual(result, { status: 'rejected', step: 'refund', gate: 'rejected' }, what);
    assert.equal(await requestsOf(runId), 0, what);
  }
});

test('P9: what a run does after an approval is the spec that it started with', async () => {
  await haveSpecs({ [file]: original });
  const { runId, gate } = await startRun('started-with');
  await ledger.hold();
  await countersign.sendDecision(runId, decisionOn(gate, 'approve'));
  await eventually(async () => (await requestsOf(runId)) === 1, { message: 'the refund at the ledger' });
  await haveSpecs({ [file]: head + close });
  await ledger.release();
  assert.deepEqual(await client.workflow.getHandle(runId).result(), { status: 'completed' });
  const done = await factsOf(countersign, runId, 'step_completed');
  assert.deepEqual(
    done.map(({ position }) => position),
    ['refund', 'tell', 'close'],
  );
});

test('P9: another build whose tool takes other arguments refuses; the build before it approves the same decision', async () => {
  const changes: Record<string, Partial<Tool>> = {
    'another schema': {
      arguments: z.strictObject({ order: z.string(), amount: z.string(), note: z.string().optional() }),
    },
    'another kind of idempotency': { idempotency: 'lookup' },
    'approval no longer required': { requiresApproval: false },
  };
  const place = { ...settings, taskQueue: `${taskQueue}-builds`, specs: specFolder({ [file]: original }) };
  const here = clientOf({ ...temporal, taskQueue: place.taskQueue });
  const known = await openSpecRegistry({ folder: place.specs, tools, log: () => undefined });
  closeAfterFile(async () => known.close());
  const current = known.get('changes');
  assert.ok(current);

  let build = await startWorker(place, { tools });
  const runId = temporal.id('builds');
  await startSpec(here, runId, current.spec, { order: runId }, current.hash);
  const gate = await openGate(here, runId);
  const approve = decisionOn(gate, 'approve');
  for (const [what, change] of Object.entries(changes)) {
    await build.stop();
    const changed = tools.map((tool) => (tool.name === 'payments.refund' ? { ...tool, ...change } : tool));
    build = await startWorker(place, { tools: changed });
    const receipt = await send(runId, approve);
    assert.deepEqual([receipt.code, receipt.gate], ['spec_changed', 'pending'], what);
    assert.match(
      receipt.message ?? '',
      new RegExp(`${shortHash(current.hash)}.* it is [0-9a-f]{12} now`),
      what,
    );
  }
  await build.stop();
  await startWorker(place, { tools });
  await here.sendDecision(runId, approve);
  assert.deepEqual(await client.workflow.getHandle(runId).result(), { status: 'completed' });
  assert.equal(await requestsOf(runId), 3);
});

test('P2: a decision that came before its gate is refused, and the same one counts once the gate is open', async () => {
  const names = ['first', 'second'];
  const steps = names.map((id) => ({
    id,
    tool: 'payments.refund',
    with: { order: '${{ input.order }}', amount: '10.00' },
    before: { approve: {} },
  }));
  const runId = temporal.id('early');
  await startSpec(countersign, runId, { version: 1, name: 'early', steps }, { order: runId });
  const first = await openGate(countersign, runId);
  const frozen = { tool: 'payments.refund', arguments: { order: runId, amount: '10.00', currency: 'EUR' } };
  const key = approvalKey({ workflowId: runId, position: 'second', root: first.root });
  const second = { ...first, key, position: 'second', hash: hashPayload(frozen).hash };

  const early = decisionOn(second, 'approve');
  const receipt = await send(runId, early);
  assert.deepEqual([receipt.verdict, receipt.code], ['refused', 'not_open']);
  assert.equal((await openGate(countersign, runId)).key, first.key);
  await countersign.sendDecision(runId, decisionOn(first, 'approve'));

  // the early one is no yes that was kept: the second gate waits
  const opened = await eventually(async () => {
    const gate = await openGate(countersign, runId);
    return gate.position === 'second' && gate;
  });
  assert.deepEqual([opened.key, opened.hash], [second.key, second.hash]);
  assert.equal(await requestsOf(runId), 1);
  await countersign.sendDecision(runId, early);
  assert.deepEqual(await client.workflow.getHandle(runId).result(), { status: 'completed' });
  assert.equal(await requestsOf(runId), 2);
  const facts = await countersign.readTrail(runId);
  const answers = facts.flatMap((fact) =>
    'decision' in fact && fact.decision?.decisionId === early.decisionId ? [fact.type] : [],
  );
  assert.deepEqual(answers, ['decision_refused', 'approval_granted']);
});
