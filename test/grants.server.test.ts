// P3 and P4 on a real server: a tool that needs approval runs only with a grant that this deployment issued
// for exactly this run, position, tool and payload, whoever schedules the activity; and once.
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { test } from 'node:test';
import type { Grant, PerformInput } from '../src/core/case.ts';
import { issueGrant, type GrantKey } from '../src/core/grant.ts';
import { hashPayload } from '../src/core/hash.ts';
import type { Json } from '../src/core/json.ts';
import { clientOf, decisionOn, openGate } from './support/gates.ts';
import { startLedger } from './support/ledger.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { startWorker } from './support/worker.ts';

const temporal = await openTemporal();
const { client, address, namespace, taskQueue } = temporal;
const countersign = clientOf(temporal);
const ledger = await startLedger();
const { path: secretsFile } = await makeSecrets();

const newKey = (): GrantKey => ({ kid: randomUUID(), secret: randomBytes(32).toString('base64url') });
const own = newKey();
let grantKeys: readonly GrantKey[] = [own];
const settings = { address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url };
await startWorker(settings, { deps: { grantKeys: () => grantKeys } });

const tool = 'payments.refund';
const argumentsOf = (order: string): Json => ({ order, amount: '10.00', currency: 'EUR' });

async function refundsOf(order: string): Promise<number> {
  const lines = await ledger.lines();
  return lines.filter(({ body }) => (body as { order: string }).order === order).length;
}

/** A grant as the gate `refund` of that run would have it, and the call that it is for. */
function granted(runId: string, keys: readonly GrantKey[] = [own]): { grant: Grant; perform: PerformInput } {
  const root = randomUUID();
  const args = argumentsOf(runId);
  const { hash: payloadHash } = hashPayload({ tool, arguments: args });
  const place = { namespace, workflowId: runId, key: `${runId}.refund.${root.slice(-12)}`, root };
  const content = {
    v: 1 as const,
    ...place,
    position: 'refund',
    tool,
    payloadHash,
    decisionId: randomUUID(),
  };
  const grant = issueGrant(content, keys);
  return { grant, perform: { v: 1, position: 'refund', root, tool, arguments: args, payloadHash, grant } };
}

/** Schedules the call in a run of that id and says how it ended, by its code and by the trail. */
async function schedule(runId: string, perform: unknown) {
  const handle = await client.workflow.start('performByHand', {
    workflowId: runId,
    taskQueue,
    args: [{ perform }],
  });
  const ended = await handle.result().then(
    () => 'performed',
    () => 'refused',
  );
  const facts = await countersign.readTrail(runId);
  const codes = facts.flatMap((fact) => (fact.type === 'effect_failed' ? [fact.code] : []));
  return { ended, codes, started: facts.filter(({ type }) => type === 'effect_started').length };
}

const refusedWith = (code: string) => ({ ended: 'refused', codes: [code], started: 1 });

test('P3: a gated tool that is scheduled without a grant does not run, and the trail says so', async () => {
  const runId = temporal.id('no-grant');
  const { perform } = granted(runId);
  const { grant: _, ...without } = perform;
  assert.deepEqual(await schedule(runId, without), refusedWith('approval_required'));
  assert.equal(await refundsOf(runId), 0);
});

test('P3: a made-up grant opens nothing, whatever it looks like', async () => {
  const made: Record<string, (grant: Grant) => unknown> = {
    'signed with a key of its own': ({ kid: _k, mac: _m, ...content }) => issueGrant(content, [newKey()]),
    'signed with a key of its own, under a known id': ({ kid, mac: _, ...content }) =>
      issueGrant(content, [{ ...newKey(), kid }]),
    'without an HMAC': ({ mac: _, ...rest }) => rest,
    'with an empty HMAC': (grant) => ({ ...grant, mac: '' }),
    'with an HMAC that is no text': (grant) => ({ ...grant, mac: { toString: 'x' } }),
    null: () => null,
    'an empty object': () => ({}),
    'a text': () => 'approved',
    true: () => true,
    'a list': () => [],
  };
  for (const [what, make] of Object.entries(made)) {
    const runId = temporal.id('made-up');
    const { grant, perform } = granted(runId);
    const result = await schedule(runId, { ...perform, grant: make(grant) });
    assert.deepEqual(result, refusedWith('grant_invalid'), what);
    assert.equal(await refundsOf(runId), 0, what);
  }
});

test('P3: a grant with any one field changed is refused, even where the call was changed to fit', async () => {
  const control = temporal.id('unchanged');
  assert.equal((await schedule(control, granted(control).perform)).ended, 'performed');
  assert.equal(await refundsOf(control), 1);

  const otherRoot = randomUUID();
  const changes: Record<string, { grant: Record<string, unknown>; perform?: Record<string, unknown> }> = {
    v: { grant: { v: 2 } },
    namespace: { grant: { namespace: 'other' } },
    workflowId: { grant: { workflowId: 'other' } },
    key: { grant: { key: 'other.refund.000000000000' } },
    root: { grant: { root: otherRoot }, perform: { root: otherRoot } },
    position: { grant: { position: 'refund#2' }, perform: { position: 'refund#2' } },
    tool: { grant: { tool: 'payments.plain' }, perform: { tool: 'payments.plain' } },
    payloadHash: { grant: { payloadHash: `sha256:${'0'.repeat(64)}` } },
    decisionId: { grant: { decisionId: randomUUID() } },
    'decisionId for a rule': { grant: { decisionId: undefined, rule: 'small-amounts' } },
    'a field more': { grant: { rule: 'small-amounts' } },
    kid: { grant: { kid: 'other' } },
    mac: { grant: { mac: randomBytes(32).toString('base64url') } },
  };
  const { grant: fields } = granted('any');
  for (const name of Object.keys(fields))
    assert.ok(name in changes, `the field ${name} of a grant is not tried`);
  for (const [what, change] of Object.entries(changes)) {
    const runId = temporal.id('changed');
    const { grant, perform } = granted(runId);
    const call = { ...perform, ...change.perform };
    // the hash of the changed call, so that only the grant can refuse it
    const { hash } = hashPayload({ tool: call.tool, arguments: call.arguments });
    const changed = { ...grant, ...(what === 'tool' ? { payloadHash: hash } : {}), ...change.grant };
    const result = await schedule(runId, { ...call, payloadHash: hash, grant: changed });
    assert.deepEqual(result, refusedWith('grant_invalid'), what);
    assert.equal(await refundsOf(runId), 0, what);
  }
});

