// Names, positions and idempotency keys (P4): a key is a function of (run, position) alone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  childProblem,
  idempotencyKey,
  itemPosition,
  maxPositionLength,
  nameProblem,
  nthUse,
  positionProblem,
  type NameUse,
} from '../src/core/position.ts';

const root = '019d2b1a-7f3e-7c11-9d55-046acc729732';

test('P4: the idempotency key is root and position, and nothing else', () => {
  assert.equal(idempotencyKey(root, 'turn-3/call-0'), `${root}:turn-3/call-0`);
});

test('case 29: a name with ":" is refused, so that no position can pass for another run', () => {
  assert.match(nameProblem('a:b') ?? '', /"a:b".*only letters, digits/);
  assert.match(positionProblem('a:b') ?? '', /"a:b".*only letters, digits/);
});

test('names are letters, digits, ".", "_", "-", joined by "/"', () => {
  for (const name of [
    'refund',
    'pay/item-17',
    'A.b_c-9',
    '...',
    '-',
    'in..doubt',
    'x'.repeat(maxPositionLength),
  ]) {
    assert.equal(nameProblem(name), undefined, name);
    assert.equal(positionProblem(name), undefined, name);
  }
  const refused: [unknown, RegExp][] = [
    ['', /not empty/], ['/a', /empty part/], ['a/', /empty part/], ['a//b', /empty part/], ['.', /part "\."/],
    ['..', /part "\.\."/], ['a/../b', /part "\.\."/], ['a b', /only letters/], ['a~b', /only letters/], ['é', /only letters/],
    ['a\n', /only letters/], ['a%2F', /only letters/], ['x'.repeat(181), /181 characters, the limit is 180/],
    [undefined, /is a string, got undefined/], [null, /got null/], [5, /got number/],
  ]; // prettier-ignore
  for (const [name, message] of refused) {
    assert.match(nameProblem(name) ?? '', message);
    assert.match(positionProblem(name) ?? '', message);
  }
});

test('only the system writes [n], #n and #retry-n', () => {
  const positions = [
    'each[0]', 'each[3]/pay', 'pay#2', 'pay#10', 'pay#2#retry-1', 'each[3]#2/pay', 'each#2[0]', 'turn-2/call-0', 'pay#retry-1/in-doubt',
  ]; // prettier-ignore
  for (const position of positions) {
    assert.equal(positionProblem(position), undefined, position);
    if (/[[#]/.test(position)) assert.match(nameProblem(position) ?? '', /only letters/);
  }
  const refused = [
    'each[]', 'each[-1]', 'each[01]', 'each[1.5]', '[0]', 'a/[0]', '#2', 'pay#1', 'pay#0', 'pay#02', 'pay#', 'pay#retry-0',
    'pay#retry', 'pay#x', 'each[0]x', 'pay#2x', 'each[9999999999]', '..[0]', '.#2',
  ]; // prettier-ignore
  for (const position of refused) assert.notEqual(positionProblem(position), undefined, position);
});

test('items count from 0, uses from 1, and the first use has the bare name', () => {
  assert.equal(itemPosition('each', 0), 'each[0]');
  assert.deepEqual(
    [1, 2, 3].map((n) => nthUse('pay', n)),
    ['pay', 'pay#2', 'pay#3'],
  );
});

const segment = fc.stringMatching(/^[A-Za-z0-9._-]{1,8}$/).filter((text) => text !== '.' && text !== '..');
const name = fc.array(segment, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('/'));

test('property: what the system makes of a good name is a good position, and never a name', () => {
  fc.assert(
    fc.property(name, fc.nat(100_000), fc.integer({ min: 2, max: 100_000 }), (base, index, n) => {
      assert.equal(nameProblem(base), undefined);
      for (const position of [
        itemPosition(base, index),
        nthUse(base, n),
        nthUse(itemPosition(base, index), n),
      ]) {
        assert.equal(positionProblem(position), undefined, position);
        assert.notEqual(nameProblem(position), undefined, position);
      }
    }),
  );
});

test('property: two pairs of run and position never share an idempotency key', () => {
  fc.assert(
    fc.property(fc.uuid(), name, fc.uuid(), name, (rootA, a, rootB, b) => {
      const same = rootA === rootB && a === b;
      assert.equal(idempotencyKey(rootA, a) === idempotencyKey(rootB, b), same);
    }),
  );
});

test('property: any other value is refused or a position, and never throws', () => {
  fc.assert(
    fc.property(fc.oneof(fc.anything(), fc.string({ unit: 'binary' }), fc.string()), (value) => {
      const problem = positionProblem(value);
      if (problem === undefined) assert.match(String(value), /^[A-Za-z0-9._/#[\]-]{1,180}$/);
      else assert.ok(problem.length < 400);
    }),
  );
});

test('P4: no name lies below a child run, nor a new child run above a name', () => {
  const names = new Map<string, NameUse>([
    ['order', { uses: 1, isChild: true }],
    ['a/b', { uses: 1, isChild: true }],
    ['pay', { uses: 1 }],
    ['pay/in-doubt', { uses: 1 }],
    ['tell/first', { uses: 1 }],
  ]);
  const refused: [string, boolean, RegExp][] = [
    ['order/pay', false, /"order\/pay" lies below the child run "order".*rename it/],
    ['order/pay/x', true, /below the child run "order"/],
    ['a/b/c', false, /below the child run "a\/b"/],
    ['a', true, /child run "a" would be below it, where "a\/b" is; rename the child run/],
    ['tell', true, /where "tell\/first" is/],
  ];
  for (const [name, isChild, problem] of refused)
    assert.match(childProblem(names, name, isChild) ?? '', problem);
  const taken: [string, boolean][] = [
    ['order', false], ['order', true], ['orders/pay', false], ['a', false], ['a/c', true], ['tell', false],
    ['tell/first/x', true], ['pay', true], ['pay/again', false],
  ]; // prettier-ignore
  for (const [name, isChild] of taken) assert.equal(childProblem(names, name, isChild), undefined, name);
});
