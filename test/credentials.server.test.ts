// Tokens and keys change while everything runs: a revoked token is refused, a key that replaced another proves
// decisions to a worker that was started with the old file, and a person of an OIDC issuer decides.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { decodeProtectedHeader } from 'jose';
import type { Decision } from '../src/core/decision.ts';
import { removeKey, rotateGrantKey, rotateSigningKey } from '../src/secret-keys.ts';
import { revokeTokens } from '../src/secret-tokens.ts';
import { editSecretsFile } from '../src/secrets-edit.ts';
import { openSecrets } from '../src/secrets.ts';
import { startApi } from './support/api-server.ts';
import { eventually } from './support/eventually.ts';
import { clientOf, factsOf, receiptOf, signedDecision } from './support/gates.ts';
import { kinds, startGate } from './support/kinds.ts';
import { startLedger } from './support/ledger.ts';
import { startIssuer } from './support/oidc-issuer.ts';
import { countersign as startCountersign, makeProject, ready, skipWithoutCache } from './support/project.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { startWorker } from './support/worker.ts';

const temporal = await openTemporal();
const { address, namespace, taskQueue } = temporal;
const countersign = clientOf(temporal);
const ledger = await startLedger();
const { path: secretsFile, secrets } = await makeSecrets();
const api = await startApi(temporal, { secretsFile, people: ['ann', 'bob', 'eve'] });
// both have the file open from here on
await startWorker({ address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url });

/** The keys by which the run's decisions were proven, in order. */
async function proofKids(runId: string): Promise<unknown[]> {
  const facts = await factsOf(countersign, runId, 'approval_granted');
  return facts.map(({ decision }) => decodeProtectedHeader(decision?.proof ?? '').kid);
}

for (const kind of kinds) {
  test(`P7: a rotated key proves decisions to a worker that had the old file, old proofs hold (${kind})`, async () => {
    const before = secrets.signingKey();
    const [first, second, third] = [
      await startGate(temporal, countersign, kind, temporal.id('before')),
      await startGate(temporal, countersign, kind, temporal.id('after')),
      await startGate(temporal, countersign, kind, temporal.id('removed')),
    ];
    const ofOld = await signedDecision(temporal, secrets, first, 'approve');
    const ofRemoved = await signedDecision(temporal, secrets, third, 'approve');
    const made = await editSecretsFile(secretsFile, async (file) => {
      const from = Date.now();
      rotateGrantKey(file, { from });
      return rotateSigningKey(file, { now: from, from });
    });
    // a process that starts now signs with the new key at once, and the worker must know it as soon
    const { secrets: fresh } = await openSecrets({ path: secretsFile, create: false });
    assert.equal(fresh.signingKey().kid, made.kid);
    const ofNew = await signedDecision(temporal, fresh, second, 'approve');
    for (const [gate, decision, kid] of [
      [second, ofNew, made.kid],
      [first, ofOld, before.kid],
    ] as const) {
      await countersign.sendDecision(gate.runId, decision);
      const receipt = await receiptOf(countersign, decision, gate.runId);
      assert.equal(receipt.verdict, 'accepted', receipt.message);
      assert.deepEqual(await proofKids(gate.runId), [kid]);
      // the grant of the new key is taken where the effect runs
      await eventually(async () => (await factsOf(countersign, gate.runId, 'tool_result')).length === 1);
    }
    await editSecretsFile(secretsFile, (file) => removeKey(file, 'signing', before.kid, Date.now()));
    await countersign.sendDecision(third.runId, ofRemoved);
    const receipt = await receiptOf(countersign, ofRemoved, third.runId);
    assert.deepEqual([receipt.verdict, receipt.code], ['refused', 'unproven']);
    assert.match(receipt.message ?? '', /not known here/);
    // the API follows within a second
    await eventually(() => secrets.signingKey().kid === made.kid);
    const again = await signedDecision(temporal, secrets, third, 'approve');
    await countersign.sendDecision(third.runId, again);
    assert.equal((await receiptOf(countersign, again, third.runId)).verdict, 'accepted');
  });
}

test('a revoked token is refused by an API that has the file open, and the others are not', async () => {
  const gate = await startGate(temporal, countersign, 'runSpec', temporal.id('revoked'));
  const stream = await api.open('/events', 'eve');
  assert.equal((await api.call('GET', '/approvals', { as: 'eve' })).status, 200);
  await editSecretsFile(secretsFile, (file) => revokeTokens(file, 'eve', {}));
  await eventually(async () => (await api.call('GET', '/approvals', { as: 'eve' })).status === 401);
  const { status, body } = await api.approve(gate, { as: 'eve' });
  assert.deepEqual([status, body['code']], [401, 'unauthenticated']);
  await stream.body?.cancel();
  const approved = await api.approve(gate, { as: 'bob' });
  assert.equal(approved.status, 200, approved.text);
  const [granted] = await factsOf(countersign, gate.runId, 'approval_granted');
  assert.equal(granted?.decision?.by.id, 'bob');
});

test(
  'P7: a person of an OIDC issuer decides at `countersign api`, and is recorded as that person',
  { skip: skipWithoutCache },
  async () => {
    const issuer = await startIssuer(() => Date.now());
    const project = makeProject({ 'ask.yaml': askSpec });
    const oidc = { issuer: issuer.url, audience: 'countersign', scopes: ['decide'] };
    writeFileSync(
      project.config,
      `export const config = { tools: [], specs: './specs', oidc: ${JSON.stringify(oidc)} };\n`,
    );
    const script = startCountersign('api', project, {
      ...{ TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace },
      ...{ COUNTERSIGN_TASK_QUEUE: taskQueue, COUNTERSIGN_SECRETS_FILE: secretsFile },
    });
    const { url } = await ready(script);
    const gate = await startGate(temporal, countersign, 'runSpec', temporal.id('oidc'));
    const send = async (token: string, path: string, method = 'POST') =>
      fetch(`${String(url)}${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, 'if-match': `"${gate.hash}"` },
      });
    const ann = await issuer.token({ name: 'Ann', roles: ['finance'] });
    const stranger = await issuer.token({ aud: 'wiki' });
    assert.equal((await send(stranger, `/approvals/${gate.key}/approve`)).status, 401);
    assert.equal((await send(ann, '/approvals', 'GET')).status, 403);
    const approved = await send(ann, `/approvals/${gate.key}/approve`);
    assert.equal(approved.status, 200, await approved.text());
    const [granted] = await factsOf(countersign, gate.runId, 'approval_granted');
    const by: Decision['by'] | undefined = granted?.decision?.by;
    assert.deepEqual(by, { id: 'oidc:u-1', name: 'Ann', roles: ['finance'] });
    // without its issuer it goes on with the keys that it has
    await issuer.stop();
    assert.equal((await send(ann, '/runs', 'GET')).status, 403);
  },
);

const askSpec = `version: 1
name: ask
steps:
  - id: ask
    approval: { title: 'Is it all right?' }
`;
