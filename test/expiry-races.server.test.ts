// P2 and P11 on a real server: a decision and the clock race for a gate, and one of them has it. Every history
// made here is replayed at the end of `npm test`, so the outcome is the same each time it is told.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'node:test';
import type { Decision } from '../src/core/decision.ts';
import type { TrailFact } from '../src/core/trail-fact.ts';
import { eventually } from './support/eventually.ts';
import { clientOf, signedDecision, type SeenGate } from './support/gates.ts';
import { startLedger } from './support/ledger.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { startWorker } from './support/worker.ts';

const temporal = await openTemporal();
const { client, address, namespace, taskQueue } = temporal;
const countersign = clientOf(temporal);
const ledger = await startLedger();
const { path: secretsFile, secrets } = await makeSecrets();
await startWorker({ address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url });

/** The pass without a workflow cache repeats every server test; a fifth of the gates shows the same there. */
const runs = process.env['COUNTERSIGN_TEST_CACHE'] === '0' ? 5 : 25;
/** A memo keeps the newest 20 settled gates, so that each of these is in it, open or not. */
const gatesPerRun = 20;
/** More would have the gates of a small machine expire before they are seen; then it is no race. */
const runsAtOnce = 5;
const firstMs = 4_000;
const stepMs = 40;

const settled = (fact: TrailFact): boolean =>
  ['approval_granted', 'approval_rejected', 'approval_expired'].includes(fact.type);

test('P2: decisions within 50 ms of the deadline, 500 times: each gate has one outcome, and no run fails (case 17)', async (t) => {
  const outcomes = new Map<string, number>();
  let left = runs;
  const race = async () => {
    while (left-- > 0) await raceIn(outcomes);
  };
  await Promise.all(Array.from({ length: runsAtOnce }, race));
  t.diagnostic(JSON.stringify(Object.fromEntries(outcomes)));
  const all = [...outcomes.values()].reduce((sum, count) => sum + count, 0);
  assert.equal(all, runs * gatesPerRun);
});

async function raceIn(outcomes: Map<string, number>): Promise<void> {
  const runId = temporal.id('race');
  const gates = Array.from({ length: gatesPerRun }, (_, index) => ({
    name: `gate-${index}`,
    tool: 'payments.refund',
    arguments: { order: `${runId}/${index}`, amount: '1.00' },
    ttl: firstMs + index * stepMs,
  }));
  const handle = await client.workflow.start('gatesSideBySide', {
    workflowId: runId,
    taskQueue,
    args: [{ gates }],
  });
  const run = await eventually(
    async () => {
      const described = await countersign.describeRun(runId);
      return described?.approvals.length === gatesPerRun ? described : undefined;
    },
    { timeoutMs: 600_000, pauseMs: 100, message: `${gatesPerRun} gates in run "${runId}"` },
  );
  const pending = run.approvals.filter(({ memo }) => memo.state === 'pending');
  const sent = await Promise.all(
    pending.map(({ key, position, memo }, index) => {
      const gate = { runId, root: run.root, key, position, hash: memo.hash ?? '' };
      return decideAt(gate, (memo.expiresAt ?? 0) - 50 + ((index * 37) % 101));
    }),
  );
  const states = (await handle.result()) as string[];
  assert.equal(states.length, gatesPerRun);

  const trail = await countersign.readTrail(runId);
  const paid = (await ledger.lines()).map(({ body }) => (body as { order: string }).order);
  for (const [index, state] of states.entries()) {
    const ends = trail.filter((fact) => fact.position === `gate-${index}` && settled(fact));
    assert.equal(ends.length, 1, `${runId} gate-${index}: ${ends.map(({ type }) => type).join()}`);
    const told = { approval_granted: 'approved', approval_rejected: 'rejected', approval_expired: 'expired' };
    assert.equal(told[ends[0]!.type as keyof typeof told], state);
    const order = `${runId}/${index}`;
    assert.equal(paid.filter((one) => one === order).length, state === 'approved' ? 1 : 0, order);
    outcomes.set(state, (outcomes.get(state) ?? 0) + 1);
  }
  // every decision that reached the run is one fact of it: it won, or it was refused
  for (const decision of sent) {
    if (decision === undefined) continue;
    const facts = trail.filter(
      (fact) => 'decision' in fact && fact.decision?.decisionId === decision.decisionId,
    );
    assert.equal(facts.length, 1, decision.key);
    const [fact] = facts;
    if (fact?.type === 'decision_refused') assert.ok(['expired', 'already_resolved'].includes(fact.code));
  }
}

/** Undefined when the run had ended by then. */
async function decideAt(gate: SeenGate, at: number): Promise<Decision | undefined> {
  await sleep(Math.max(0, at - Date.now()));
  const kind = Number(gate.position.slice(5)) % 2 === 0 ? 'approve' : 'reject';
  const decision = await signedDecision(temporal, secrets, gate, kind);
  return (await countersign.sendDecision(gate.runId, decision)) ? decision : undefined;
}
