// Approval keys: each gate has exactly one, it is exact for any workflow id, and it needs no escaping.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  approvalKey,
  keyMatches,
  maxApprovalKeyLength,
  parseApprovalKey,
  workflowIdProblem,
} from '../src/core/approval-key.ts';
import { utf8Length } from '../src/core/json-value.ts';
import { positionProblem } from '../src/core/position.ts';

const root = '019d2b1a-7f3e-7c11-9d55-046acc729732';
const otherRoot = '019d2b1a-7f3e-7c11-9d55-046acc729733';

test('the key of a plain workflow id is readable', () => {
  const key = (workflowId: string, position: string): string => approvalKey({ workflowId, position, root });
  assert.equal(key('refund-ord-1001', 'refund'), 'refund-ord-1001.refund.046acc729732');
  assert.equal(key('order.v2', 'turn-3/call-0'), 'order.v2.turn-3~2Fcall-0.046acc729732');
  assert.equal(key('order', 'each[3]/pay#2'), 'order.each~5B3~5D~2Fpay~232.046acc729732');
  assert.equal(key('order', 'v1.2'), 'order.v1~2E2.046acc729732');
  assert.equal(key('käse 7', 'pay'), 'k~C3~A4se~207.pay.046acc729732');
});

// The ids of case 48.
const ids = [
  'a+b/c=d%e#f&g?h~i', 'with spaces ', 'a.b.c', '.', '..', '~', '~~', '~~abc', '%2F', "!*'()", '🙂🏽', 'مرحبا', '\u202eevil',
  '\ufeffbom', 'é', 'e\u0301', '\u0000\n', 'refund.pay.046acc729732', 'x'.repeat(255), '/'.repeat(255), '.'.repeat(255),
  '\u20ac'.repeat(85), '🙂'.repeat(63),
]; // prettier-ignore

test('case 48: every workflow id comes back exactly, through a URL too', () => {
  for (const workflowId of ids) {
    assert.equal(workflowIdProblem(workflowId), undefined, workflowId);
    const key = approvalKey({ workflowId, position: 'pay/item-1', root });
    assert.deepEqual(parseApprovalKey(key), {
      workflowId,
      position: 'pay/item-1',
      rootSuffix: '046acc729732',
    });
    assert.match(key, /^[A-Za-z0-9._~-]+$/);
    const url = new URL(`/approvals/${key}/approve`, 'http://localhost');
    assert.equal(url.pathname.split('/')[2], key);
  }
});

test('the longest key has at most 640 characters, and a long id that fits stays readable', () => {
  const worst = ['/', '\u0000', '🙂', '\u20ac', '.', 'é'].map((unit) => {
    const count = Math.floor(255 / utf8Length(unit));
    return unit.repeat(count) + 'x'.repeat(255 - count * utf8Length(unit));
  });
  const positions = [
    'a',
    'x'.repeat(180),
    `${'a/'.repeat(89)}aa`,
    `a[0]${'/a[0]'.repeat(35)}`,
    '...'.repeat(60),
  ];
  for (const workflowId of [...worst, ...ids]) {
    for (const position of positions) {
      const key = approvalKey({ workflowId, position, root });
      assert.ok(key.length <= maxApprovalKeyLength, `${key.length} characters`);
      assert.deepEqual(parseApprovalKey(key), { workflowId, position, rootSuffix: '046acc729732' });
    }
  }
  const long = `${'order/'.repeat(40)}end`;
  assert.ok(approvalKey({ workflowId: long, position: 'pay', root }).startsWith('order~2Forder~2F'));
});

test('a workflow id that could not be addressed is refused before it is used', () => {
  assert.match(workflowIdProblem('x'.repeat(256)) ?? '', /256 bytes in UTF-8, the limit is 255/);
  assert.match(workflowIdProblem('é'.repeat(128)) ?? '', /256 bytes/);
  assert.match(workflowIdProblem('') ?? '', /not empty/);
  assert.match(workflowIdProblem('a\ud800') ?? '', /lone surrogate/);
  assert.match(workflowIdProblem(undefined) ?? '', /a string/);
  assert.throws(() => approvalKey({ workflowId: 'x'.repeat(256), position: 'pay', root }), RangeError);
  assert.throws(() => approvalKey({ workflowId: 'a', position: 'a:b', root }), /only letters/);
  for (const bad of ['', 'root', root.toUpperCase(), `${root}0`, root.replaceAll('-', '')]) {
    assert.throws(() => approvalKey({ workflowId: 'a', position: 'pay', root: bad }), /root is a UUID/);
  }
});

test('case 2: a key with another id, position or root names another gate or none', () => {
  const gate = { workflowId: 'refund-ord-1001', position: 'refund', root };
  const key = approvalKey(gate);
  assert.equal(keyMatches(key, gate), true);
  assert.equal(keyMatches(key, { workflowId: gate.workflowId, root }), true);
  assert.equal(keyMatches(key, { ...gate, workflowId: 'refund-ord-1002' }), false);
  assert.equal(keyMatches(key, { ...gate, position: 'refund#2' }), false);
  assert.equal(keyMatches(key, { ...gate, root: otherRoot }), false);
  assert.equal(keyMatches(key, { ...gate, root: 'no root' }), false);
  assert.equal(keyMatches(undefined, gate), false);
});

