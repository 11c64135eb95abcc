// P8 and P11 on a real server: the check itself fails. Nothing was let through, the gate stays open, whoever
// sent the decision is told, the trail names the decision, and the next good one works.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import type { Decision } from '../src/core/decision.ts';
import type { Tool } from '../src/tool.ts';
import {
  clientOf,
  decisionOn,
  factsOf,
  openGate,
  openGates,
  receiptOf,
  signedDecision,
  startSpec,
} from './support/gates.ts';
import { kinds, startGate } from './support/kinds.ts';
import { startLedger } from './support/ledger.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { testTools } from './support/tools.ts';
import { startWorker } from './support/worker.ts';

const temporal = await openTemporal();
const { client, address, namespace, taskQueue } = temporal;
const countersign = clientOf(temporal);
const ledger = await startLedger();
const { path: secretsFile, secrets } = await makeSecrets();

const good = {
  proofKeys: () => secrets.proofKeys(),
  grantKeys: () => secrets.grantKeys(),
  currentSpecHash: (): string | undefined => 'sha256:as-it-was',
};
let now: typeof good = good;
/** Its schema fails on its own, as one with a bug or a check that goes out of memory would. */
const unfreezable: Tool = {
  name: 'unfreezable',
  arguments: z.unknown().refine(fail),
  idempotency: 'key',
  run: async () => assert.fail('it ran'),
};
await startWorker(
  { address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url },
  {
    tools: [...testTools(ledger.url), unfreezable],
    deps: {
      proofKeys: () => now.proofKeys(),
      grantKeys: () => now.grantKeys(),
      currentSpecHash: () => now.currentSpecHash(),
    },
  },
);

/** Runs with that part of the check broken. */
async function broken<Result>(parts: Partial<typeof good>, work: () => Promise<Result>): Promise<Result> {
  now = { ...good, ...parts };
  try {
    return await work();
  } finally {
    now = good;
  }
}

function fail(): never {
  throw new Error('the disk is gone');
}

/** Longer than the activity's 2 s: nothing in this process runs on, so only Temporal can end the check. */
function blocked(): ReturnType<typeof good.proofKeys> {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_300);
  return secrets.proofKeys();
}

const faults: Record<string, { parts: Partial<typeof good>; message: RegExp }> = {
  'the proof keys cannot be read': { parts: { proofKeys: fail }, message: /the disk is gone/ },
  'there is no set of proof keys': { parts: { proofKeys: () => undefined as never }, message: /undefined/ },
  'a proof key is broken': {
    parts: {
      proofKeys: () => secrets.proofKeys().map((key) => ({ ...key, publicJwk: { kty: 'OKP' } as never })),
    },
    message: /check itself failed/,
  },
  'there is no grant key': { parts: { grantKeys: () => [] }, message: /no grant key/ },
  'the grant keys cannot be read': { parts: { grantKeys: fail }, message: /the disk is gone/ },
  'the check blocks its process': { parts: { proofKeys: blocked }, message: /timed out|timeout/i },
};

async function send(runId: string, decision: Decision) {
  assert.equal(await countersign.sendDecision(runId, decision), true);
  return receiptOf(countersign, decision, runId);
}

async function requestsOf(runId: string): Promise<number> {
  const lines = await ledger.lines();
  return lines.filter(({ body }) => (body as { order: string }).order === runId).length;
}

for (const kind of kinds) {
  test(`P8: whatever breaks the check, the gate stays open and the same decision works afterwards (${kind})`, async () => {
    const runId = temporal.id('broken');
    const gate = await startGate(temporal, countersign, kind, runId);
    const sent: Decision[] = [];
    for (const [what, { parts, message }] of Object.entries(faults)) {
      const approve = await signedDecision(temporal, secrets, gate, 'approve', { reason: what });
      sent.push(approve);
      const receipt = await broken(parts, () => send(runId, approve));
      assert.deepEqual(
        [receipt.verdict, receipt.code, receipt.gate],
        ['refused', 'check_failed', 'pending'],
        what,
      );
      assert.equal((await openGate(countersign, runId)).key, gate.key, what);

      const fact = (await countersign.readTrail(runId)).at(-1);
      assert.ok(fact?.type === 'decision_refused', `${what}: the trail ends with ${fact?.type}`);
      assert.deepEqual(
        [fact.code, fact.position, fact.decision],
        ['check_failed', gate.position, approve],
        what,
      );
      assert.match(fact.message ?? '', message, what);
    }
    assert.equal((await factsOf(countersign, runId, 'decision_refused')).length, sent.length);
    assert.equal(await requestsOf(runId), 0);

    const [again] = sent;
    assert.ok(again);
    await countersign.sendDecision(runId, again);
    await client.workflow.getHandle(runId).result();
    const [granted] = await factsOf(countersign, runId, 'approval_granted');
    assert.equal(granted?.decision.decisionId, again.decisionId);
    assert.equal(await requestsOf(runId), 1);
  });

  test(`P8: a check that never answers is ended, and counts as failed (${kind})`, async (context) => {
    const runId = temporal.id('hangs');
    const gate = await startGate(temporal, countersign, kind, runId);
    const approve = await signedDecision(temporal, secrets, gate, 'approve');
    const hang = context.mock.method(crypto.subtle, 'importKey', () => new Promise(() => undefined));
    // keys that were not imported yet
    const receipt = await broken({ proofKeys: () => structuredClone(secrets.proofKeys()) }, () =>
      send(runId, approve),
    );
    assert.deepEqual([receipt.code, receipt.gate], ['check_failed', 'pending']);
    assert.ok(hang.mock.callCount() > 0);
    hang.mock.restore();
    const [fact] = await factsOf(countersign, runId, 'decision_refused');
    assert.deepEqual([fact?.code, fact?.decision?.decisionId], ['check_failed', approve.decisionId]);
    assert.match(fact?.message ?? '', /no answer within|timed out/);
    await countersign.sendDecision(runId, approve);
    await client.workflow.getHandle(runId).result();
    assert.equal(await requestsOf(runId), 1);
  });

  test(`P8: what the broken part has no say in is decided all the same (${kind})`, async () => {
    const runId = temporal.id('reject');
    const gate = await startGate(temporal, countersign, kind, runId);
    await broken({ grantKeys: fail, currentSpecHash: fail }, async () => {
      await countersign.sendDecision(runId, await signedDecision(temporal, secrets, gate, 'reject'));
      await client.workflow.getHandle(runId).result();
    });
    assert.equal((await factsOf(countersign, runId, 'approval_rejected')).length, 1);
    assert.equal(await requestsOf(runId), 0);
  });
}

