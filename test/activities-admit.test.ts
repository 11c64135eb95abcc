// P2, P3, P7, P9: the one check that every door shares, refusal by refusal; and a check that fails is no
// verdict but a failure that names the decision.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { ApplicationFailure } from '@temporalio/common';
import type { VerdictRecord } from '../src/core/case.ts';
import type { Decision } from '../src/core/decision.ts';
import { grantProblem } from '../src/core/grant.ts';
import { signProof } from '../src/core/proof.ts';
import type { AdmitDecisionInput } from '../src/core/recording.ts';
import type { ActivityDeps } from '../src/activities/deps.ts';
import type { RefusalCode } from '../src/core/verdict.ts';
import type { Secrets } from '../src/secrets.ts';
import {
  depsWith,
  key,
  makeGrantKey,
  namespace,
  now,
  position,
  root,
  run,
  workflowId,
} from './support/activity.ts';
import { makeSecrets } from './support/secrets.ts';

const payloadHash = `sha256:${'a'.repeat(64)}`;
const expiresAt = now + 1_000;
const grantKey = makeGrantKey('g1');
const spec = { name: 'refund', hash: `sha256:${'5'.repeat(64)}` };
const decision: Decision = {
  v: 1, key, root, decision: 'approve', payloadHash, decisionId: 'd-1', by: { id: 'ann' }, via: 'api', reason: 'yes',
}; // prettier-ignore
const gate: AdmitDecisionInput['case'] = {
  phase: 'before', tool: 'payments.refund', payloadHash, expiresAt, policy: { ttlMs: 1_000 },
}; // prettier-ignore

let secrets: Secrets;
let deps: ActivityDeps;
before(async () => {
  ({ secrets } = await makeSecrets());
  deps = depsWith({ grantKeys: () => [grantKey], proofKeys: () => secrets.proofKeys() });
});

function inputOf(sent: Decision, more: Partial<AdmitDecisionInput> = {}): AdmitDecisionInput {
  return {
    v: 1,
    position,
    root,
    key,
    case: gate,
    decision: sent,
    text: JSON.stringify(sent),
    takenUpAt: now,
    ...more,
  };
}

async function admit(
  sent: Decision,
  more: Partial<AdmitDecisionInput> = {},
  given = deps,
): Promise<VerdictRecord> {
  return run('admitDecision', given, inputOf(sent, more));
}

async function refused(
  code: RefusalCode,
  sent: Decision,
  more: Partial<AdmitDecisionInput> = {},
  given = deps,
): Promise<string> {
  const verdict = await admit(sent, more, given);
  assert.deepEqual([verdict.verdict, verdict.code], ['refused', code], verdict.message);
  assert.equal(verdict.grant, undefined);
  assert.deepEqual(verdict.decision, sent, 'the refused decision is recorded whole');
  return verdict.message ?? '';
}

async function signed(signedAt = now, more: Partial<Decision> = {}): Promise<Decision> {
  const sent = { ...decision, ...more };
  const proof = await signProof(sent, { namespace, workflowId }, secrets.signingKey(), { now: signedAt });
  return { ...sent, proof };
}

test('P6: an accepted approval is recorded whole, with a grant that holds for this run alone', async () => {
  const verdict = await admit(decision);
  const { grant, ...record } = verdict;
  const by = { id: 'ann', verified: false };
  assert.deepEqual(record, {
    v: 1,
    kind: 'verdict',
    position,
    key,
    root,
    decision,
    by,
    takenUpAt: now,
    verdict: 'accepted',
  });
  assert.ok(grant);
  const { kid: _kid, mac: _mac, ...content } = grant;
  const { tool } = gate;
  assert.deepEqual(content, {
    v: 1,
    namespace,
    workflowId,
    key,
    root,
    position,
    tool,
    payloadHash,
    decisionId: 'd-1',
  });
  assert.equal(grantProblem(grant, { namespace, workflowId }, [grantKey]), undefined);
});

test('P6: a signed decision counts as verified; a rejection and an approval step carry no grant', async () => {
  const proven = await admit(await signed());
  assert.deepEqual([proven.verdict, proven.by], ['accepted', { id: 'ann', verified: true }]);
  const rejected = await admit({ ...decision, decision: 'reject' });
  assert.deepEqual([rejected.verdict, rejected.grant], ['accepted', undefined]);
  const { tool: _tool, ...question } = gate;
  const released = await admit(decision, { case: { ...question, phase: 'step' } });
  assert.deepEqual([released.verdict, released.grant], ['accepted', undefined]);
});

test('P8: malformed is what the strict reader refuses, and JSON.parse alone would take', async () => {
  const text = JSON.stringify(decision);
  const doubled = `${text.slice(0, -1)},"reason":"no"}`;
  assert.match(await refused('malformed', decision, { text: doubled }), /reason/);
  await refused('malformed', decision, { text: text.replace('"yes"', '9007199254740993') });
});

