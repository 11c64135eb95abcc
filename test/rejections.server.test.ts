// P6 and P11 on a real server: without a yes there is no effect, whatever the tool would do if it were called;
// and a rejection, an expiry and a cancellation are recorded with the fidelity of an approval.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WorkflowFailedError } from '@temporalio/client';
import { CancelledFailure } from '@temporalio/common';
import { z } from 'zod';
import type { Tool } from '../src/tool.ts';
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
import { kinds, startGate, type Kind } from './support/kinds.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { fastForward } from './support/time.ts';
import { startWorker } from './support/worker.ts';

const temporal = await openTemporal();
const { client, address, namespace, taskQueue } = temporal;
const countersign = clientOf(temporal);
const { path: secretsFile, secrets } = await makeSecrets();
const day = 24 * 3_600_000;

/** The orders of the calls that reached a tool. */
const called: string[] = [];
/** A tool whose body looks at nothing that it is given but its arguments: called is done. */
const heedless: Tool = {
  name: 'payments.heedless',
  arguments: z.looseObject({ order: z.string() }),
  idempotency: 'key',
  run(_context, args) {
    called.push((args as { order: string }).order);
    return Promise.resolve(null);
  },
};
await startWorker({ address, namespace, taskQueue, secretsFile }, { tools: [heedless] });

const tool = heedless.name;
const startHeedless = (kind: Kind, name: string, more = {}) => {
  const runId = temporal.id(name);
  return startGate(temporal, countersign, kind, runId, { tool, arguments: { order: runId }, ...more });
};

/** How the run ended, in the words of its kind. */
async function endOf(kind: Kind, runId: string): Promise<unknown> {
  const result = (await client.workflow.getHandle(runId).result()) as Record<string, unknown>;
  return kind === 'runSpec' ? result['gate'] : result['state'];
}

async function assertNeverCalled(runId: string): Promise<void> {
  assert.deepEqual(await factsOf(countersign, runId, 'effect_started'), []);
  assert.ok(!called.includes(runId), 'the tool was called');
}

