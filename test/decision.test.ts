// P8: whatever a signal carries, reading it answers and never throws; and what is read means one thing.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  decisionLimitBytes,
  longDecisionLimitBytes,
  readDecision,
  readDecisionText,
  reasonLimitBytes,
  sameDecision,
  type Decision,
  type DecisionReading,
} from '../src/core/decision.ts';
import { readSignal } from '../src/core/signal.ts';

const hash = `sha256:${'a'.repeat(64)}`;
const full = {
  v: 1,
  key: 'refund-ord-1001.refund.046acc729732',
  root: '019d2b1a-7f3e-7c11-9d55-046acc729732',
  decision: 'approve',
  payloadHash: hash,
  decisionId: 'd-1',
  by: { id: 'ann', name: 'Ann', roles: ['finance'] },
  via: 'api',
  reason: 'Nein – 1 000 €\u202e',
  proof: 'a.b.c',
};

const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value) ?? '');
const read = (value: unknown): DecisionReading => readDecision(value, bytesOf(value));

function decisionOf(value: unknown): Decision {
  const reading = read(value);
  assert.ok(reading.ok, reading.ok ? '' : reading.problem);
  return reading.decision;
}

function refusalOf(value: unknown): string {
  const reading = read(value);
  assert.ok(!reading.ok, `it was read: ${JSON.stringify(value)}`);
  return `${reading.code}: ${reading.problem}`;
}

/** `full` without some members. */
function without(...names: (keyof typeof full)[]): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(full).filter(([name]) => !names.includes(name as keyof typeof full)),
  );
}

test('P6: a decision is read with every character that it was sent with', () => {
  assert.deepEqual(decisionOf(full), full);
  const text = JSON.stringify(full);
  assert.deepEqual(readDecisionText(text, Buffer.byteLength(text)), { ok: true, decision: full });
});

test('P8: a reading never throws, and refuses whatever is not a decision', () => {
  fc.assert(
    fc.property(fc.anything({ withBigInt: true, withDate: true, withMap: true }), (value) => {
      assert.equal(readDecision(value, 10).ok, false);
    }),
  );
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.json()), (text) => {
      assert.equal(readDecisionText(text, Buffer.byteLength(text)).ok, false);
    }),
  );
});

test('P8: a decision with any one member made into something else is read as that, or refused', () => {
  const member = fc.constantFrom(
    ...Object.keys(full),
    'arguments',
    'to',
    'until',
    '__proto__',
    'constructor',
  );
  fc.assert(
    fc.property(member, fc.jsonValue(), (name, value) => {
      const made = JSON.parse(
        `${JSON.stringify(full).slice(0, -1)},${JSON.stringify(name)}:${JSON.stringify(value)}}`,
      ) as unknown;
      const reading = read(made);
      if (!reading.ok) return;
      const { decision } = reading;
      assert.ok(Object.hasOwn(full, name), `a foreign member "${name}" was read`);
      assert.deepEqual(Object.keys(decision).sort(), Object.keys(full).sort());
      if (name !== 'by') assert.deepEqual(decision[name as keyof Decision], value);
      assert.equal(typeof decision.by.id, 'string');
    }),
  );
});

test('P3: a foreign member is malformed: an approval carries no arguments (case 1)', () => {
  for (const name of ['arguments', 'output', 'result', 'to', 'until', 'amount', 'byy', 'constructor']) {
    assert.equal(
      refusalOf({ ...full, [name]: { amount: '1' } }),
      `malformed: a decision "approve" has no field "${name}"`,
    );
  }
  assert.match(refusalOf({ ...full, by: { id: 'ann', admin: true } }), /by has no field "admin"/);
  assert.match(
    refusalOf({ ...without('payloadHash'), decision: 'reject', standing: true }),
    /no field "standing"/,
  );
});

test('P3: who approves, edits or responds says on which hash; who rejects need not', () => {
  for (const decision of ['approve', 'edit', 'respond']) {
    assert.match(refusalOf({ ...without('payloadHash'), decision }), /needs payloadHash/);
  }
  for (const decision of ['reject', 'amend', 'withdraw', 'delegate', 'unvote', 'comment']) {
    assert.equal(decisionOf({ ...without('payloadHash'), decision }).decision, decision);
  }
  for (const payloadHash of [
    '',
    'sha256:',
    hash.toUpperCase(),
    `${hash}a`,
    `${hash}\n`,
    ` ${hash}`,
    null,
    1,
    [hash],
  ]) {
    assert.match(refusalOf({ ...full, payloadHash }), /payloadHash must be/, JSON.stringify(payloadHash));
  }
});

test('P8: wrong types, wrong kinds and wrong lengths are malformed, each with its rule', () => {
  const refused: [Record<string, unknown>, RegExp][] = [
    [{ v: 2 }, /v must be 1/], [{ v: '1' }, /v must be 1/], [{ decision: 'APPROVE' }, /decision must be one of approve, reject/],
    [{ decision: 'toString' }, /must be one of/], [{ decision: ['approve'] }, /must be one of/], [{ key: '' }, /key must be/],
    [{ key: 'k'.repeat(641) }, /at most 640/], [{ root: null }, /root must be/], [{ decisionId: '' }, /decisionId/],
    [{ decisionId: 'd'.repeat(129) }, /at most 128/], [{ via: 'phone' }, /via must be one of/], [{ via: ['api'] }, /via must be/],
    [{ reason: 5 }, /reason must be a string/], [{ reason: null }, /reason must be/], [{ proof: {} }, /compact JWS/],
    [{ by: 'ann' }, /by must be an object/], [{ by: [] }, /by must be/], [{ by: {} }, /by\.id/], [{ by: { id: 7 } }, /by\.id/],
    [{ by: { id: 'a', roles: 'finance' } }, /by\.roles/], [{ by: { id: 'a', roles: Array(51).fill('r') } }, /at most 50/],
  ]; // prettier-ignore
  for (const [change, rule] of refused) assert.match(refusalOf({ ...full, ...change }), rule);
  for (const value of [null, undefined, 5, 'approve', [full], true, () => full]) {
    assert.match(refusalOf(value), /one JSON object/);
  }
});

