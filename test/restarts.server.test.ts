// P9 and P1 on a real server with real worker processes: an open gate is nothing that a restart or another
// build of the same spec could touch.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openSpecRegistry } from '../src/spec-registry.ts';
import { testBundle } from './support/bundle.ts';
import { eventually } from './support/eventually.ts';
import { clientOf, decisionOn, factsOf, openGate, startSpec } from './support/gates.ts';
import { startLedger } from './support/ledger.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { temporaryFolder } from './support/temporary-folder.ts';
import { testTools } from './support/tools.ts';
import { spawnWorker, specFolder } from './support/worker.ts';

const temporal = await openTemporal();
const { client, address, namespace, taskQueue } = temporal;
const countersign = clientOf(temporal);
const ledger = await startLedger();
const { path: secretsFile } = await makeSecrets();
const bundle = readFileSync(await testBundle(), 'utf8');

const original = `version: 1
name: restarts
steps:
  - id: refund
    tool: payments.refund
    with: { order: '\${{ input.order }}', amount: '10.00' }
    before: { approve: { title: 'Refund \${{ input.order }}', ttl: 1h } }
`;
/** Every one of them is the same spec. */
const texts = [
  original,
  `# reviewed\n${original}`,
  original.replace('version: 1\nname: restarts\n', 'name: restarts\nversion: 1\n'),
  original.replace("amount: '10.00'", 'amount: "10.00"'),
];

/** A worker whose workflow code has another text, and whose spec stands in another file. */
function startBuild(number: number) {
  const code = join(temporaryFolder(), 'workflows.js');
  // in front: the SDK takes whatever stands behind the source map for a part of it
  writeFileSync(code, `/* build ${number} */ ${bundle}`);
  const specs = specFolder({ [`build-${number}.yaml`]: texts[number % texts.length] ?? original });
  const settings = { address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url, specs };
  return spawnWorker(settings, { COUNTERSIGN_TEST_BUNDLE: code });
}

test('P9: ten restarts with other builds of the same spec, killed and stopped, change nothing for an open gate (case 46)', async () => {
  const tools = testTools(ledger.url);
  const known = await openSpecRegistry({
    folder: specFolder({ 'a.yaml': original }),
    tools,
    log: () => undefined,
  });
  const current = known.get('restarts');
  known.close();
  assert.ok(current);

  let worker = await startBuild(0);
  const runId = temporal.id('restarts');
  const ownId = temporal.id('own');
  await startSpec(countersign, runId, current.spec, { order: runId }, current.hash);
  const input = { name: 'refund', tool: 'payments.refund', arguments: { order: ownId, amount: '10.00' } };
  await client.workflow.start('oneGated', { workflowId: ownId, taskQueue, args: [input] });
  const gates = [await openGate(countersign, runId), await openGate(countersign, ownId)];
  for (let number = 1; number <= 10; number += 1) {
    if (number % 2 === 0) await worker.stop();
    else await worker.kill();
    worker = await startBuild(number);
    for (const gate of gates) {
      // only a worker that has the whole run again can answer
      const handle = client.workflow.getHandle(gate.runId);
      const state = await eventually(() =>
        handle.query<{ gates: { key: string; state: string }[] }>('state'),
      );
      assert.deepEqual(state.gates, [{ key: gate.key, position: 'refund', state: 'pending' }]);
    }
  }
  for (const gate of gates) {
    await countersign.sendDecision(gate.runId, decisionOn(gate, 'approve'));
    const result = (await client.workflow.getHandle(gate.runId).result()) as {
      status?: string;
      state?: string;
    };
    assert.equal(result.status ?? result.state, gate.runId === runId ? 'completed' : 'approved');
    const lines = await ledger.lines();
    const sent = lines.filter(({ body }) => (body as { order: string }).order === gate.runId);
    assert.deepEqual(
      sent.map(({ key }) => key),
      [`${gate.root}:refund`],
    );
    assert.deepEqual(await factsOf(countersign, gate.runId, 'decision_refused'), []);
  }
  await worker.stop();
});
