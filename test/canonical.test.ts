// Canonical JSON and payload hashes (P3): one value has one text, and no value is silently changed.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { ValueProblemError, canonicalize, freeze, payloadLimitBytes } from '../src/core/canonical.ts';
import { hashPayload, hashText, isPayloadHash, sha256Hex, shortHash, shortKey } from '../src/core/hash.ts';
import { jsonValueProblem, utf8Length } from '../src/core/json-value.ts';

interface AcceptVector {
  name: string;
  json: string;
  canonical: string;
  sha256: string;
}

const vectors = new URL('./vectors/', import.meta.url);
const { accept } = JSON.parse(readFileSync(new URL('canonical.json', vectors), 'utf8')) as {
  accept: AcceptVector[];
};

function problemOf(value: unknown): ValueProblemError {
  try {
    freeze(value);
  } catch (error) {
    assert.ok(error instanceof ValueProblemError, String(error));
    return error;
  }
  assert.fail('not refused');
}

test('case 50: every vector has exactly its canonical text and hash', () => {
  assert.ok(accept.length >= 12, 'vectors are missing');
  for (const { name, json, canonical, sha256 } of accept) {
    const text = canonicalize(JSON.parse(json));
    assert.equal(text, canonical, name);
    assert.equal(sha256Hex(text), sha256, name);
    assert.equal(hashPayload(JSON.parse(json)).hash, `sha256:${sha256}`, name);
  }
});

test('case 50: every file of RFC 8785 comes out byte for byte', () => {
  const names = readdirSync(new URL('rfc8785/input/', vectors));
  assert.ok(names.length >= 6, 'vectors are missing');
  assert.deepEqual(readdirSync(new URL('rfc8785/output/', vectors)).sort(), names.sort());
  for (const name of names) {
    const input = readFileSync(new URL(`rfc8785/input/${name}`, vectors), 'utf8');
    const output = readFileSync(new URL(`rfc8785/output/${name}`, vectors));
    assert.deepEqual(Buffer.from(canonicalize(JSON.parse(input))), output, name);
  }
});

test('case 5: each changed payload has another hash', () => {
  const payload = (args: object): string => hashPayload({ tool: 'pay', arguments: args }).hash;
  const hashes = [
    payload({ to: 'A', amount: '40.0', items: [1, 2] }),
    payload({ to: 'A', amount: '40.0', items: [1, 2], urgent: true }), // a field added
    payload({ to: 'A', amount: '40.00', items: [1, 2] }), // another decimal text
    payload({ to: 'A', amount: 40, items: [1, 2] }), // a number instead of text
    payload({ to: 'A', amount: '40.0', items: [2, 1] }), // two elements swapped
    payload({ to: 'A', amount: '40.0', items: [1, 2], note: null }), // null instead of absent
    payload({ to: 'A', amount: '40.0', items: [1, 2], note: '' }),
    payload({ to: 'é', amount: '40.0', items: [1, 2] }), // composed
    payload({ to: 'e\u0301', amount: '40.0', items: [1, 2] }), // decomposed
    hashPayload({ tool: 'pay2', arguments: { to: 'A', amount: '40.0', items: [1, 2] } }).hash,
  ];
  assert.equal(new Set(hashes).size, hashes.length);
});

test('P3: the payload that goes on is the one that the hash is over, cut off from the one that came', () => {
  const args = { list: [1], zero: -0 };
  const { hash, payload } = hashPayload(args);
  args.list.push(2);
  assert.deepEqual(payload, { list: [1], zero: 0 });
  assert.equal(hashText(canonicalize(payload)), hash);
});

test('__proto__ is frozen as a member', () => {
  const { value, text } = freeze(JSON.parse('{"__proto__": {"admin": true}}'));
  assert.equal(text, '{"__proto__":{"admin":true}}');
  assert.deepEqual(Object.keys(value as object), ['__proto__']);
  assert.equal((value as { admin?: unknown }).admin, undefined);
});

test('values outside JSON are refused with their path, never dropped or converted', () => {
  class Money {
    amount = 5;
  }
  class MoneyList extends Array {}
  const cycle: { self?: unknown } = {};
  cycle.self = { cycle };
  const cases: [unknown, string, RegExp][] = [
    [undefined, '', /^at the top: undefined/], [{ a: undefined }, '/a', /at \/a: undefined is not JSON/],
    [[1, undefined], '/1', /undefined/], [{ a: { 'b/c~d': () => 1 } }, '/a/b~1c~0d', /function/],
    [{ toJSON: () => 1 }, '/toJSON', /function/], [[Symbol('s')], '/0', /symbol/], [{ n: 5n }, '/n', /BigInt.*as a string/],
    [NaN, '', /NaN/], [[Infinity], '/0', /Infinity/], [{ a: -Infinity }, '/a', /-Infinity/],
    [{ at: new Date(0) }, '/at', /a Date is not JSON; send it as a string/], [new Map(), '', /a Map/], [new Set(), '', /a Set/],
    [/x/, '', /a RegExp/], [new Error('x'), '', /an? (instance of )?Error/], [Buffer.from('x'), '', /Uint8Array|Buffer/],
    [new Money(), '', /an instance of Money/], [new MoneyList(), '', /an instance of MoneyList/],
    [new Number(5), '', /Number/], [new String('x'), '', /String/], [Object.create({ a: 1 }), '', /prototype of its own/],
    [[1, , 2], '', /hole at index 1/], [new Array(5), '', /hole at index 0/], [new Array(1e9), '', /more than 10000 values/],  
    [Object.assign([1], { note: 1 }), '', /named properties/], [/b/.exec('abc'), '', /named properties/],
    [{ [Symbol('s')]: 1 }, '', /symbol key/], [Object.assign([], { [Symbol('s')]: 1 }), '', /symbol key/],
    [{ get a() { return 1; } }, '/a', /getter/], [Object.defineProperty({}, 'a', { value: 1 }), '/a', /hidden/],
    [cycle, '/self/cycle', /contains itself/], ['\ud800', '', /lone surrogate/], [{ a: ['x\udc00'] }, '/a/0', /lone surrogate/],
    [{ a: { '\ud800': 1 } }, '/a', /the key "\\ud800" holds a lone surrogate/],
  ]; // prettier-ignore
  for (const [value, pointer, message] of cases) {
    const problem = problemOf(value);
    assert.equal(problem.code, 'invalid_value');
    assert.equal(problem.pointer, pointer, problem.message);
    assert.match(problem.message, message);
  }
});