test('P3: a grant is good for no other call than its own', async () => {
  const others: Record<string, (perform: PerformInput) => { change: object; code: string }> = {
    'another position': () => ({ change: { position: 'refund#2' }, code: 'grant_invalid' }),
    'another root': () => ({ change: { root: randomUUID() }, code: 'grant_invalid' }),
    'another tool': ({ arguments: args }) => ({
      change: {
        tool: 'payments.plain',
        payloadHash: hashPayload({ tool: 'payments.plain', arguments: args }).hash,
      },
      code: 'grant_invalid',
    }),
    'other arguments, hashed anew': ({ arguments: args }) => {
      const more = { ...(args as Record<string, Json>), amount: '99.00' };
      return {
        change: { arguments: more, payloadHash: hashPayload({ tool, arguments: more }).hash },
        code: 'payload_changed',
      };
    },
    'other arguments under the old hash': ({ arguments: args }) => ({
      change: { arguments: { ...(args as Record<string, Json>), amount: '99.00' } },
      code: 'payload_changed',
    }),
  };
  for (const [what, other] of Object.entries(others)) {
    const runId = temporal.id('other-call');
    const { perform } = granted(runId);
    const { change, code } = other(perform);
    assert.deepEqual(await schedule(runId, { ...perform, ...change }), refusedWith(code), what);
    assert.equal(await refundsOf(runId), 0, what);
  }
});

test("P3: another run's real grant, taken from its history, opens nothing here", async () => {
  const paidId = temporal.id('paid');
  const input = { name: 'refund', tool, arguments: argumentsOf(paidId) };
  const paid = await client.workflow.start('oneGated', { workflowId: paidId, taskQueue, args: [input] });
  const gate = await openGate(countersign, paidId);
  await countersign.sendDecision(paidId, decisionOn(gate, 'approve'));
  const { grant } = (await paid.result()) as { grant: Grant };
  const call = { v: 1, position: 'refund', root: gate.root, tool, arguments: input.arguments, grant };
  const perform = { ...call, payloadHash: gate.hash };
  assert.equal(await refundsOf(paidId), 1);

  const runId = temporal.id('thief');
  assert.deepEqual(await schedule(runId, perform), refusedWith('grant_invalid'));
  assert.equal(await refundsOf(paidId), 1);

  // P4: used again under its own workflow id it carries the same key, so the target does it no second time
  assert.equal((await schedule(paidId, perform)).ended, 'performed');
  const lines = (await ledger.lines()).filter(({ body }) => (body as { order: string }).order === paidId);
  assert.deepEqual(
    lines.map(({ key, outcome }) => [key, outcome]),
    [
      [`${gate.root}:refund`, 'refunded'],
      [`${gate.root}:refund`, 'replayed'],
    ],
  );
});

test('P3: a grant outlives a rotation of the grant key, but not the removal of its own', async () => {
  const next = newKey();
  try {
    grantKeys = [next, own];
    const before = temporal.id('rotated');
    assert.equal((await schedule(before, granted(before, [own]).perform)).ended, 'performed');
    assert.equal(await refundsOf(before), 1);

    grantKeys = [next];
    const after = temporal.id('removed');
    assert.deepEqual(await schedule(after, granted(after, [own]).perform), refusedWith('grant_invalid'));
    assert.equal(await refundsOf(after), 0);
    const fresh = temporal.id('fresh');
    assert.equal((await schedule(fresh, granted(fresh, [next]).perform)).ended, 'performed');

    grantKeys = [];
    const none = temporal.id('none');
    assert.deepEqual(await schedule(none, granted(none, [next]).perform), refusedWith('grant_invalid'));
    assert.equal(await refundsOf(none), 0);
  } finally {
    grantKeys = [own];
  }
});

test('P4: a grant is used once in its run, at its own name and with its own tool', async () => {
  const misuses: Record<string, { change: Record<string, unknown>; calls: number; code: string }> = {
    twice: { change: { twice: true }, calls: 1, code: 'grant_invalid' },
    'at another name': { change: { name: 'elsewhere' }, calls: 0, code: 'grant_invalid' },
    'with another tool': { change: { tool: 'payments.plain' }, calls: 0, code: 'payload_changed' },
  };
  for (const [what, { change, calls, code }] of Object.entries(misuses)) {
    const runId = temporal.id('misuse');
    const input = { gate: { name: 'refund', tool, arguments: argumentsOf(runId) }, change };
    const handle = await client.workflow.start('misuseOfAGrant', {
      workflowId: runId,
      taskQueue,
      args: [input],
    });
    const gate = await openGate(countersign, runId);
    await countersign.sendDecision(runId, decisionOn(gate, 'approve'));
    await assert.rejects(handle.result(), what);
    assert.equal(await refundsOf(runId), calls, what);
    const [end] = (await countersign.readTrail(runId)).slice(-1);
    assert.equal(end?.type === 'run_finished' ? end.error?.['code'] : end?.type, code, what);
  }
});
