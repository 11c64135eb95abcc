// P3 on a real server: a decision counts for the one gate and the one payload that it was made on, and an
// effect runs what was approved or does not run.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hashPayload, shortHash } from '../src/core/hash.ts';
import type { Decision } from '../src/core/decision.ts';
import type { Json } from '../src/core/json.ts';
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
const settings = { address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url };
await startWorker(settings);

/** What reached the target for that run, whatever came of it. */
async function sent(runId: string): Promise<Json[]> {
  const lines = await ledger.lines();
  return lines.map(({ body }) => body as Json).filter((body) => (body as { order: string }).order === runId);
}

async function send(runId: string, decision: Decision) {
  assert.equal(await countersign.sendDecision(runId, decision), true);
  return receiptOf(countersign, decision, runId);
}

/** The same text with another character at that place, of the same sort. */
function withOther(text: string, index: number): string {
  const old = text.charAt(index);
  return `${text.slice(0, index)}${old === 'a' ? 'b' : 'a'}${text.slice(index + 1)}`;
}

for (const kind of kinds) {
  test(`P3: a decision for another run's key, or for a key with one character changed, decides nothing (${kind})`, async () => {
    const runId = temporal.id('here');
    const otherId = temporal.id('there');
    const gate = await startGate(temporal, countersign, kind, runId);
    const other = await startGate(temporal, countersign, kind, otherId);

    const rootAt = gate.key.length - 1;
    const wrong: Record<string, Decision> = {
      'the key and root of another run': decisionOn(other, 'approve', { payloadHash: gate.hash }),
      'the key of another run under this root': decisionOn(gate, 'approve', { key: other.key }),
      'this key under the root of another run': decisionOn(gate, 'approve', { root: other.root }),
      'one character of the workflow id': decisionOn(gate, 'approve', { key: withOther(gate.key, 0) }),
      'one digit of the root in the key': decisionOn(gate, 'approve', { key: withOther(gate.key, rootAt) }),
      'one digit of the root': decisionOn(gate, 'approve', { root: withOther(gate.root, 0) }),
      'a key that does not parse': decisionOn(gate, 'approve', { key: `${gate.key}!` }),
      'no key at all': decisionOn(gate, 'approve', { key: 'x' }),
    };
    for (const [what, decision] of Object.entries(wrong)) {
      const receipt = await send(runId, decision);
      assert.deepEqual(
        [receipt.verdict, receipt.code, receipt.position],
        ['refused', 'unknown_key', undefined],
        what,
      );
    }
    const refused = await factsOf(countersign, runId, 'decision_refused');
    assert.deepEqual(
      refused.map(({ code, position, decision }) => ({ code, position, id: decision?.decisionId })),
      Object.values(wrong).map(({ decisionId }) => ({
        code: 'unknown_key',
        position: undefined,
        id: decisionId,
      })),
    );
    assert.deepEqual(await factsOf(countersign, otherId, 'decision_refused'), []);
    assert.equal((await openGate(countersign, otherId)).key, other.key);

    const approve = decisionOn(gate, 'approve');
    await countersign.sendDecision(runId, approve);
    await client.workflow.getHandle(runId).result();
    assert.equal((await sent(runId)).length, 1);
    assert.deepEqual(await sent(otherId), []);
    await client.workflow.getHandle(otherId).terminate();
  });

  test(`P3: a signed decision that was altered on its way is unproven, and decides nothing (${kind})`, async () => {
    const runId = temporal.id('altered');
    const gate = await startGate(temporal, countersign, kind, runId);
    const signed = await signedDecision(temporal, secrets, gate, 'approve', {
      reason: 'the parcel was damaged',
    });
    const altered: Record<string, Decision> = {
      reason: { ...signed, reason: 'the parcel was damaged.' },
      decision: { ...signed, decision: 'reject' },
      who: { ...signed, by: { id: 'bob' } },
      roles: { ...signed, by: { ...signed.by, roles: ['finance'] } },
      door: { ...signed, via: 'inbox' },
      id: { ...signed, decisionId: `${signed.decisionId}-2` },
    };
    for (const [what, decision] of Object.entries(altered)) {
      const { code, gate: state } = await send(runId, decision);
      assert.deepEqual([code, state], ['unproven', 'pending'], what);
    }
    assert.deepEqual(await sent(runId), []);
    // the same id as the altered ones that were refused: it is judged by what it is
    await countersign.sendDecision(runId, signed);
    await client.workflow.getHandle(runId).result();
    const [granted] = await factsOf(countersign, runId, 'approval_granted');
    assert.deepEqual(granted?.by, { id: 'ann', verified: true });
    assert.equal((await sent(runId)).length, 1);
  });

  test(`P3: a decision made on any other payload is refused by its hash (${kind})`, async () => {
    const runId = temporal.id('hashes');
    const { shown, others } = payloads(runId);
    const gate = await startGate(temporal, countersign, kind, runId, {
      tool: 'notify.send',
      arguments: shown,
    });
    for (const [what, args] of Object.entries(others)) {
      const { hash } = hashPayload({ tool: 'notify.send', arguments: args });
      assert.notEqual(hash, gate.hash, what);
      const receipt = await send(runId, decisionOn(gate, 'approve', { payloadHash: hash }));
      assert.deepEqual([receipt.code, receipt.gate], ['payload_changed', 'pending'], what);
      assert.match(receipt.message ?? '', new RegExp(`${shortHash(hash)}.*${shortHash(gate.hash)}`), what);
    }
    const otherTool = hashPayload({ tool: 'payments.refund', arguments: shown }).hash;
    const receipt = await send(runId, decisionOn(gate, 'approve', { payloadHash: otherTool }));
    assert.equal(receipt.code, 'payload_changed', 'another tool');
    assert.deepEqual(await sent(runId), []);

    const approve = decisionOn(gate, 'approve');
    await countersign.sendDecision(runId, approve);
    await client.workflow.getHandle(runId).result();
    assert.deepEqual(await sent(runId), [shown]);
  });
}