test('P2: unknown_key is a decision for another gate or another run', async () => {
  await refused('unknown_key', { ...decision, key: key.replace('.refund.', '.other.') });
  await refused('unknown_key', { ...decision, root: root.replace('01', '02') });
});

test('not_allowed is a decision of a kind that the gate does not take', async () => {
  for (const kind of ['delegate', 'unvote'] as const) {
    assert.match(await refused('not_allowed', { ...decision, decision: kind }), new RegExp(kind));
  }
  const step = { ...gate, phase: 'step' } as const;
  for (const kind of ['edit', 'respond', 'amend'] as const) {
    assert.match(
      await refused('not_allowed', { ...decision, decision: kind }, { case: step }),
      new RegExp(kind),
    );
  }
});

test('P7: unproven is a proof of another key, run, gate or content, and none where one is demanded', async () => {
  const good = await signed();
  assert.match(await refused('unproven', { ...good, reason: 'another reason' }), /changed/);
  assert.match(await refused('unproven', { ...good, proof: 'a.b.c' }), /not a compact JWS/);
  assert.match(await refused('unproven', good, {}, { ...deps, namespace: 'staging' }), /namespace/);
  const { secrets: foreign } = await makeSecrets();
  await refused('unproven', good, {}, { ...deps, proofKeys: () => foreign.proofKeys() });
  await refused('unproven', good, {}, { ...deps, proofKeys: () => [] });
  assert.match(
    await refused('unproven', decision, {}, { ...deps, unsigned: 'refuse' }),
    /signed decisions only/,
  );
  assert.equal((await admit(good, {}, { ...deps, unsigned: 'refuse' })).verdict, 'accepted');
});

test('P11: taken up after the deadline, only what a door signed before it counts (case 54)', async () => {
  const late = { takenUpAt: expiresAt + 86_400_000 };
  assert.equal((await admit(await signed(expiresAt - 1), late)).verdict, 'accepted');
  assert.match(
    await refused('expired', await signed(expiresAt), late),
    /expired at 2027-01-15T08:00:01\.000Z/,
  );
  await refused('expired', await signed(expiresAt + 1), late);
  await refused('expired', decision, late);
  await refused('expired', { ...decision, iat: expiresAt - 1 } as Decision, late);
  await refused('expired', await signed(expiresAt - 1, { via: 'signal' }), late);
  await refused('expired', { ...decision, decision: 'reject' }, late);
  await refused('expired', decision, { takenUpAt: expiresAt });
  assert.equal((await admit(decision, { takenUpAt: expiresAt - 1 })).verdict, 'accepted');
});

test('P3: payload_changed is a decision on another hash, and names both', async () => {
  const other = `sha256:${'b'.repeat(64)}`;
  const message = await refused('payload_changed', { ...decision, payloadHash: other });
  assert.match(message, /bbbbbbbbbbbb.*aaaaaaaaaaaa/);
  await refused('payload_changed', { ...decision, decision: 'reject', payloadHash: other });
});

test('P9: spec_changed names both hashes, holds no rejection, and is gone when the spec is back (case 45)', async () => {
  const named = { case: { ...gate, spec } };
  const changed = { ...deps, currentSpecHash: () => `sha256:${'6'.repeat(64)}` };
  assert.match(await refused('spec_changed', decision, named, changed), /555555555555.*666666666666.*reject/);
  assert.match(await refused('spec_changed', decision, named), /it is gone/);
  assert.equal((await admit({ ...decision, decision: 'reject' }, named, changed)).verdict, 'accepted');
  const asked: string[] = [];
  const back = { ...deps, currentSpecHash: (name: string) => (asked.push(name), spec.hash) };
  assert.equal((await admit(decision, named, back)).verdict, 'accepted');
  assert.deepEqual(asked, ['refund']);
});

test('P8: a check that throws or has no keys fails, and the failure names the decision (case 58)', async () => {
  const named = { case: { ...gate, spec } };
  const proven = await signed();
  const broken: [Decision, ActivityDeps][] = [
    [decision, { ...deps, currentSpecHash: () => assert.fail('the registry is gone') }],
    [decision, { ...deps, currentSpecHash: () => spec.hash, grantKeys: () => [] }],
    [proven, { ...deps, proofKeys: () => assert.fail('no key set') }],
    [proven, { ...deps, proofKeys: () => undefined as never }],
  ];
  for (const [sent, given] of broken) {
    await assert.rejects(admit(sent, named, given), (error: unknown) => {
      assert.ok(error instanceof ApplicationFailure);
      assert.deepEqual([error.type, error.nonRetryable], ['check_failed', false]);
      assert.deepEqual(error.details, [{ key, decisionId: 'd-1' }]);
      return true;
    });
  }
});