test('P8: what is too large is refused by its size, to the byte, before it is looked into', () => {
  assert.equal(
    decisionOf({ ...full, reason: 'é'.repeat(reasonLimitBytes / 2) }).reason?.length,
    reasonLimitBytes / 2,
  );
  assert.match(
    refusalOf({ ...full, reason: 'é'.repeat(reasonLimitBytes / 2) + 'x' }),
    /too_large: a reason is at most 4096/,
  );
  assert.equal(readDecision(full, decisionLimitBytes).ok, true);
  const large = readDecision(full, decisionLimitBytes + 1);
  assert.deepEqual(large.ok ? '' : large.code, 'too_large');
  const edit = { ...full, decision: 'edit', arguments: { note: 'x'.repeat(200_000) } };
  assert.equal(decisionOf(edit).decision, 'edit');
  const huge = readDecisionText('x', longDecisionLimitBytes + 1);
  assert.deepEqual(huge.ok ? '' : huge.code, 'too_large');
});

test('P8: an edit that nests deeper than a stack is malformed, with and without an id (case 36)', () => {
  for (const depth of [65, 200, 100_000]) {
    for (const id of ['', '"decisionId":"d-1",']) {
      const deep = '['.repeat(depth) + ']'.repeat(depth);
      const text = `{"v":1,"key":"k","root":"r",${id}"decision":"edit","payloadHash":"${hash}","arguments":${deep}}`;
      const reading = readDecisionText(text, Buffer.byteLength(text));
      assert.match(reading.ok ? 'read' : reading.problem, /nested deeper than 64 levels/);
    }
  }
});

test('P2: without an id one is made from the content: equal for equal ones, in any order of members', () => {
  const bare = without('decisionId', 'via', 'by');
  const decision = decisionOf(bare);
  assert.match(decision.decisionId, /^content-[0-9a-f]{16}$/);
  assert.equal(decision.via, 'signal');
  assert.deepEqual(decision.by, { id: 'unknown' });
  const reversed = Object.fromEntries(Object.entries(bare).reverse());
  assert.equal(decisionOf(reversed).decisionId, decision.decisionId);
  assert.notEqual(decisionOf({ ...bare, reason: 'other' }).decisionId, decision.decisionId);
  assert.notEqual(decisionOf({ ...bare, by: { id: 'bob' } }).decisionId, decision.decisionId);
});

test('P2: a repeated decision is the same by everything but its proof and its door', () => {
  const one = decisionOf(full);
  assert.ok(sameDecision(one, decisionOf({ ...full, proof: 'd.e.f', via: 'cli' })));
  assert.ok(sameDecision(one, decisionOf(Object.fromEntries(Object.entries(full).reverse()))));
  const others: Record<string, unknown>[] = [
    { decision: 'reject' }, { payloadHash: `sha256:${'b'.repeat(64)}` }, { decisionId: 'd-2' }, { reason: 'x' },
    { by: { id: 'bob' } }, { by: { id: 'ann' } }, { key: 'other' }, { root: 'other' },
  ]; // prettier-ignore
  for (const change of others) {
    assert.ok(!sameDecision(one, decisionOf({ ...full, ...change })), JSON.stringify(change));
  }
});

test('P2: sameDecision is an equivalence that order of members never breaks', () => {
  const value = fc.record(
    { arguments: fc.jsonValue(), reason: fc.string() },
    { requiredKeys: ['arguments'] },
  );
  fc.assert(
    fc.property(value, value, (left, right) => {
      const [a, b] = [left, right].map((more) => decisionOf({ ...full, decision: 'edit', ...more }));
      assert.ok(a !== undefined && b !== undefined);
      assert.ok(sameDecision(a, JSON.parse(JSON.stringify(a)) as Decision));
      assert.equal(sameDecision(a, b), sameDecision(b, a));
      if (sameDecision(a, b)) assert.deepEqual(a, b);
    }),
  );
});

test('P8: a signal is read only when it is one argument of JSON text in UTF-8', () => {
  const payload = (data: string | Uint8Array, encoding = 'json/plain') => ({
    metadata: { encoding: Buffer.from(encoding) },
    data: typeof data === 'string' ? Buffer.from(data) : data,
  });
  const good = payload(JSON.stringify(full));
  assert.deepEqual(readSignal([good]).reading, { ok: true, decision: full });
  const refused = [
    [], [good, good], [{}], [{ data: good.data }], [{ metadata: {}, data: good.data }], [{ metadata: null, data: null }],
    [payload(JSON.stringify(full), 'json/protobuf')], [payload(JSON.stringify(full), 'binary/plain')], [payload('{"v":1')],
    [payload('null')], [payload('7')], [payload(Buffer.from([0xff, 0xfe]))], [payload(`\ufeff${JSON.stringify(full)}`)],
    [payload('x'.repeat(longDecisionLimitBytes + 1))],
  ]; // prettier-ignore
  for (const payloads of refused) assert.equal(readSignal(payloads).reading.ok, false);
});