test('P3: an effect whose arguments are not the approved ones is refused at once, and nothing is called', async () => {
  const base = temporal.id('effect');
  for (const [what, args] of Object.entries(payloads(base).others)) {
    const runId = temporal.id('effect');
    const shown = { ...payloads(base).shown, order: runId };
    const change = { arguments: { ...args, order: runId } };
    const input = { gate: { name: 'refund', tool: 'notify.send', arguments: shown }, change };
    const handle = await client.workflow.start('misuseOfAGrant', {
      workflowId: runId,
      taskQueue,
      args: [input],
    });
    const gate = await openGate(countersign, runId);
    await countersign.sendDecision(runId, decisionOn(gate, 'approve'));
    await assert.rejects(handle.result(), what);
    assert.deepEqual(await sent(runId), [], what);

    const facts = await countersign.readTrail(runId);
    assert.equal(facts.filter(({ type }) => type === 'approval_granted').length, 1, what);
    const failed = facts.flatMap((fact) => (fact.type === 'effect_failed' ? [fact] : []));
    assert.deepEqual(
      failed.map(({ code, position }) => [code, position]),
      [['payload_changed', 'refund']],
      what,
    );
    const got = hashPayload({ tool: 'notify.send', arguments: change.arguments }).hash;
    assert.match(failed[0]?.message ?? '', new RegExp(`${shortHash(got)}.*${shortHash(gate.hash)}`), what);
  }
});

test('P3: where a deployment takes signed decisions only, an unsigned one opens nothing', async () => {
  const queue = `${taskQueue}-signed`;
  await startWorker({ ...settings, taskQueue: queue, unsigned: 'refuse' });
  const runId = temporal.id('signed-only');
  const handle = await client.workflow.start('oneGated', {
    workflowId: runId,
    taskQueue: queue,
    args: [{ name: 'refund', tool: 'payments.refund', arguments: { order: runId, amount: '10.00' } }],
  });
  const gate = await openGate(countersign, runId);
  for (const kind of ['approve', 'reject'] as const) {
    const receipt = await send(runId, decisionOn(gate, kind));
    assert.deepEqual([receipt.code, receipt.gate], ['unproven', 'pending'], kind);
  }
  assert.deepEqual(await sent(runId), []);
  await countersign.sendDecision(runId, await signedDecision(temporal, secrets, gate, 'approve'));
  assert.equal(((await handle.result()) as { state: string }).state, 'approved');
  assert.equal((await sent(runId)).length, 1);
});

/** One payload, and others that differ from it by as little as JSON can. */
function payloads(order: string) {
  const shown = {
    order,
    amount: '40.0',
    name: 'Ren\u00e9',
    items: [
      { sku: 'a', count: 1 },
      { sku: 'b', count: 2 },
    ],
  };
  const [first, second] = shown.items;
  const others: Record<string, Record<string, Json>> = {
    'a field more': { ...shown, note: 'x' },
    'a field less': { order, amount: shown.amount, name: shown.name },
    '40.00 for 40.0': { ...shown, amount: '40.00' },
    'a number for its text': { ...shown, amount: 40 },
    'two elements swapped': { ...shown, items: [second as Json, first as Json] },
    'null for absent': { ...shown, note: null },
    'e and an accent for \u00e9': { ...shown, name: 'Rene\u0301' },
    'a space more': { ...shown, name: 'Ren\u00e9 ' },
  };
  return { shown, others };
}