for (const kind of ['runSpec, gated', 'runSpec, plain', 'oneGated'] as const) {
  test(`P11: what cannot be frozen is asked of nobody and run by nobody; the run fails by name (${kind})`, async () => {
    const runId = temporal.id('unfreezable');
    if (kind === 'oneGated') {
      const input = { name: 'refund', tool: 'unfreezable', arguments: {} };
      await client.workflow.start(kind, { workflowId: runId, taskQueue, args: [input] });
    } else {
      const before = kind === 'runSpec, gated' ? { before: { approve: {} } } : {};
      const steps = [{ id: 'refund', tool: 'unfreezable', ...before }];
      await startSpec(countersign, runId, { version: 1, name: 'unfreezable', steps }, {});
    }
    await assert.rejects(client.workflow.getHandle(runId).result());
    const facts = await countersign.readTrail(runId);
    assert.deepEqual(
      facts.map(({ type }) => type),
      ['run_started', 'run_finished'],
    );
    const [, end] = facts;
    assert.ok(end?.type === 'run_finished');
    assert.equal(end.error?.['code'], 'preparation_failed');
    assert.match(JSON.stringify(end.error), /refund.*the disk is gone/);
  });
}

test('P11: where the current spec cannot be told, nothing is approved', async () => {
  const runId = temporal.id('spec');
  const args = { order: runId, amount: '10.00' };
  const step = { id: 'refund', tool: 'payments.refund', with: args, before: { approve: {} } };
  await startSpec(countersign, runId, { version: 1, name: 'spec', steps: [step] }, {}, 'sha256:as-it-was');
  const gate = await openGate(countersign, runId);
  const approve = decisionOn(gate, 'approve');
  const receipt = await broken({ currentSpecHash: fail }, () => send(runId, approve));
  assert.deepEqual([receipt.code, receipt.gate], ['check_failed', 'pending']);
  assert.equal(await requestsOf(runId), 0);
  await countersign.sendDecision(runId, approve);
  assert.deepEqual(await client.workflow.getHandle(runId).result(), { status: 'completed' });
  assert.equal(await requestsOf(runId), 1);
});

test('P6: of several gates and decisions, each failed check is told of its own', async () => {
  const runId = temporal.id('several');
  const gates = ['a', 'b', 'c'].map((name) => ({
    name,
    tool: 'payments.refund',
    arguments: { order: runId, amount: '1.00' },
  }));
  const handle = await client.workflow.start('gatesSideBySide', {
    workflowId: runId,
    taskQueue,
    args: [{ gates }],
  });
  const seen = await openGates(countersign, runId, gates.length);
  const decisions = await Promise.all(
    seen.flatMap((gate) => [1, 2].map(() => signedDecision(temporal, secrets, gate, 'approve'))),
  );
  await broken({ proofKeys: fail }, async () => {
    await Promise.all(decisions.map((decision) => countersign.sendDecision(runId, decision)));
    for (const decision of decisions) {
      assert.equal((await receiptOf(countersign, decision, runId)).code, 'check_failed');
    }
  });
  const refused = await factsOf(countersign, runId, 'decision_refused');
  const named = refused
    .map(({ code, position, decision }) => [code, position, decision?.decisionId].join())
    .sort();
  const expected = decisions.map(({ key, decisionId }) => {
    const position = seen.find((gate) => gate.key === key)?.position;
    return ['check_failed', position, decisionId].join();
  });
  assert.deepEqual(named, expected.sort());
  for (const gate of seen) await countersign.sendDecision(runId, decisionOn(gate, 'approve'));
  assert.deepEqual(await handle.result(), ['approved', 'approved', 'approved']);
  assert.equal(await requestsOf(runId), 3);
});
