// P6 on a real server: what a sender was told (the query `receipts`), what a lister sees (`state`, the memo)
// and what the trail says of a decision are one truth, though each is made in another place.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { approvalKey } from '../src/core/approval-key.ts';
import type { Decision } from '../src/core/decision.ts';
import type { TrailFact } from '../src/core/trail-fact.ts';
import type { Receipt, Settlement } from '../src/core/verdict.ts';
import { eventually } from './support/eventually.ts';
import {
  clientOf,
  decisionOn,
  openGates,
  signedDecision,
  startSpec,
  type SeenGate,
} from './support/gates.ts';
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

/** What the trail says last of that decision, in the words of a receipt. */
function toldByTrail(facts: readonly TrailFact[], { decisionId }: Decision) {
  const about = facts.filter((fact) => 'decision' in fact && fact.decision?.decisionId === decisionId);
  const fact = about.at(-1);
  if (fact?.type === 'decision_refused')
    return { verdict: 'refused', code: fact.code, position: fact.position };
  if (fact === undefined) return undefined;
  assert.match(fact.type, /^approval_(granted|rejected|commented)$/);
  return { verdict: 'accepted', code: undefined, position: fact.position };
}

/** How the trail says that the gate at `position` ended. */
function endByTrail(facts: readonly TrailFact[], position: string) {
  for (const fact of facts) {
    if (fact.position !== position) continue;
    if (fact.type === 'approval_granted')
      return { state: 'approved', by: fact.by, id: fact.decision.decisionId };
    if (fact.type === 'approval_rejected')
      return { state: 'rejected', by: fact.by, id: fact.decision.decisionId };
    if (fact.type === 'approval_expired') return { state: 'expired', by: undefined, id: undefined };
  }
  return { state: 'pending', by: undefined, id: undefined };
}

/** Decisions of every sort that such a gate can get, none of which ends it. */
async function poorDecisions(gate: SeenGate): Promise<Decision[]> {
  const signed = await signedDecision(temporal, secrets, gate, 'approve');
  const later = approvalKey({ workflowId: gate.runId, position: 'not-yet', root: gate.root });
  return [
    decisionOn(gate, 'approve', { payloadHash: `sha256:${'0'.repeat(64)}` }),
    decisionOn(gate, 'reject', { payloadHash: `sha256:${'0'.repeat(64)}` }),
    decisionOn(gate, 'approve', { key: later }),
    decisionOn(gate, 'approve', { key: 'no-key' }),
    decisionOn(gate, 'approve', { root: '00000000-0000-0000-0000-000000000000' }),
    decisionOn(gate, 'withdraw'),
    decisionOn(gate, 'unvote'),
    decisionOn(gate, 'comment', { reason: 'hm' }),
    { ...signed, reason: 'altered' },
  ];
}

/** Good ones, of which one wins: some signed, some not; and one that uses an id for two things. */
async function goodDecisions(gate: SeenGate): Promise<Decision[]> {
  const twice = decisionOn(gate, 'approve', { by: { id: 'eve' } });
  return [
    await signedDecision(temporal, secrets, gate, 'approve', { by: { id: 'ann' } }),
    decisionOn(gate, 'reject', { by: { id: 'bob' }, reason: 'Nein – 1\u00a0000 \u20ac' }),
    await signedDecision(temporal, secrets, gate, 'reject', { by: { id: 'cid' } }),
    twice,
    decisionOn(gate, 'reject', { by: { id: 'eve' }, decisionId: twice.decisionId }),
  ];
}

const shuffled = (decisions: Decision[]) =>
  decisions.toSorted((a, b) => (a.decisionId < b.decisionId ? -1 : 1));

/** By decision id, once all are judged: in one query, which without a cache replays the run. */
async function receiptsOf(
  runId: string,
  decisions: readonly Decision[],
): Promise<ReadonlyMap<string, Receipt>> {
  const ids = [...new Set(decisions.map(({ decisionId }) => decisionId))];
  return eventually(async () => {
    const receipts = await countersign.queryReceipts(runId, ids, 10_000);
    const judged = receipts.filter(({ verdict }) => verdict !== 'pending');
    return judged.length === ids.length && new Map(judged.map((receipt) => [receipt.decisionId, receipt]));
  });
}

