// P3: what is frozen is what the schema made of the proposal, once; and what cannot be frozen is recorded as
// a problem that names step, field, size and limit, so that nobody is asked.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import type { CaseRecord, ProblemRecord } from '../src/core/case.ts';
import { hashPayload } from '../src/core/hash.ts';
import type { FreezeCaseInput, Scope } from '../src/core/recording.ts';
import { depsWith, key, now, position, recordingTool, root, run } from './support/activity.ts';

const { tool, calls } = recordingTool();
const deps = depsWith({ tools: [tool] });
const day = 86_400_000;
const proposal: FreezeCaseInput = {
  v: 1, position, root, key, now, phase: 'before', tool: tool.name, arguments: { order: 'ord-1', amount: '100' },
}; // prettier-ignore

async function frozen(more: Partial<FreezeCaseInput> = {}, given = deps): Promise<CaseRecord> {
  const record = await run('freezeCase', given, { ...proposal, ...more });
  assert.equal(record.kind, 'case', record.kind === 'problem' ? record.message : '');
  return record;
}

async function problem(more: Partial<FreezeCaseInput> = {}, given = deps): Promise<ProblemRecord> {
  const record = await run('freezeCase', given, { ...proposal, ...more });
  assert.equal(record.kind, 'problem', `it was frozen: ${JSON.stringify(record).slice(0, 300)}`);
  return record;
}

test('P3: the case shows the final arguments, and its hash is over exactly them (case 3)', async () => {
  const record = await frozen({ reasoning: 'the parcel was damaged' });
  const args = { order: 'ord-1', amount: 100, currency: 'EUR' };
  assert.deepEqual(record, {
    v: 1, kind: 'case', position, key, root, phase: 'before', title: tool.name, tool: tool.name, arguments: args,
    payloadHash: hashPayload({ tool: tool.name, arguments: args }).hash, reasoning: 'the parcel was damaged',
    effect: { idempotency: 'key', startToCloseMs: 60_000, maximumAttempts: 10 },
    policy: { ttlMs: 7 * day }, requestedAt: now, expiresAt: now + 7 * day,
  }); // prettier-ignore
  assert.equal(calls.length, 0);
});

test('P1: freezing again gives the same case to the letter', async () => {
  assert.deepEqual(await frozen(), await frozen());
});

test('P3: each change of the arguments is another hash (case 5)', async () => {
  const loose = depsWith({ tools: [{ ...tool, arguments: z.looseObject({}) }] });
  const variants = [
    { a: '40.0' }, { a: '40.00' }, { a: 40 }, {}, { a: null }, { a: [1, 2] }, { a: [2, 1] }, { a: '40.0', b: 1 },
    { a: 'é' }, { a: 'e\u0301' }, { A: '40.0' }, { a: '' }, { a: false }, { a: 0 },
  ]; // prettier-ignore
  const hashes = await Promise.all(
    variants.map(async (args) => (await frozen({ arguments: args }, loose)).payloadHash),
  );
  assert.equal(new Set(hashes).size, variants.length);
  const swapped = await frozen({ arguments: { b: 1, a: '40.0' } }, loose);
  assert.equal(swapped.payloadHash, hashes[7], 'the order of members is no difference');
});

test('an undeclared or wrong argument is a problem that names the field, and no case', async () => {
  const missing = await problem({ arguments: { order: 7, amount: 'ten' } });
  assert.equal(missing.code, 'invalid_arguments');
  assert.match(
    missing.message,
    /step "refund", tool "payments\.refund": order: .*string.*; amount: .*number/,
  );
  assert.match(
    (await problem({ arguments: { order: 'o', amount: 1, to: 'x' } })).message,
    /Unrecognized key: "to"/,
  );
  assert.match((await problem({ arguments: [] })).message, /arguments: .*object/);
  const unknown = await problem({ tool: 'payments.refnd' });
  assert.equal(unknown.code, 'unknown_tool');
  assert.match(unknown.message, /no tool "payments\.refnd"; known: payments\.refund/);
});

test('case 47: a payload over 256 KiB is a problem that names step, size and limit', async () => {
  const big = await problem({ arguments: { order: 'x'.repeat(3_000_000), amount: 1 } });
  assert.equal(big.code, 'payload_too_large');
  assert.match(big.message, /step "refund".*30000\d\d bytes.*limit is 262144/);
  // what a default or a transform adds counts too
  const grown = { ...tool, arguments: z.object({ n: z.number().transform((n) => 'x'.repeat(n)) }) };
  const after = await problem({ arguments: { n: 300_000 } }, depsWith({ tools: [grown] }));
  assert.equal(after.code, 'payload_too_large');
  const record = await frozen({ arguments: { order: 'x'.repeat(250_000), amount: 1 } });
  assert.equal((record.arguments as { order: string }).order.length, 250_000);
});

test('P3: what a schema makes that is not JSON is a problem with its path, never silently changed', async () => {
  const made: [unknown, RegExp][] = [
    [new Date(0), /a Date is not JSON/], [Number.NaN, /NaN/], [Infinity, /Infinity/], [new Map(), /a Map/],
    [10n, /BigInt/], [() => 1, /function/], ['\ud800', /lone surrogate/],
  ]; // prettier-ignore
  for (const [value, message] of made) {
    const odd = { ...tool, arguments: z.any().transform(() => ({ deep: [{ value }] })) };
    const { code, message: told } = await problem({}, depsWith({ tools: [odd] }));
    assert.equal(code, 'invalid_value');
    assert.match(told, /\/arguments\/deep\/0\/value/);
    assert.match(told, message);
  }
});