test('what is not exactly a key is no key, and never throws', () => {
  const texts: unknown[] = [
    undefined, null, 5, {}, [], '', '.', '..', 'a', 'a.pay', 'a.pay.046acc72973', 'a.pay.046ACC729732', '.pay.046acc729732',
    'a..046acc729732', 'a.pay.046acc729732 ', ' a.pay.046acc729732', 'a.pay.046acc729732\n', 'a/b.pay.046acc729732',
    'a%2Fb.pay.046acc729732', 'a.pay/x.046acc729732', 'a.pay:x.046acc729732', 'a.pay~3Ax.046acc729732', // position with ":"
    'a~2fb.pay.046acc729732', 'a~62.pay.046acc729732', 'a~.pay.046acc729732', 'a~2.pay.046acc729732', 'a~zz.pay.046acc729732',
    'a~C3.pay.046acc729732', 'a~ED~A0~80.pay.046acc729732', // cut, and a surrogate in UTF-8
    '~~YQ.pay.046acc729732', '~~.pay.046acc729732', '~~YR.pay.046acc729732', '~~Y.pay.046acc729732', // base64 where none is due
    'a.~~cGF5.046acc729732', 'a.~2E~2E.046acc729732', `${'x'.repeat(256)}.pay.046acc729732`, `a.${'p'.repeat(181)}.046acc729732`,
    'x'.repeat(1_000_000),
  ]; // prettier-ignore
  for (const text of texts) assert.equal(parseApprovalKey(text), undefined, String(text).slice(0, 60));
});

test('base64 with other leftover bits, which decodes to the same id, is no key', () => {
  const workflowId = '/'.repeat(254); // 254 = 3 * 84 + 2: the last digit has two unused bits
  const key = approvalKey({ workflowId, position: 'pay', root });
  assert.ok(key.startsWith('~~Ly8v'));
  const last = key.indexOf('.') - 1;
  const twins = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_']
    .map((digit) => key.slice(0, last) + digit + key.slice(last + 1))
    .filter((twin) => parseApprovalKey(twin)?.workflowId === workflowId);
  assert.deepEqual(twins, [key]);
});

const character = fc.oneof(
  fc.constantFrom(..."./~%#[]!*'() \u0000é€🙂"),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
);
const workflowId = fc
  .oneof(fc.string({ minLength: 1 }), fc.array(character, { minLength: 1, maxLength: 255 }).map((parts) => parts.join('')))
  .filter((text) => workflowIdProblem(text) === undefined); // prettier-ignore
const segment = fc.stringMatching(/^[A-Za-z0-9._-]{1,12}(\[(0|[1-9]\d?)\])?(#[2-9])?(#retry-[1-9])?$/);
const position = fc
  .array(segment, { minLength: 1, maxLength: 15 })
  .map((parts) => parts.join('/'))
  .filter((text) => positionProblem(text) === undefined);

test('property: a key is URL-safe, short, and says exactly which gate it names', () => {
  fc.assert(
    fc.property(workflowId, position, fc.uuid(), (id, place, anyRoot) => {
      const key = approvalKey({ workflowId: id, position: place, root: anyRoot });
      assert.match(key, /^[A-Za-z0-9._~-]{16,640}$/);
      assert.equal(encodeURIComponent(key), key);
      assert.deepEqual(parseApprovalKey(key), {
        workflowId: id,
        position: place,
        rootSuffix: anyRoot.slice(-12),
      });
    }),
    { numRuns: 500 },
  );
});

test('property: two gates never share a key', () => {
  fc.assert(
    fc.property(workflowId, position, workflowId, position, (idA, placeA, idB, placeB) => {
      const same = idA === idB && placeA === placeB;
      const a = approvalKey({ workflowId: idA, position: placeA, root });
      assert.equal(a === approvalKey({ workflowId: idB, position: placeB, root }), same);
    }),
  );
  // The border between id and position cannot be shifted.
  const shifted = approvalKey({ workflowId: 'a', position: 'b.c', root });
  assert.notEqual(shifted, approvalKey({ workflowId: 'a.b', position: 'c', root }));
});

test('property: a key with one character changed is another gate or no key, never the same gate', () => {
  fc.assert(
    fc.property(
      workflowId,
      position,
      fc.nat(),
      fc.constantFrom(...'aB3.~-_2EFf'),
      (id, place, at, replacement) => {
        const gate = { workflowId: id, position: place, root };
        const key = approvalKey(gate);
        const index = at % key.length;
        const changed = key.slice(0, index) + replacement + key.slice(index + 1);
        assert.equal(keyMatches(changed, gate), changed === key);
      },
    ),
    { numRuns: 1000 },
  );
});

test('property: whatever parses is the only key of its gate', () => {
  const text = fc.tuple(fc.stringMatching(/^[a-c.~0-9A-F]{1,12}$/), fc.stringMatching(/^[a-c~0-9A-F]{1,8}$/));
  let parsedCount = 0;
  fc.assert(
    fc.property(text, ([idPart, positionPart]) => {
      const key = `${idPart}.${positionPart}.046acc729732`;
      const parsed = parseApprovalKey(key);
      if (parsed === undefined) return;
      parsedCount += 1;
      assert.equal(approvalKey({ ...parsed, root }), key);
    }),
    { numRuns: 5000 },
  );
  assert.ok(parsedCount > 100, `only ${parsedCount} of 5000 texts were keys`);
});

test('property: no value makes the parser throw', () => {
  fc.assert(
    fc.property(fc.oneof(fc.anything(), fc.string({ unit: 'binary' })), (value) => {
      assert.equal(parseApprovalKey(value), undefined);
    }),
  );
});
