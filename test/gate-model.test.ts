// P2, P3, P11 without a server: the workflow code of the gate, in the SDK's own sandbox and with the real
// activities, against a model of a few lines. What comes when, and what comes together, is fast-check's choice.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { testBundle } from './support/bundle.ts';
import { fuzzSeed, isFullFuzz } from './support/fuzz.ts';
import type { ModelGate, Sent } from './support/gate-model.ts';
import { play, type Outcome } from './support/gate-world.ts';
import { openSandbox, type SandboxStart } from './support/sandbox-run.ts';
import { makeSecrets } from './support/secrets.ts';
import { testTools } from './support/tools.ts';
import { createAdmitDecision } from '../src/activities/admit-decision.ts';
import { createFreezeCase } from '../src/activities/freeze-case.ts';
import { approvalKey } from '../src/core/approval-key.ts';
import { needsPayloadHash, type Decision, type DecisionKind } from '../src/core/decision.ts';
import { hashPayload } from '../src/core/hash.ts';
import { signProof } from '../src/core/proof.ts';

const { secrets } = await makeSecrets();
const startRun = openSandbox(await testBundle());
const [workflowId, namespace] = ['model-1', 'default'];
const root = '019d2b1a-7f3e-7c11-9d55-046acc729732';
const start = 1_800_000_000_000;
const ttlMs = 1_000;
const numRuns = isFullFuzz ? 10_000 : 500;

const deps = {
  ...{ namespace, tools: testTools('http://127.0.0.1:9'), unsigned: 'allow' as const, log: () => undefined },
  ...{ currentSpecHash: () => undefined, grantKeys: secrets.grantKeys, proofKeys: secrets.proofKeys },
};
const activities = {
  freezeCase: createFreezeCase(deps),
  admitDecision: createAdmitDecision(deps, () => ({ workflowId })),
};

const tool = 'payments.refund';
const refund = (amount: string) => ({ order: 'ord-1', amount, currency: 'EUR' });
const hashOf = (amount: string): string => hashPayload({ tool, arguments: refund(amount) }).hash;
const hashes = { asked: hashOf('10.00'), amended: hashOf('20.00'), wrong: `sha256:${'0'.repeat(64)}` };
const positions = ['refund', 'second'];

/** A run of a spec records by local activities, one's own workflow by ordinary ones. */
const kindsOfRun: Record<string, Omit<SandboxStart, 'now'> & { gates: number; requester?: string }> = {
  runSpec: {
    ...{ workflowId, root, namespace, workflowType: 'runSpec', gates: 1, requester: 'eve' },
    input: {
      ...{ v: 1, input: {}, trigger: { kind: 'test' }, startedBy: { id: 'eve' } },
      spec: {
        ...{ version: 1, name: 'refund' },
        steps: [{ id: 'refund', tool, with: refund('10.00'), before: { approve: { ttl: ttlMs } } }],
      },
    },
  },
  own: {
    ...{ workflowId, root, namespace, workflowType: 'gatesSideBySide', gates: 2 },
    input: { gates: positions.map((name) => ({ name, tool, arguments: refund('10.00'), ttl: ttlMs })) },
  },
};

const kinds: DecisionKind[] = ['approve', 'approve', 'approve', 'reject', 'comment', 'amend', 'edit', 'respond', 'withdraw']; // prettier-ignore
const send = fc.record({
  kind: fc.constantFrom(...kinds),
  gate: fc.nat(1),
  on: fc.constantFrom('asked', 'asked', 'asked', 'amended', 'wrong', undefined),
  by: fc.constantFrom('ann', 'eve', 'eve'),
  signedAt: fc.option(fc.nat(2 * ttlMs), { nil: undefined }),
  isPasted: fc.constantFrom(false, false, true),
  isAstray: fc.constantFrom(...Array.from({ length: 9 }, () => false), true),
  /** what only the requester may, by the requester and signed */
  isProper: fc.boolean(),
  /** sent again so many times, to the letter */
  again: fc.constantFrom(0, 0, 0, 1, 2),
});
const scenario = fc.record({
  kindOfRun: fc.constantFrom(...Object.keys(kindsOfRun)),
  sends: fc.array(send, { minLength: 1, maxLength: 7, size: 'max' }),
  ticks: fc.array(fc.integer({ min: 1, max: ttlMs }), { maxLength: 4 }),
  isCancelled: fc.constantFrom(false, false, false, true),
  failing: fc.array(fc.constantFrom(false, false, false, true), { maxLength: 4 }),
});

