// P1 on a real server: what was recorded is what a run is. Every history replays to the same commands, with
// many gates open and decisions coming in together, whatever the cache. (Of 1 the SDK makes 2, its least.)
// On a server of its own, since the replay at the end of `npm test` has a bundle in which `runSpec` runs specs.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Decision } from '../src/core/decision.ts';
import { buildTestBundle, testBundle } from './support/bundle.ts';
import { clientOf, decisionOn, openGates } from './support/gates.ts';
import { fetchHistory } from './support/history.ts';
import { startLedger } from './support/ledger.ts';
import { skipWithoutCache as skip } from './support/project.ts';
import { replayHistories } from './support/replay.ts';
import { makeSecrets } from './support/secrets.ts';
import { ownServer } from './support/temporal.ts';
import { temporaryFolder } from './support/temporary-folder.ts';
import { startWorker } from './support/worker.ts';

const temporal = await ownServer({ keepHistories: false });
const { client, address, namespace, taskQueue } = temporal;
const countersign = clientOf(temporal);
const ledger = await startLedger();
const { path: secretsFile } = await makeSecrets();

const localBundle = join(temporaryFolder(), 'local.js');
await buildTestBundle(localBundle, 'side-by-side-as-run-spec.ts');
const ways = [
  { how: 'recording by local activities', type: 'runSpec', bundle: localBundle },
  { how: 'recording by ordinary activities', type: 'gatesSideBySide', bundle: await testBundle() },
];
const gateCount = 10;
const replays = 20;

/** Two approvals and a rejection a gate, by different people, in an order that differs from run to run. */
function decisionsOn(gates: Awaited<ReturnType<typeof openGates>>): Decision[] {
  const decisions = gates.flatMap((gate) => [
    decisionOn(gate, 'approve', { by: { id: 'ann' } }),
    decisionOn(gate, 'reject', { by: { id: 'bob' } }),
    decisionOn(gate, 'approve', { by: { id: 'cid' } }),
  ]);
  return decisions.sort((a, b) => (a.decisionId < b.decisionId ? -1 : 1));
}

for (const { how, type, bundle } of ways) {
  for (const maxCachedWorkflows of [0, 1, undefined]) {
    const cache = maxCachedWorkflows === undefined ? 'the default cache' : `a cache of ${maxCachedWorkflows}`;
    test(
      `P1: ten gates take thirty decisions and replay twenty times to the same run (${how}, ${cache})`,
      { skip },
      async () => {
        const queue = temporal.id(taskQueue);
        const worker = await startWorker(
          {
            ...{ address, namespace, secretsFile, ledgerUrl: ledger.url },
            taskQueue: queue,
            maxCachedWorkflows: maxCachedWorkflows ?? 600,
          },
          { bundle },
        );
        const runId = temporal.id('ten');
        const gates = Array.from({ length: gateCount }, (_, index) => ({
          name: `pay/item-${index}`,
          tool: 'payments.refund',
          arguments: { order: `${runId}/${index}`, amount: '1.00' },
        }));
        const handle = await client.workflow.start(type, {
          workflowId: runId,
          taskQueue: queue,
          args: [{ gates }],
        });
        const seen = await openGates(countersign, runId, gateCount);
        const decisions = decisionsOn(seen);
        await Promise.all(decisions.map((decision) => countersign.sendDecision(runId, decision)));
        const states = (await handle.result()) as string[];

        const facts = await countersign.readTrail(runId);
        const settled = new Map<string, { type: string; id: string }>();
        for (const fact of facts) {
          if (fact.type !== 'approval_granted' && fact.type !== 'approval_rejected') continue;
          assert.ok(!settled.has(fact.position ?? ''), `${fact.position} was settled twice`);
          settled.set(fact.position ?? '', { type: fact.type, id: fact.decision.decisionId });
        }
        const told = gates.map(({ name }) =>
          settled.get(name)?.type === 'approval_granted' ? 'approved' : 'rejected',
        );
        assert.deepEqual(states, told);
        const winners = new Set([...settled.values()].map(({ id }) => id));
        const refused = facts.flatMap((fact) =>
          fact.type === 'decision_refused' ? [fact.decision?.decisionId] : [],
        );
        assert.equal(winners.size, gateCount);
        assert.deepEqual(
          [...winners, ...refused].sort(),
          decisions.map(({ decisionId }) => decisionId).sort(),
        );
        const paid = (await ledger.lines()).filter(({ body }) =>
          (body as { order: string }).order.startsWith(runId),
        );
        assert.deepEqual(
          paid.map(({ key }) => key).sort(),
          seen
            .flatMap(({ root }, index) => (told[index] === 'approved' ? [`${root}:pay/item-${index}`] : []))
            .sort(),
        );

        const history = await fetchHistory(client, runId);
        const copies = Array.from({ length: replays }, () => ({ workflowId: runId, history }));
        assert.deepEqual(await replayHistories(bundle, copies), { replayed: replays, failures: [] });
        await worker.stop();
      },
    );
  }
}