async function agree(
  runId: string,
  gates: readonly SeenGate[],
  decisions: readonly Decision[],
): Promise<void> {
  const receipts = await receiptsOf(runId, decisions);
  const facts = await countersign.readTrail(runId);
  for (const decision of decisions) {
    const { verdict, code, position } = receipts.get(decision.decisionId) ?? {};
    assert.deepEqual(toldByTrail(facts, decision), { verdict, code, position }, JSON.stringify(decision));
  }
  const state = await client.workflow
    .getHandle(runId)
    .query<{ gates: { position: string; state: string; settlement?: Settlement }[] }>('state');
  const described = await countersign.describeRun(runId);
  for (const { position } of gates) {
    const end = endByTrail(facts, position);
    const told = state.gates.find((gate) => gate.position === position);
    assert.deepEqual(
      { state: told?.state, by: told?.settlement?.by, id: told?.settlement?.decisionId },
      end,
      position,
    );
    const memo = described?.approvals.find((approval) => approval.position === position)?.memo;
    assert.deepEqual(
      { state: memo?.state, by: memo?.by, id: memo?.decisionId },
      { state: end.state, by: end.by?.id, id: end.id },
      position,
    );
  }
}

for (const kind of ['runSpec', 'gatesSideBySide'] as const) {
  test(`P6: receipts, state, memo and trail say the same of every decision (${kind})`, async () => {
    const runId = temporal.id('agree');
    const names = ['a', 'b', 'c', 'last'];
    const args = { order: runId, amount: '10.00' };
    if (kind === 'runSpec') {
      const steps = names.map((id) => ({ id, approval: { title: id, ttl: '1h' } }));
      await startSpec(countersign, runId, { version: 1, name: 'agree', steps }, {});
    } else {
      const gates = names.map((name) => ({ name, tool: 'payments.refund', arguments: args }));
      await client.workflow.start(kind, { workflowId: runId, taskQueue, args: [{ gates }] });
    }
    const all: Decision[] = [];
    const seen: SeenGate[] = [];
    const rounds = kind === 'runSpec' ? names.slice(0, -1).map((name) => [name]) : [names.slice(0, -1)];
    for (const round of rounds) {
      const gates = await eventually(async () => {
        const open = (await openGates(countersign, runId)).filter(({ position }) => round.includes(position));
        return open.length === round.length && open;
      });
      seen.push(...gates);
      const decisions: Decision[] = [];
      for (const gate of gates) {
        decisions.push(...(await poorDecisions(gate)));
        // in a spec a rejection ends the run, and with it the receipts: there the approvals race
        const good = await goodDecisions(gate);
        decisions.push(...(kind === 'runSpec' ? good.filter((one) => one.decision === 'approve') : good));
      }
      all.push(...decisions);
      await Promise.all(shuffled(decisions).map((decision) => countersign.sendDecision(runId, decision)));
      await agree(runId, seen, all);
    }
    // every winner again, to the letter, and every loser: nothing is said anew of the one, all of the others
    const before = (await countersign.readTrail(runId)).length;
    const winners = new Set(seen.map(({ position }) => position));
    assert.equal(winners.size, names.length - 1);
    const receipts = await countersign.queryReceipts(
      runId,
      all.map(({ decisionId }) => decisionId),
      10_000,
    );
    const accepted = receipts
      .filter(({ verdict }) => verdict === 'accepted')
      .map(({ decisionId }) => decisionId);
    // a repeated winner leaves no fact, so of an id that stands for two things the last word is not in the trail
    const repeated = all.filter(({ by }) => by.id !== 'eve');
    for (const decision of shuffled(repeated)) await countersign.sendDecision(runId, decision);
    await agree(runId, seen, all);
    const after = await countersign.readTrail(runId);
    assert.ok(after.length > before);
    const again = after.slice(before);
    assert.ok(
      again.every(({ type }) => type === 'decision_refused'),
      again.map(({ type }) => type).join(),
    );
    for (const id of accepted) {
      const told = after.filter((fact) => 'decision' in fact && fact.decision?.decisionId === id);
      assert.ok(
        told.some(({ type }) => type !== 'decision_refused'),
        id,
      );
    }
    await client.workflow.getHandle(runId).terminate();
  });
}