/** The signal that a planned decision is, and what the model is told of it. */
async function made(plan: typeof send extends fc.Arbitrary<infer S> ? S : never, id: string, gates: number) {
  const { kind, on, isAstray, isPasted } = plan;
  const isProper = plan.isProper && (kind === 'amend' || kind === 'withdraw');
  const { by, signedAt } = isProper ? { by: 'eve', signedAt: plan.signedAt ?? 0 } : plan;
  const gate = plan.gate % gates;
  const hash = on === undefined && needsPayloadHash(kind) ? hashes.asked : on && hashes[on as 'asked'];
  const amount = { amend: '20.00', edit: '30.00' }[kind as 'amend'];
  const decision: Decision = {
    ...{ v: 1, decision: kind, decisionId: id, by: { id: by } },
    key: approvalKey({ workflowId, position: positions[gate] ?? '', root }),
    root: isAstray ? root.replace('01', '02') : root,
    via: isPasted ? 'signal' : 'api', // of an unsigned one it is only somebody's word
    ...(hash === undefined ? {} : { payloadHash: hash }),
    ...(amount === undefined ? {} : { arguments: refund(amount) }),
    ...(kind === 'respond' ? { result: { refund: 'by hand' } } : {}),
  };
  const now = start + (signedAt ?? 0);
  const place = { namespace, workflowId };
  const proof =
    signedAt === undefined ? {} : { proof: await signProof(decision, place, secrets.signingKey(), { now }) };
  const sent: Sent = {
    ...{ id, kind, by, isPasted, isAstray },
    ...(hash === undefined ? {} : { hash }),
    ...(signedAt === undefined ? {} : { signedAt: now }),
    ...(amount === undefined ? {} : { newHash: hashOf(amount) }),
  };
  return { gate, sent, signal: { ...decision, ...proof } };
}

const seen = new Map<string, number>();
const count = (what: string): unknown => seen.set(what, (seen.get(what) ?? 0) + 1);

function assertAsTheModelSays({ gates, state, receipts, performed, shown, isClosed }: Outcome): void {
  const open = gates
    .map((gate, index) => ({ gate, position: positions[index] ?? '' }))
    .filter(({ gate }) => gate.isOpen);
  assert.deepEqual(
    state.gates.map((gate) => [gate.position, gate.state, gate.settlement?.decisionId]),
    open.map(({ gate, position }) => [position, gate.state, gate.winner?.id]),
  );
  assert.deepEqual([...shown], open.map(({ gate, position }) => [position, gate.state])); // prettier-ignore
  const answered = receipts.map(({ decisionId, verdict, code }) => [decisionId, code ?? verdict]);
  assert.deepEqual(
    Object.fromEntries(answered),
    Object.fromEntries(gates.flatMap(({ answers }) => [...answers])),
  );
  const acting = gates
    .map((gate, index) => ({ gate, position: positions[index] }))
    .filter(({ gate }) => gate.acts);
  assert.deepEqual(
    performed.map(({ position, payloadHash, grant }) => [position, payloadHash, grant?.decisionId]).sort(),
    acting.map(({ gate, position }) => [position, gate.hash, gate.winner?.id]).sort(),
  );
  // a cancelled run closes with the first effect that it does not begin
  const isWaiting = gates.some(
    (gate) => gate.acts === true || (gate.state === 'pending' && !gate.isCancelled),
  );
  if (isClosed) assert.ok(!isWaiting, 'a run closes when nothing of it waits');
  else
    assert.ok(
      gates.every(({ judging }) => judging === undefined),
      'everything that came is judged',
    );
  for (const gate of gates) countWhatHappened(gate);
}

function countWhatHappened({ state, answers, winner, deadline }: ModelGate): void {
  count(`ended ${state}`);
  for (const answer of answers.values()) count(answer);
  if (winner?.signedAt !== undefined && winner.signedAt < deadline) count('won by its proof');
}

test('P2: a gate does what its model does, in whatever order decisions, judgements, the clock and a cancel come', async () => {
  const property = fc.asyncProperty(scenario, fc.scheduler(), async (planned, scheduler) => {
    const { sends, kindOfRun, ...plan } = planned;
    const { gates, requester, ...kind } = kindsOfRun[kindOfRun] ?? assert.fail();
    const made_ = await Promise.all(sends.map((one, index) => made(one, `d-${index}`, gates)));
    const again = sends.flatMap((one, index) =>
      Array.from({ length: one.again }, () => made_[index] ?? assert.fail()),
    );
    const run = await startRun({ ...kind, now: start });
    try {
      const setting = {
        ...{ run, activities, start, ttlMs, hash: hashes.asked, sends: [...made_, ...again] },
        ...{ positions: positions.slice(0, gates), ...plan },
        ...(requester === undefined ? {} : { requester }),
      };
      assertAsTheModelSays(await play(setting, scheduler));
    } finally {
      await run.dispose();
    }
  });
  await fc.assert(property, { numRuns, seed: fuzzSeed, endOnFailure: true });

  // not vacuous: everything that a gate can end as and answer came up, the rare ones in a full run
  const rare = ['pending', 'withdrawn', 'responded', 'cancelled'].map((state) => `ended ${state}`);
  const all = [
    ...['ended approved', 'ended rejected', 'ended expired', 'accepted', 'not_open', 'already_resolved', 'payload_changed'],
    ...(isFullFuzz ? [...rare, 'expired', 'unproven', 'not_allowed', 'check_failed', 'unknown_key', 'won by its proof'] : []),
  ]; // prettier-ignore
  for (const what of all)
    assert.ok((seen.get(what) ?? 0) > numRuns / 500, `${what}: ${seen.get(what) ?? 0} times`);
  if (isFullFuzz)
    console.log(`# seed ${fuzzSeed}, ${numRuns} runs: ${JSON.stringify(Object.fromEntries(seen))}`);
});