test('templates are resolved before the schema, and a missing name is a problem', async () => {
  const scope: Scope = {
    input: { order: 'ord-7', amount: 12 },
    steps: { check: { output: { title: 'broken' } } },
  };
  const args = { order: '${{ input.order }}', amount: '${{ input.amount }}' };
  const record = await frozen({
    arguments: args,
    title: 'Refund ${{ input.order }}: ${{ steps.check.output.title }}',
    scope,
  });
  assert.deepEqual(record.arguments, { order: 'ord-7', amount: 12, currency: 'EUR' });
  assert.equal(record.title, 'Refund ord-7: broken');
  const gone = await problem({ arguments: { ...args, order: '${{ input.orderId }}' }, scope });
  assert.equal(gone.code, 'unresolved_reference');
  assert.match(gone.message, /step "refund".*orderId/);
  // without a scope (one's own workflow) nothing is a template
  const plain = await frozen({ arguments: { order: '${{ input.order }}', amount: 1 } });
  assert.deepEqual(plain.arguments, { order: '${{ input.order }}', amount: 1, currency: 'EUR' });
});

test('an approval step is hashed over its step and its question', async () => {
  const record = await frozen({ phase: 'step', position: 'release', step: 'release', title: 'Ship it?' });
  assert.deepEqual(record.question, { title: 'Ship it?' });
  assert.equal(record.payloadHash, hashPayload({ step: 'release', question: { title: 'Ship it?' } }).hash);
  assert.equal(record.effect, undefined);
  assert.equal(record.tool, undefined);
});

test('ttl: as written, in milliseconds, or the deployment default; anything else is a problem', async () => {
  assert.equal((await frozen({ ttl: '2h' })).expiresAt, now + 7_200_000);
  assert.equal((await frozen({ ttl: 1 })).expiresAt, now + 1);
  assert.equal((await frozen({}, { ...deps, approvalTtlMs: 1000 })).policy.ttlMs, 1000);
  const wrong = [
    '',
    '2 hours',
    '0s',
    '-1h',
    '4000d',
    0,
    -1,
    1.5,
    Number.NaN,
    Infinity,
    Number.MAX_SAFE_INTEGER,
    null,
  ];
  for (const ttl of wrong) {
    const { code, message } = await problem({ ttl: ttl as never });
    assert.equal(code, 'invalid_value', String(ttl));
    assert.match(message, /step "refund": ttl must be/);
  }
});

test('case 47: a title or a reasoning too long to show is a problem that names step, size and limit', async () => {
  for (const [name, text] of [
    ['title', 'x'.repeat(3_000_000)],
    ['reasoning', 'é'.repeat(1_500_000)],
  ] as const) {
    const { code, message } = await problem({ [name]: text });
    assert.equal(code, 'payload_too_large');
    assert.match(message, new RegExp(`step "refund": the ${name} has 3000000 bytes, the limit is \\d+`));
  }
});

test('the case says where people find it, when the deployment knows', async () => {
  const record = await frozen({}, { ...deps, baseUrl: 'https://sign.example' });
  assert.equal(record.url, `https://sign.example/approvals/${key}`);
});

test('an ungated call is frozen like a gated one, and an output is resolved', async () => {
  const what = { tool: tool.name, arguments: { order: 'ord-1', amount: '100' } };
  const prepared = await run('prepareStep', deps, { v: 1, position, root, what });
  const { arguments: args, payloadHash, effect } = await frozen();
  const same = { tool: tool.name, arguments: args, payloadHash, effect };
  assert.deepEqual(prepared, { v: 1, kind: 'prepared', position, root, ...same });
  const scope: Scope = { input: { a: 1 }, steps: { pay: { output: { refund: 're_1' } } } };
  const output = { refund: '${{ steps.pay.output.refund }}', n: '${{ input.a }}' };
  const resolved = await run('prepareStep', deps, {
    v: 1,
    position: 'output',
    root,
    what: { output },
    scope,
  });
  assert.deepEqual(resolved, {
    v: 1,
    kind: 'output',
    position: 'output',
    root,
    value: { refund: 're_1', n: 1 },
  });
  const bad = await run('prepareStep', deps, { v: 1, position, root, what: { tool: 'nope', arguments: {} } });
  assert.deepEqual([bad.kind, (bad as ProblemRecord).code], ['problem', 'unknown_tool']);
});

test('one attempt for a tool whose target takes no key, whatever it asks for (P5)', async () => {
  const none = depsWith({ tools: [{ ...tool, idempotency: 'none', attempts: 5, timeoutMs: 1234 }] });
  assert.deepEqual((await frozen({}, none)).effect, {
    idempotency: 'none',
    startToCloseMs: 1234,
    maximumAttempts: 1,
  });
  const lookup = depsWith({ tools: [{ ...tool, idempotency: 'lookup', attempts: 5 }] });
  assert.equal((await frozen({}, lookup)).effect?.maximumAttempts, 5);
});
