// P11 on a real server: a worker that was down over the deadline. Temporal hands a run the signals of a task
// before its timers, so the deadline is held by the proof: what was signed in time counts however late a
// worker comes, and nothing counts that was made too late.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Decision } from '../src/core/decision.ts';
import { signProof, type SigningKey } from '../src/core/proof.ts';
import { eventually } from './support/eventually.ts';
import { clientOf, decisionOn, factsOf, receiptOf, signedDecision, type SeenGate } from './support/gates.ts';
import { eventTypes, fetchHistory } from './support/history.ts';
import { kinds, startGate, type Kind } from './support/kinds.ts';
import { startLedger } from './support/ledger.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { fastForward } from './support/time.ts';
import { startWorker, type TestWorker } from './support/worker.ts';

const temporal = await openTemporal();
const { client, address, namespace, taskQueue } = temporal;
const countersign = clientOf(temporal);
const ledger = await startLedger();
const { path: secretsFile, secrets } = await makeSecrets();
const { secrets: foreign } = await makeSecrets();
const settings = { address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url };
const day = 24 * 3_600_000;

let worker: TestWorker = await startWorker(settings);

interface Missed extends SeenGate {
  expiresAt: number;
}

/** A gate of a week whose deadline has passed, by its run's own clock, while no worker was there. */
async function missedDeadline(kind: Kind, name: string): Promise<Missed> {
  worker = await startWorker(settings);
  const gate = await startGate(temporal, countersign, kind, temporal.id(name), { ttl: '7d', stayOpen: true });
  const described = await countersign.describeRun(gate.runId);
  const expiresAt = described?.approvals[0]?.memo.expiresAt;
  assert.ok(expiresAt);
  await worker.stop();
  // no further than it takes, or the time that the run stays open afterwards would be skipped too
  await fastForward(temporal, gate.runId, 7 * day + 60_000);
  await eventually(async () => eventTypes(await fetchHistory(client, gate.runId)).includes('TimerFired'), {
    message: `the expiry timer of ${gate.runId}`,
  });
  return { ...gate, expiresAt };
}

async function requestsOf(runId: string): Promise<number> {
  const lines = await ledger.lines();
  return lines.filter(({ body }) => (body as { order: string }).order === runId).length;
}

/** Sends them in that order while no worker is there, brings one back, and tells the verdicts. */
async function sendThenWork(gate: Missed, decisions: Decision[]) {
  for (const decision of decisions) assert.equal(await countersign.sendDecision(gate.runId, decision), true);
  worker = await startWorker(settings);
  const receipts = [];
  for (const decision of decisions) receipts.push(await receiptOf(countersign, decision, gate.runId));
  return receipts;
}

await worker.stop();

