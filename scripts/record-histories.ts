// Records the histories that a release keeps: one real run of each sort, on a dev server of its own, into
// test/histories/<date>-<what>.json, which test/histories.test.ts replays under all later code.
//   node --import tsx --conditions=countersign-source scripts/record-histories.ts 2026-11-29
// A file that is there already is left as it is: a kept history is never recorded again. So a new sort is
// added here, and the script run with the date of the next release.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { historyToJSON, type History } from '@temporalio/common/lib/proto-utils.js';
import type { Spec } from '../src/core/spec/spec.ts';
import { eventually } from '../test/support/eventually.ts';
import {
  clientOf,
  decisionOn,
  openGate,
  openGates,
  receiptOf,
  signedDecision,
  startSpec,
} from '../test/support/gates.ts';
import { fetchHistory } from '../test/support/history.ts';
import { startLedger } from '../test/support/ledger.ts';
import { makeSecrets } from '../test/support/secrets.ts';
import { ownServer } from '../test/support/temporal.ts';
import { fastForward } from '../test/support/time.ts';
import { startWorker } from '../test/support/worker.ts';

const folder = 'test/histories';
const [date = ''] = process.argv.slice(2);
if (!/^\d{4}-\d{2}-\d{2}$/.test(date)) {
  console.error('usage: record-histories.ts <yyyy-mm-dd>');
  process.exit(64);
}

const temporal = await ownServer({ keepHistories: false });
const { client, address, namespace, taskQueue } = temporal;
const countersign = clientOf(temporal);
const ledger = await startLedger();
const { path: secretsFile, secrets } = await makeSecrets();
let grantKeys = () => secrets.grantKeys();
const worker = await startWorker(
  { address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url },
  { deps: { currentSpecHash: () => 'sha256:current', grantKeys: () => grantKeys() } },
);

const refund = {
  id: 'refund',
  tool: 'payments.refund',
  with: { order: '${{ input.order }}', amount: '10.00' },
};
const spec: Spec = {
  version: 1,
  name: 'recorded',
  steps: [
    { id: 'tell', tool: 'notify.send', with: { order: '${{ input.order }}' } },
    { ...refund, before: { approve: { title: 'Refund ${{ input.order }}', ttl: '2h' } } },
    { id: 'close', approval: { title: 'Close ${{ input.order }}?' } },
  ],
  output: { refund: '${{ steps.refund.output.refund }}' },
};

async function startRun(name: string): Promise<string> {
  await startSpec(countersign, name, spec, { order: name }, 'sha256:current');
  return name;
}

async function startOwn(type: string, name: string, input: unknown): Promise<string> {
  await client.workflow.start(type, { workflowId: name, taskQueue, args: [input] });
  return name;
}

const ownRefund = (order: string, name = 'refund') => ({
  name,
  tool: 'payments.refund',
  arguments: { order, amount: '10.00' },
});

const ended = (runId: string): Promise<unknown> =>
  client.workflow
    .getHandle(runId)
    .result()
    .catch(() => undefined);

/** A run that continued as new with an open gate and waiting decisions, and its first execution. */
async function carriedRun(name: string): Promise<{ workflowId: string; first: string }> {
  const gates = ['a', 'b'].map((item) => ownRefund(name, item));
  const workflowId = await startOwn('carriedGates', name, { gates });
  const [a, b] = await openGates(countersign, workflowId, gates.length);
  if (a === undefined || b === undefined) throw new Error('the gates are not open');
  const handle = client.workflow.getHandle(workflowId);
  const first = (await handle.describe()).runId;
  await Promise.all([
    ...['one', 'two', 'three'].map((reason) =>
      countersign.sendDecision(workflowId, decisionOn(a, 'comment', { reason })),
    ),
    countersign.sendDecision(workflowId, decisionOn(b, 'approve')),
    handle.signal('roll'),
  ]);
  await eventually(async () => (await client.workflow.getHandle(workflowId).describe()).runId !== first);
  await countersign.sendDecision(workflowId, decisionOn(a, 'reject'));
  await ended(workflowId);
  return { workflowId, first };
}