test('plain values of another realm, such as the workflow sandbox, are plain', () => {
  const foreign: unknown = runInNewContext('({a: [1, {b: null}], c: Object.create(null)})');
  assert.equal(canonicalize(foreign), '{"a":[1,{"b":null}],"c":{}}');
  assert.match(problemOf(runInNewContext('({at: new Date(0)})')).message, /at \/at: a Date/);
  assert.match(problemOf(runInNewContext('(class Money {}, new (class Money {})())')).message, /Money/);
});

test('the same object in two places is no cycle', () => {
  const shared = { a: 1 };
  assert.equal(canonicalize([shared, shared]), '[{"a":1},{"a":1}]');
});

test('depth and number of values are bounded, shared objects counted each time', () => {
  const nested = (levels: number): unknown => (levels === 0 ? 1 : [nested(levels - 1)]);
  canonicalize(nested(64));
  assert.match(problemOf(nested(65)).message, /deeper than 64/);
  canonicalize(Array(9_999).fill(0));
  assert.match(problemOf(Array(10_000).fill(0)).message, /more than 10000 values/);
  let bomb: unknown = [1];
  for (let level = 0; level < 40; level += 1) bomb = [bomb, bomb];
  assert.match(problemOf(bomb).message, /more than 10000 values/);
});

test('case 47: a payload over 256 KiB is refused with size and limit, one of exactly that size is not', () => {
  const room = payloadLimitBytes - 2;
  assert.equal(freeze('x'.repeat(room)).text.length, payloadLimitBytes);
  const problem = problemOf('é'.repeat(room / 2) + 'x');
  assert.equal(problem.code, 'payload_too_large');
  assert.match(problem.message, /262145 bytes .* limit is 262144/);
  assert.match(problemOf({ blob: 'x'.repeat(3_000_000) }).message, /3000011 bytes/);
});

const json = fc.jsonValue({ stringUnit: 'binary' });

test('property: the canonical text says the same value, and is its own canonical text', () => {
  fc.assert(
    fc.property(json, (value) => {
      const { value: frozen, text } = freeze(value);
      assert.deepEqual(frozen, JSON.parse(JSON.stringify(value)));
      assert.equal(canonicalize(frozen), text);
    }),
  );
});

test('property: the order of members does not matter, at any depth', () => {
  const reversed = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(reversed);
    if (value === null || typeof value !== 'object') return value;
    return Object.fromEntries(
      Object.entries(value)
        .reverse()
        .map(([name, member]) => [name, reversed(member)]),
    );
  };
  fc.assert(fc.property(json, (value) => assert.equal(canonicalize(reversed(value)), canonicalize(value))));
});

test('property: two texts are equal exactly when the values are', () => {
  fc.assert(
    fc.property(json, json, (one, other) => {
      const same = JSON.stringify(freeze(one).value) === JSON.stringify(freeze(other).value);
      assert.equal(hashPayload(one).hash === hashPayload(other).hash, same);
    }),
  );
});

test('property: whatever a value is, it is frozen or refused, and never runs code of its own', () => {
  const anything = fc.anything({
    withBigInt: true, withDate: true, withMap: true, withSet: true, withSparseArray: true, withNullPrototype: true,
    withObjectString: true, withTypedArray: true, withBoxedValues: true,
  }); // prettier-ignore
  fc.assert(
    fc.property(anything, (value) => {
      const problem = jsonValueProblem(value);
      if (problem === undefined) assert.deepEqual(JSON.parse(canonicalize(value)), freeze(value).value);
      else assert.throws(() => canonicalize(value), ValueProblemError);
    }),
  );
});

test('property: utf8Length counts as an encoder does', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) =>
      assert.equal(utf8Length(text), Buffer.byteLength(text)),
    ),
  );
  assert.equal(utf8Length('\ud800'), Buffer.byteLength('\ud800'));
});

test('hashes are recognised and shortened for people; short keys keep all 256 bits', () => {
  const hash = hashText('{}');
  assert.equal(hash, 'sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a');
  assert.equal(isPayloadHash(hash), true);
  for (const no of [undefined, 5, '', hash.slice(7), hash.toUpperCase(), `${hash}0`, `${hash}\n`]) {
    assert.equal(isPayloadHash(no), false);
  }
  assert.equal(shortHash(hash), '44136fa355b3');
  assert.equal(shortKey('{}'), Buffer.from(hash.slice(7), 'hex').toString('base64url'));
  assert.match(shortKey('root:pay'), /^[A-Za-z0-9_-]{43}$/);
});