for (const kind of kinds) {
  test(`P6: an approved call reaches the heedless tool, so that the rest of this file shows something (${kind})`, async () => {
    const gate = await startHeedless(kind, 'approved');
    await countersign.sendDecision(gate.runId, decisionOn(gate, 'approve'));
    await client.workflow.getHandle(gate.runId).result();
    assert.deepEqual(
      called.filter((order) => order === gate.runId),
      [gate.runId],
    );
  });

  test(`P6: a rejected call never reaches its tool, and the rejection is kept to the letter (cases 31 and 33, ${kind})`, async () => {
    const gate = await startHeedless(kind, 'rejected');
    const reason = 'Nein – Betrag falsch: 1 000 € ≠ 100 €\n\u202eabc\u0000 \\ " 💸';
    const reject = await signedDecision(temporal, secrets, gate, 'reject', {
      reason,
      by: { id: 'bob', roles: ['finance'] },
    });
    await countersign.sendDecision(gate.runId, reject);
    assert.equal(await endOf(kind, gate.runId), 'rejected');
    await assertNeverCalled(gate.runId);

    const [fact, ...others] = await factsOf(countersign, gate.runId, 'approval_rejected');
    assert.deepEqual(others, []);
    assert.deepEqual(fact?.decision, reject);
    assert.deepEqual(fact.by, { id: 'bob', roles: ['finance'], verified: true });
    assert.equal(fact.position, 'refund');
    assert.match(fact.identity ?? '', /./);
    const [memo] = (await countersign.describeRun(gate.runId))?.approvals ?? [];
    assert.deepEqual(
      [memo?.memo.state, memo?.memo.by, memo?.memo.decisionId],
      ['rejected', 'bob', reject.decisionId],
    );
    if (kind === 'runSpec') {
      const run = await countersign.describeRun(gate.runId);
      assert.deepEqual([run?.closeStatus, run?.status], ['completed', 'rejected']);
      const [finished] = await factsOf(countersign, gate.runId, 'run_finished');
      assert.equal(finished?.status, 'rejected');
    }
  });

  test(`P11: a gate that nobody answers expires by the clock after a week, without an effect (case 34, ${kind})`, async () => {
    const runId = temporal.id('expires');
    const args = { order: runId };
    if (kind === 'runSpec') {
      const steps = [{ id: 'refund', tool, with: args, before: { approve: {} } }];
      await startSpec(countersign, runId, { version: 1, name: 'expires', steps }, {});
    } else {
      const input = { name: 'refund', tool, arguments: args };
      await client.workflow.start('oneGated', { workflowId: runId, taskQueue, args: [input] });
    }
    const gate = await openGate(countersign, runId);
    await fastForward(temporal, runId, 7 * day + 60_000);
    assert.equal(await endOf(kind, runId), 'expired');
    await assertNeverCalled(runId);

    const [requested] = await factsOf(countersign, runId, 'approval_requested');
    assert.equal(Date.parse(requested?.expiresAt ?? '') - Date.parse(requested?.requestedAt ?? ''), 7 * day);
    const [fact, ...others] = await factsOf(countersign, runId, 'approval_expired');
    assert.deepEqual(others, []);
    // no decision, no person: the clock
    const { seq: _seq, at: _at, eventId: _event, temporalRunId: _run, ...told } = fact ?? {};
    assert.deepEqual(told, { type: 'approval_expired', position: 'refund', key: gate.key });
    const [memo] = (await countersign.describeRun(runId))?.approvals ?? [];
    const { at, ...state } = memo?.memo ?? {};
    assert.deepEqual(state, { state: 'expired' });
    assert.ok((at ?? 0) >= Date.parse(requested?.expiresAt ?? ''));
    assert.equal(await countersign.sendDecision(runId, decisionOn(gate, 'approve')), false);
  });

  test(`P11: a run cancelled while its gate waits ends without the effect, and says so (${kind})`, async () => {
    const gate = await startHeedless(kind, 'cancelled');
    await client.workflow.getHandle(gate.runId).cancel();
    if (kind === 'runSpec') {
      await assert.rejects(client.workflow.getHandle(gate.runId).result(), (error: unknown) => {
        return error instanceof WorkflowFailedError && error.cause instanceof CancelledFailure;
      });
      const run = await countersign.describeRun(gate.runId);
      assert.deepEqual([run?.closeStatus, run?.status], ['cancelled', 'cancelled']);
      assert.equal((await factsOf(countersign, gate.runId, 'run_cancelled')).length, 1);
    } else {
      assert.equal(await endOf(kind, gate.runId), 'cancelled');
    }
    await assertNeverCalled(gate.runId);
    const [fact, ...others] = await factsOf(countersign, gate.runId, 'approval_cancelled');
    assert.deepEqual(others, []);
    assert.deepEqual([fact?.key, fact?.position], [gate.key, 'refund']);
    const [memo] = (await countersign.describeRun(gate.runId))?.approvals ?? [];
    assert.equal(memo?.memo.state, 'cancelled');
    assert.equal(await countersign.sendDecision(gate.runId, decisionOn(gate, 'approve')), false);
  });

  test(`P11: refused decisions are no yes: the gate stays open, its tool uncalled (${kind})`, async () => {
    const gate = await startHeedless(kind, 'refused');
    const hash = `sha256:${'0'.repeat(64)}`;
    const refused = [
      { decision: decisionOn(gate, 'approve', { payloadHash: hash }), code: 'payload_changed' },
      { decision: decisionOn(gate, 'approve', { proof: 'a.b.c' }), code: 'unproven' },
      { decision: decisionOn(gate, 'unvote', { reason: 'approve' }), code: 'not_allowed' },
    ];
    for (const { decision, code } of refused) {
      await countersign.sendDecision(gate.runId, decision);
      const receipt = await receiptOf(countersign, decision, gate.runId);
      assert.deepEqual([receipt.verdict, receipt.code, receipt.gate], ['refused', code, 'pending']);
    }
    await assertNeverCalled(gate.runId);
    const facts = await factsOf(countersign, gate.runId, 'decision_refused');
    assert.deepEqual(
      facts.map(({ code, decision }) => ({ code, decision })),
      refused.map(({ code, decision }) => ({ code, decision })),
    );
    await client.workflow.getHandle(gate.runId).terminate('end of the test');
    await eventually(async () => (await countersign.describeRun(gate.runId))?.closeStatus === 'terminated');
    await assertNeverCalled(gate.runId);
  });
}

test('P6: a rejected approval step ends the run, and the steps after it are not run', async () => {
  const runId = temporal.id('step');
  const steps = [
    { id: 'release', approval: { title: 'Release ${{ input.version }}?' } },
    { id: 'pay', tool, with: { order: runId } },
  ];
  await startSpec(countersign, runId, { version: 1, name: 'step', steps }, { version: '1.2' });
  const gate = await openGate(countersign, runId);
  await countersign.sendDecision(runId, decisionOn(gate, 'reject', { reason: 'not on a Friday' }));
  const result = await client.workflow.getHandle(runId).result();
  assert.deepEqual(result, { status: 'rejected', step: 'release', gate: 'rejected' });
  await assertNeverCalled(runId);
  const trail = await countersign.readTrail(runId);
  assert.deepEqual(trail.map(({ type }) => type), [
    'run_started', 'step_started', 'approval_requested', 'approval_rejected', 'run_finished',
  ]); // prettier-ignore
});
