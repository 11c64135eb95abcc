// P2, P4 and P1 on a real server, CASES 28: ten people decide on two gates while the run continues as new again and
// again. Each decision is judged once, in whatever execution; each gate has one winner; each history replays.
// On a server of its own, since the replay at the end of `npm test` has a bundle in which `runSpec` runs specs.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Decision } from '../src/core/decision.ts';
import type { TrailFact } from '../src/core/trail-fact.ts';
import { buildTestBundle, testBundle } from './support/bundle.ts';
import { eventually } from './support/eventually.ts';
import { clientOf, decisionOn, openGates, type SeenGate } from './support/gates.ts';
import { fetchHistory, taskFailures } from './support/history.ts';
import { startLedger } from './support/ledger.ts';
import { replayHistories } from './support/replay.ts';
import { makeSecrets } from './support/secrets.ts';
import { ownServer } from './support/temporal.ts';
import { temporaryFolder } from './support/temporary-folder.ts';
import { startWorker } from './support/worker.ts';

const temporal = await ownServer({ keepHistories: false });
const { client, address, namespace } = temporal;
const countersign = clientOf(temporal);
const ledger = await startLedger();
const { path: secretsFile } = await makeSecrets();

const localBundle = join(temporaryFolder(), 'local.js');
await buildTestBundle(localBundle, 'carried-as-run-spec.ts');
const ways = [
  { how: 'recording by local activities', type: 'runSpec', bundle: localBundle },
  { how: 'recording by ordinary activities', type: 'carriedGates', bundle: await testBundle() },
];
const people = Array.from({ length: 10 }, (_, index) => `person-${index}`);
const continuations = 5;
const kinds = ['comment', 'approve', 'reject'] as const;

/** Everybody says something of one gate, and before the last round nothing that can end it. */
function sayings(gates: readonly SeenGate[], round: number): Decision[] {
  return people.map((id, index): Decision => {
    const gate = gates[(index + round) % gates.length];
    assert.ok(gate);
    const kind = kinds[(index + round) % kinds.length] ?? 'comment';
    const isStale = kind !== 'comment' && round < continuations - 1;
    const hash = isStale ? { payloadHash: `sha256:${'0'.repeat(64)}` } : {};
    return decisionOn(gate, kind, { by: { id }, reason: `round ${round}`, ...hash });
  });
}

/** The facts about each decision: exactly one, whatever it was. */
function judgedOnce(facts: readonly TrailFact[], sent: readonly Decision[]): void {
  const told = new Map<string, string[]>();
  for (const fact of facts) {
    if (!('decision' in fact) || fact.decision === undefined) continue;
    const { decisionId } = fact.decision;
    told.set(decisionId, [...(told.get(decisionId) ?? []), fact.type]);
  }
  for (const { decisionId, decision } of sent) {
    assert.equal(
      told.get(decisionId)?.length,
      1,
      `${decision} ${decisionId}: ${String(told.get(decisionId))}`,
    );
  }
  assert.equal(told.size, sent.length);
}

for (const { how, type, bundle } of ways) {
  test(`P2: ten people decide while the run continues as new five times: each decision counts once (${how}) (case 28)`, async () => {
    const taskQueue = temporal.id('crowd');
    const settings = { address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url };
    const worker = await startWorker(settings, { bundle });
    const runId = temporal.id('crowd');
    const args = ['a', 'b'].map((name) => ({
      ...{ name, tool: 'payments.refund', ttl: '1h' },
      arguments: { order: `${runId}/${name}`, amount: '1.00' },
    }));
    const input = { gates: args, lingerMs: 3_600_000 };
    const handle = await client.workflow.start(type, { workflowId: runId, taskQueue, args: [input] });
    const gates = await openGates(countersign, runId, 2);
    const executions = [(await handle.describe()).runId];
    const sent: Decision[] = [];

    for (let round = 0; round < continuations; round += 1) {
      const decisions = sayings(gates, round);
      sent.push(...decisions);
      const half = decisions.length / 2;
      const send = (decision: Decision) => countersign.sendDecision(runId, decision);
      const crowd = decisions.slice(0, half).map(send);
      await crowd[0];
      const rolled = client.workflow.getHandle(runId).signal('roll');
      await Promise.all([...crowd, rolled, ...decisions.slice(half).map(send)]);
      executions.push(
        await eventually(async () => {
          const { runId: now } = await client.workflow.getHandle(runId).describe();
          return now !== executions.at(-1) && now;
        }),
      );
    }
    await eventually(
      async () => {
        const { raw, historyLength } = await client.workflow.getHandle(runId).describe();
        // Temporal lets an execution that comes too soon after the one before wait, without a task
        const hasBegun = historyLength > 3;
        return hasBegun && raw.pendingWorkflowTask == null && (raw.pendingActivities?.length ?? 0) === 0;
      },
      { message: 'a run that has judged all', timeoutMs: 240_000 },
    );
    const facts = await countersign.readTrail(runId);
    judgedOnce(facts, sent);
    assert.equal(facts.filter((fact) => fact.type === 'run_continued').length, continuations);
    assert.equal(facts.filter((fact) => fact.type === 'approval_requested').length, 2);
    const ends = facts.flatMap((fact) =>
      fact.type === 'approval_granted' || fact.type === 'approval_rejected' ? [fact] : [],
    );
    assert.deepEqual(ends.map(({ key }) => key).sort(), gates.map(({ key }) => key).sort());
    const receipts = await eventually(async () => {
        const all = await countersign.queryReceipts(runId, sent.map(({ decisionId }) => decisionId), 10_000);
        return all.every(({ verdict }) => verdict !== 'pending') && all;
      }); // prettier-ignore
    assert.equal(receipts.length, sent.length, 'every answer is kept over the executions');
    const accepted = receipts.filter(({ verdict }) => verdict === 'accepted').map((one) => one.decisionId);
    const told = facts.flatMap((fact) => (fact.type.startsWith('approval_') && 'decision' in fact ? [fact.decision?.decisionId] : [])); // prettier-ignore
    assert.deepEqual(accepted.sort(), told.sort());

    const approved = ends.filter((end) => end.type === 'approval_granted').map(({ position }) => position);
    const paid = await eventually(async () => {
        const lines = (await ledger.lines()).filter(({ body }) => (body as { order: string }).order.startsWith(runId));
        return lines.length === approved.length && lines;
      }); // prettier-ignore
    assert.deepEqual(
      paid.map(({ key }) => key).sort(),
      approved.map((position) => `${gates[0]?.root}:${position}`).sort(),
    );
    await client.workflow.getHandle(runId).terminate();
    const histories = [];
    for (const execution of executions) {
      const history = await fetchHistory(client, runId, execution);
      assert.deepEqual(taskFailures(history), []);
      histories.push({ workflowId: runId, history });
    }
    assert.deepEqual(await replayHistories(bundle, histories), {
      replayed: histories.length,
      failures: [],
    });
    await worker.stop();
  });
}