/** Each makes one run and gives its id once it is as it is to be recorded; where it has several, the execution. */
const sorts: Record<string, (name: string) => Promise<string | { workflowId: string; runId: string }>> = {
  async 'spec-approved'(name) {
    const runId = await startRun(name);
    const gate = await openGate(countersign, runId);
    const wrong = decisionOn(gate, 'approve', { payloadHash: `sha256:${'0'.repeat(64)}` });
    await countersign.sendDecision(runId, wrong);
    await receiptOf(countersign, wrong, runId);
    await countersign.sendDecision(runId, await signedDecision(temporal, secrets, gate, 'approve'));
    const close = await eventually(async () => {
      const next = await openGate(countersign, runId);
      return next.position === 'close' && next;
    });
    await countersign.sendDecision(runId, decisionOn(close, 'approve'));
    await ended(runId);
    return runId;
  },
  async 'spec-rejected'(name) {
    const runId = await startRun(name);
    const gate = await openGate(countersign, runId);
    await countersign.sendDecision(runId, decisionOn(gate, 'reject', { reason: 'Nein – 1\u00a0000 €' }));
    await ended(runId);
    return runId;
  },
  async 'spec-expired'(name) {
    const runId = await startRun(name);
    await openGate(countersign, runId);
    await fastForward(temporal, runId, 3 * 3_600_000);
    await ended(runId);
    return runId;
  },
  async 'spec-cancelled'(name) {
    const runId = await startRun(name);
    await openGate(countersign, runId);
    await client.workflow.getHandle(runId).cancel();
    await ended(runId);
    return runId;
  },
  async 'spec-check-failed'(name) {
    const runId = await startRun(name);
    const gate = await openGate(countersign, runId);
    const approve = decisionOn(gate, 'approve');
    grantKeys = () => [];
    await countersign.sendDecision(runId, approve);
    await receiptOf(countersign, approve, runId);
    grantKeys = () => secrets.grantKeys();
    await countersign.sendDecision(runId, decisionOn(gate, 'reject'));
    await ended(runId);
    return runId;
  },
  async 'spec-pending-after-poor-signals'(name) {
    const runId = await startRun(name);
    const gate = await openGate(countersign, runId);
    const handle = client.workflow.getHandle(runId);
    for (const poor of [null, 1, 'approve', {}, { v: 1 }]) await handle.signal('decide', poor);
    await handle.signal('decide');
    await handle.signal('something-else', { x: 1 });
    const other = decisionOn(gate, 'approve', { key: gate.key.replace('.refund.', '.close.') });
    await countersign.sendDecision(runId, other);
    await receiptOf(countersign, other, runId);
    return runId;
  },
  async 'own-approved'(name) {
    const runId = await startOwn('oneGated', name, ownRefund(name));
    const gate = await openGate(countersign, runId);
    await countersign.sendDecision(runId, decisionOn(gate, 'approve'));
    await ended(runId);
    return runId;
  },
  async 'own-gates-in-a-row'(name) {
    const gates = [ownRefund(name), ownRefund(name)];
    const runId = await startOwn('gatesInARow', name, { gates });
    const first = await openGate(countersign, runId);
    await countersign.sendDecision(runId, decisionOn(first, 'reject'));
    const second = await eventually(async () => {
      const next = await openGate(countersign, runId);
      return next.position === 'refund#2' && next;
    });
    await countersign.sendDecision(runId, decisionOn(second, 'approve'));
    await ended(runId);
    return runId;
  },
  async 'own-carries'(name) {
    const { workflowId, first } = await carriedRun(name);
    return { workflowId, runId: first };
  },
  async 'own-carried'(name) {
    return (await carriedRun(name)).workflowId;
  },
  async 'own-gates-side-by-side'(name) {
    const gates = ['a', 'b', 'c', 'd'].map((item) => ownRefund(name, `refund/${item}`));
    const runId = await startOwn('gatesSideBySide', name, { gates });
    const seen = await openGates(countersign, runId, gates.length);
    const decisions = seen.flatMap((gate) => [decisionOn(gate, 'approve'), decisionOn(gate, 'reject')]);
    await Promise.all(decisions.map((decision) => countersign.sendDecision(runId, decision)));
    await ended(runId);
    return runId;
  },
};

/** Stack traces have paths of this machine in them, and no replay looks at them. */
function withoutStacks(history: History): string {
  return historyToJSON(history).replace(/"stackTrace": ?"(?:[^"\\]|\\.)*"/g, '"stackTrace": ""');
}

try {
  mkdirSync(folder, { recursive: true });
  for (const [what, make] of Object.entries(sorts)) {
    const file = join(folder, `${date}-${what}.json`);
    if (existsSync(file)) {
      console.error(`${file} is there already, and stays`);
      continue;
    }
    const made = await make(`${date}-${what}`);
    const [workflowId, runId] = typeof made === 'string' ? [made] : [made.workflowId, made.runId];
    writeFileSync(file, `${withoutStacks(await fetchHistory(client, workflowId, runId))}\n`);
    console.log(file);
  }
} finally {
  await worker.stop();
  await ledger.process.stop();
  await temporal.stop();
}
