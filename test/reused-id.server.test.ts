// P2 and P3 on a real server: the same workflow id used again is another run. Nothing that was made for the
// run before it (key, root, proof, grant) opens anything in it, however close they follow each other.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Decision } from '../src/core/decision.ts';
import { clientOf, decisionOn, factsOf, openGate, receiptOf, signedDecision } from './support/gates.ts';
import { kinds, startGate } from './support/kinds.ts';
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

async function requestsOf(runId: string) {
  const lines = await ledger.lines();
  return lines.filter(({ body }) => (body as { order: string }).order === runId);
}

async function send(runId: string, decision: Decision) {
  assert.equal(await countersign.sendDecision(runId, decision), true);
  return receiptOf(countersign, decision, runId);
}

for (const kind of kinds) {
  for (const ending of ['approved', 'terminated while it waited'] as const) {
    test(`P2: after a run that was ${ending}, the same workflow id begins anew (${kind})`, async () => {
      const runId = temporal.id('again');
      const old = await startOther(kind, runId);
      const approve = await signedDecision(temporal, secrets, old, 'approve');
      if (ending === 'approved') {
        await countersign.sendDecision(runId, approve);
        await client.workflow.getHandle(runId).result();
      } else {
        await client.workflow.getHandle(runId).terminate();
      }
      // at once: run ids begin with their time, so the two have their first digits in common
      const gate = await startOther(kind, runId);
      assert.equal(gate.position, old.position);
      assert.equal(gate.hash, old.hash);
      assert.notEqual(gate.key, old.key);
      assert.equal(gate.root.slice(0, 4), old.root.slice(0, 4));

      const proof = approve.proof === undefined ? {} : { proof: approve.proof };
      const olds: [string, Decision, string][] = [
        ['the old decision, as it was', approve, 'unknown_key'],
        ['a new one for the old key', await signedDecision(temporal, secrets, old, 'approve'), 'unknown_key'],
        ['unsigned, for the old key', decisionOn(old, 'approve'), 'unknown_key'],
        ['the old key under the new root', decisionOn(gate, 'approve', { key: old.key }), 'unknown_key'],
        ['the new key under the old root', decisionOn(gate, 'approve', { root: old.root }), 'unknown_key'],
        [
          'the old proof on the new gate',
          { ...decisionOn(gate, 'approve', { via: 'api' }), ...proof },
          'unproven',
        ],
        [
          'the old decision with the new key and root',
          { ...approve, decisionId: `${approve.decisionId}-2`, key: gate.key, root: gate.root },
          'unproven',
        ],
      ];
      for (const [what, decision, code] of olds) {
        const receipt = await send(runId, decision);
        assert.deepEqual([receipt.verdict, receipt.code], ['refused', code], what);
      }
      const refused = await factsOf(countersign, runId, 'decision_refused');
      assert.deepEqual(
        refused.map(({ code }) => code),
        olds.map(([, , code]) => code),
      );
      const described = await countersign.describeRun(runId);
      assert.deepEqual(
        described?.approvals.map(({ key, memo }) => [key, memo.state]),
        [[gate.key, 'pending']],
      );
      const paidBefore = ending === 'approved' ? [`${old.root}:refund`] : [];
      assert.deepEqual(
        (await requestsOf(runId)).map(({ key }) => key),
        paidBefore,
      );

      await countersign.sendDecision(runId, await signedDecision(temporal, secrets, gate, 'approve'));
      await client.workflow.getHandle(runId).result();
      const paid = await requestsOf(runId);
      assert.deepEqual(
        paid.map(({ key }) => key),
        [...paidBefore, `${gate.root}:refund`],
      );
    });
  }
}

/** As a Temporal client may start it: the API never uses an id again. */
async function startOther(kind: (typeof kinds)[number], runId: string) {
  if (kind !== 'runSpec') return startGate(temporal, countersign, kind, runId);
  const step = {
    id: 'refund',
    tool: 'payments.refund',
    with: { order: runId, amount: '10.00' },
    before: { approve: { ttl: '1h' } },
  };
  const spec = { version: 1, name: 'again', steps: [step] };
  const input = { v: 1, spec, input: {}, trigger: { kind: 'test' }, startedBy: { id: 'starter' } };
  await client.workflow.start('runSpec', { workflowId: runId, taskQueue, args: [input] });
  return openGate(countersign, runId);
}