for (const kind of kinds) {
  test(`P11: of two signed decisions that a worker finds after the deadline, the one signed before it counts (${kind})`, async () => {
    const gate = await missedDeadline(kind, 'signed');
    const late = await signedDecision(temporal, secrets, gate, 'reject', { signedAt: gate.expiresAt });
    const inTime = await signedDecision(temporal, secrets, gate, 'approve', { signedAt: gate.expiresAt - 1 });
    const [first, second] = await sendThenWork(gate, [late, inTime]);
    assert.deepEqual([first?.verdict, first?.code], ['refused', 'expired']);
    assert.deepEqual([second?.verdict, second?.gate], ['accepted', 'approved']);

    const facts = await countersign.readTrail(gate.runId);
    const told = facts.flatMap((fact) =>
      'decision' in fact ? [[fact.type, fact.decision?.decisionId]] : [],
    );
    assert.deepEqual(told, [
      ['decision_refused', late.decisionId],
      ['approval_granted', inTime.decisionId],
    ]);
    await eventually(async () => (await factsOf(countersign, gate.runId, 'tool_result')).length === 1);
    assert.equal(await requestsOf(gate.runId), 1);
    assert.deepEqual(await factsOf(countersign, gate.runId, 'approval_expired'), []);
    await client.workflow.getHandle(gate.runId).terminate();
    await worker.stop();
  });

  test(`P11: of two signed in time the first in history counts (${kind})`, async () => {
    const gate = await missedDeadline(kind, 'first');
    const reject = await signedDecision(temporal, secrets, gate, 'reject', { signedAt: gate.expiresAt - 1 });
    const approve = await signedDecision(temporal, secrets, gate, 'approve', {
      signedAt: gate.expiresAt - 2,
    });
    const [first, second] = await sendThenWork(gate, [reject, approve]);
    assert.deepEqual([first?.verdict, first?.gate], ['accepted', 'rejected']);
    assert.deepEqual([second?.code, second?.settlement?.decisionId], ['already_resolved', reject.decisionId]);
    assert.equal(await requestsOf(gate.runId), 0);
    await client.workflow
      .getHandle(gate.runId)
      .terminate()
      .catch(() => undefined);
    await worker.stop();
  });

  test(`P11: nothing without a door's own proof from before the deadline counts after it (${kind})`, async () => {
    const gate = await missedDeadline(kind, 'unsigned');
    const tried = await madeUpTimes(gate);
    const receipts = await sendThenWork(
      gate,
      tried.map(({ decision }) => decision),
    );
    assert.deepEqual(
      receipts.map(({ verdict, code }, index) => [tried[index]?.what, verdict, code]),
      tried.map(({ what, code }) => [what, 'refused', code]),
    );
    const [expired, ...more] = await factsOf(countersign, gate.runId, 'approval_expired');
    assert.deepEqual([expired?.key, more], [gate.key, []]);
    const refused = await factsOf(countersign, gate.runId, 'decision_refused');
    assert.deepEqual(
      refused.map(({ decision, code }) => [decision?.decisionId, code]),
      tried.map(({ decision, code }) => [decision.decisionId, code]),
    );
    assert.equal(await requestsOf(gate.runId), 0);
    if (kind === 'runSpec') {
      const result = await client.workflow.getHandle(gate.runId).result();
      assert.deepEqual(result, { status: 'rejected', step: 'refund', gate: 'expired' });
    } else {
      await client.workflow.getHandle(gate.runId).terminate();
    }
    await worker.stop();
  });
}

/** Approvals that claim to be in time, each in another way, and the code that each is refused with. */
async function madeUpTimes(gate: Missed) {
  const inTime = gate.expiresAt - day;
  const place = { namespace, workflowId: gate.runId };
  const own = secrets.signingKey();
  const approve = (more: Partial<Decision> = {}) => decisionOn(gate, 'approve', { via: 'api', ...more });
  const signed = async (decision: Decision, key: SigningKey): Promise<Decision> => ({
    ...decision,
    proof: await signProof(decision, place, key, { now: inTime }),
  });
  const unsignedJws = [
    { alg: 'none', typ: 'JWT' },
    { ...place, iat: inTime / 1000 },
  ]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.');
  const other = await signed(approve(), own);
  const said = `decided at ${new Date(inTime).toISOString()}`;
  const late = { signedAt: gate.expiresAt + 1 };
  return [
    { what: 'unsigned', decision: approve({ via: 'signal' }), code: 'expired' },
    { what: 'unsigned, in the name of the API', decision: approve(), code: 'expired' },
    { what: 'an unsigned rejection', decision: decisionOn(gate, 'reject'), code: 'expired' },
    { what: 'a time in its reason', decision: approve({ reason: said }), code: 'expired' },
    { what: 'a JWS of no signature', decision: approve({ proof: `${unsignedJws}.` }), code: 'unproven' },
    { what: 'an unknown key', decision: await signed(approve(), foreign.signingKey()), code: 'unproven' },
    {
      what: 'an unknown key by a known id',
      decision: await signed(approve(), { ...foreign.signingKey(), kid: own.kid }),
      code: 'unproven',
    },
    {
      what: 'the proof of another decision',
      decision: { ...approve(), ...(other.proof === undefined ? {} : { proof: other.proof }) },
      code: 'unproven',
    },
    { what: 'signed for pasting', decision: await signed(approve({ via: 'signal' }), own), code: 'expired' },
    {
      what: 'signed too late',
      decision: await signedDecision(temporal, secrets, gate, 'approve', late),
      code: 'expired',
    },
  ];
}
