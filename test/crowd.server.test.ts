// P2 on a real server over real HTTP, by a crowd: nobody hangs, one wins, everybody else is told who did.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertInHistory, signalledIds, startApi } from './support/api-server.ts';
import { clientOf, type SeenGate } from './support/gates.ts';
import { startLedger } from './support/ledger.ts';
import { linesOf, startGate } from './support/refund-gates.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { startWorker } from './support/worker.ts';

const temporal = await openTemporal();
const { client, address, namespace, taskQueue } = temporal;
const countersign = clientOf(temporal);
const ledger = await startLedger();
const { path: secretsFile } = await makeSecrets();
const approvers = Array.from({ length: 50 }, (_, index) => `approver-${index}`);
const rejecters = Array.from({ length: 50 }, (_, index) => `rejecter-${index}`);
// the product's own budget: whoever is not answered in it is told where to look
const api = await startApi(temporal, {
  secretsFile,
  people: [...approvers, ...rejecters],
  receiptBudgetMs: 3_000,
});
await startWorker({ address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url });

/** The pass without a workflow cache repeats every server test; a tenth of the crowd's keys shows the same there. */
const keys = process.env['COUNTERSIGN_TEST_CACHE'] === '0' ? 10 : 100;

test('P2: 50 approve and 50 reject at once, on each of 100 keys: it has one winner, and everybody is told (case 15)', async () => {
  // key by key, 100 requests in flight: more keys at a time make no gate any more contended
  for (let key = 0; key < keys; key += 1) {
    await decideByAll(await startGate(temporal, countersign, 'crowd'));
  }
});

async function decideByAll(gate: SeenGate): Promise<void> {
  const { runId } = gate;
  const sent = approvers.flatMap((approver, index) => {
    const rejecter = rejecters[index] ?? '';
    return [
      { as: approver, answer: api.approve(gate, { as: approver }) },
      { as: rejecter, answer: api.reject(gate, { as: rejecter, body: { reason: 'no' } }) },
    ];
  });
  const first = await Promise.all(sent.map(({ answer }) => answer));
  await client.workflow.getHandle(runId).result();
  await assertInHistory(client, runId, first);
  const last = await Promise.all(sent.map(({ as }, index) => api.final(first[index]!, { as })));

  const winners = last.filter(({ status }) => status === 200);
  assert.equal(winners.length, 1, `${runId}: ${winners.map(({ text }) => text).join()}`);
  const { decisionId, state, by } = winners[0]!.body as {
    decisionId: string;
    state: string;
    by: { id: string };
  };
  for (const { status, body, text } of last) {
    if (status === 200) continue;
    assert.equal(`${status} ${String(body['code'])}`, '409 already_resolved', text);
    const winner = body['winner'] as { decisionId: string; state: string; by: { id: string } };
    assert.deepEqual(
      { decisionId: winner.decisionId, state: winner.state, by: winner.by.id },
      { decisionId, state, by: by.id },
    );
  }

  const trail = await countersign.readTrail(runId);
  const settled = trail.filter(({ type }) => type === 'approval_granted' || type === 'approval_rejected');
  assert.deepEqual(
    settled.map((fact) => 'decision' in fact && fact.decision?.decisionId),
    [decisionId],
  );
  // every decision that reached the run is a fact of it: the winner's, or a refusal
  const ids = await signalledIds(client, runId);
  const refused = trail.filter((fact) => fact.type === 'decision_refused');
  assert.equal(refused.length, ids.size - 1);
  assert.ok(refused.every(({ code }) => code === 'already_resolved'));
  assert.equal((await linesOf(ledger, runId)).length, state === 'approved' ? 1 : 0);
}
