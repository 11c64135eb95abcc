// Templates: what they bring in is data, with its type, and is never read again.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Json } from '../src/core/json.ts';
import type { Scope } from '../src/core/recording.ts';
import { resolve, resolveText } from '../src/core/spec/template.ts';
import { parseTemplate, referencesIn } from '../src/core/spec/template-syntax.ts';

const scope: Scope = {
  input: {
    orderId: 'ord-1001',
    count: 3,
    express: false,
    nothing: null,
    lines: [{ sku: 'a', 'unit price': '4.00' }, { sku: 'b' }],
    'a"b': 1,
    evil: '${{ input.orderId }}',
  },
  steps: {
    order: { output: { total: '12.50', '0': 'zero' } },
    'sign-off': { output: { approved: true } },
    'a/b.c': { output: 7 },
  },
};

function valueOf(value: Json): Json {
  const resolved = resolve(value, scope);
  assert.ok('value' in resolved, JSON.stringify(resolved));
  return resolved.value;
}

function problemOf(value: Json, within: Scope = scope): string {
  const resolved = resolve(value, within);
  assert.ok('problem' in resolved, JSON.stringify(resolved));
  assert.equal(resolved.problem.code, 'unresolved_reference');
  return resolved.problem.message;
}

test('a string that is one template is the value itself, with its type', () => {
  assert.equal(valueOf('${{ input.count }}'), 3);
  assert.equal(valueOf('${{input.express}}'), false);
  assert.equal(valueOf('${{ input.nothing }}'), null);
  assert.deepEqual(valueOf('${{ input.lines }}'), [{ sku: 'a', 'unit price': '4.00' }, { sku: 'b' }]);
  assert.deepEqual(valueOf('${{ input }}'), scope.input);
  assert.equal(valueOf('${{\n steps.order.output.total\n}}'), '12.50');
});

test('paths: members, positions in dotted and bracket form, quoted names', () => {
  assert.equal(valueOf('${{ input.lines.0.sku }}'), 'a');
  assert.equal(valueOf('${{ input.lines[1].sku }}'), 'b');
  assert.equal(valueOf('${{ input.lines[0]["unit price"] }}'), '4.00');
  assert.equal(valueOf("${{ input.lines[0]['unit price'] }}"), '4.00');
  assert.equal(valueOf('${{ input["a\\"b"] }}'), 1);
  assert.equal(valueOf('${{ steps["sign-off"].output.approved }}'), true);
  assert.equal(valueOf('${{ steps["a/b.c"].output }}'), 7);
  assert.equal(valueOf('${{ steps.order.output.0 }}'), 'zero');
});

test('inside text, strings, numbers and booleans become text, and nothing else does', () => {
  assert.equal(valueOf('Refund $${{ steps.order.output.total }}!'), 'Refund $12.50!');
  assert.equal(valueOf('${{ input.count }}${{ input.express }}'), '3false');
  assert.equal(valueOf('a } b }} c $ {{ d $${ e'), 'a } b }} c $ {{ d $${ e');
  assert.equal(
    problemOf({ note: ['x', 'for ${{ input.lines }}'] }),
    'note[1]: ${{ input.lines }} is an array; inside text only a string, a number or a boolean can stand',
  );
  assert.match(problemOf('x ${{ input.nothing }}'), /^\$\{\{ input\.nothing \}\} is null;/);
  assert.match(problemOf('x ${{ input.lines[0] }}'), /is an object;/);
});

test('a literal ${{ is written as a quoted text in a template', () => {
  assert.equal(valueOf('${{ "${{" }} x }}'), '${{ x }}');
  assert.equal(valueOf("${{ 'a' }}b"), 'ab');
});

test('what a template brings in is never read for templates', () => {
  assert.equal(valueOf('${{ input.evil }}'), '${{ input.orderId }}');
  assert.equal(valueOf('> ${{ input.evil }}'), '> ${{ input.orderId }}');
});

test('what is not there is refused by name, and only own members are there', () => {
  assert.equal(
    problemOf({ amount: '${{ input.amount }}' }),
    'amount: ${{ input.amount }}: input is an object without "amount"',
  );
  assert.equal(
    problemOf('${{ steps.later.output }}'),
    '${{ steps.later.output }}: steps is an object without "later"',
  );
  assert.equal(
    problemOf('${{ input.lines[2].sku }}'),
    '${{ input.lines[2].sku }}: input.lines is an array without "2"',
  );
  assert.equal(
    problemOf('${{ input.orderId.length }}'),
    '${{ input.orderId.length }}: input.orderId is a string without "length"',
  );
  assert.equal(
    problemOf('${{ input.nothing.x }}'),
    '${{ input.nothing.x }}: input.nothing is null without "x"',
  );
  for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
    problemOf(`\${{ input.${name} }}`);
    problemOf(`\${{ steps.${name}.output }}`);
    problemOf(`\${{ input.lines.${name} }}`);
  }
  problemOf('${{ input.lines.length }}');
  const own = { input: JSON.parse('{"__proto__": {"x": 1}, "constructor": 2}') as Json, steps: {} };
  assert.deepEqual(resolve(['${{ input.__proto__.x }}', '${{ input.constructor }}'], own), { value: [1, 2] });
});

test('syntax that is not a path is told with what to write', () => {
  assert.match(
    problemOf('${{ steps.sign-off.output }}'),
    /a name with "-" needs brackets, such as steps\["sign-off"\]\.output/,
  );
  assert.match(problemOf('x ${{ input.a'), /is not closed by "}}"/);
  assert.match(problemOf('${{ input.a + 1 }}'), /cannot read "\+ 1"/);
  assert.match(problemOf('${{ env.SECRET }}'), /unknown name "env"; a template starts at input or steps/);
  for (const text of [
    '${{ }}',
    '${{ . }}',
    '${{ input. }}',
    '${{ input.lines[01] }}',
    '${{ input[a] }}',
    '${{ input["a }}',
    '${{ "\\x" }}',
    '${{ input.a.-1 }}',
    '${{ a b }}',
  ]) {
    problemOf(text);
  }
});

test('a title is always text', () => {
  assert.deepEqual(resolveText('${{ input.count }}', scope), { text: '3' });
  assert.deepEqual(resolveText('Refund ${{ input.orderId }}', scope), { text: 'Refund ord-1001' });
  assert.ok('problem' in resolveText('${{ input.lines }}', scope));
});

test('templates cannot multiply data beyond what a payload can hold', () => {
  const large = { input: { text: 'x'.repeat(200_000), list: ['x'.repeat(200_000)] }, steps: {} };
  for (const template of ['${{ input.text }}', 'a ${{ input.text }}', '${{ input.list }}']) {
    assert.ok('value' in resolve([template], large), template);
    const resolved = resolve(Array<Json>(5000).fill(template), large);
    assert.ok('problem' in resolved, template);
    assert.equal(resolved.problem.code, 'payload_too_large');
  }
});

test('depth that only a start by hand can bring is a problem, not a throw', () => {
  let deep: Json = 'x';
  for (let level = 0; level < 100_000; level += 1) deep = [deep];
  assert.ok('problem' in resolve(deep, scope));
  assert.ok('problem' in resolve('${{ input }}', { input: deep, steps: {} }));
});

test('values without templates come out as they went in', () => {
  const json = fc.jsonValue({ maxDepth: 6 }) as fc.Arbitrary<Json>;
  fc.assert(
    fc.property(json, (value) => {
      fc.pre(!JSON.stringify(value).includes('${{'));
      assert.deepEqual(resolve(value, scope), { value });
    }),
  );
  const own = JSON.parse('{"a": {"__proto__": {"polluted": true}}}') as Json;
  assert.equal(JSON.stringify(valueOf(own)), '{"a":{"__proto__":{"polluted":true}}}');
  assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
});

test('any member of any input can be named by brackets, and comes out unchanged', () => {
  const json = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<Json>;
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: 'binary' }), { minLength: 1, maxLength: 4 }),
      json,
      (names, value) => {
        const input = names.reduceRight<Json>((inner, name) => ({ [name]: inner }), value);
        // A computed key is an own member, for __proto__ too.
        const path = names.map((name) => `[${JSON.stringify(name)}]`).join('');
        assert.deepEqual(resolve(`\${{ input${path} }}`, { input, steps: {} }), { value });
      },
    ),
  );
});

test('no text at all makes the reader of templates throw', () => {
  const piece = fc.constantFrom(
    '${{',
    '}}',
    ' ',
    'input',
    'steps',
    '.',
    '[',
    ']',
    '"',
    "'",
    '\\',
    '-',
    '0',
    'a',
    '\n',
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
      const text = pieces.join('');
      const parsed = parseTemplate(text);
      assert.ok('parts' in parsed || parsed.problem.length > 0);
      const resolved = resolve(text, scope);
      assert.ok('value' in resolved || resolved.problem.message.length > 0);
    }),
    { numRuns: 500 },
  );
});

test('the loader sees every reference with its place', () => {
  const value: Json = { a: ['x ${{ input.b }} ${{ steps.order.output.total }}', 1], '${{ c }}': '${{ d' };
  const found = referencesIn(value, ['with']);
  assert.deepEqual(found.slice(0, 3), [
    { path: ['with', 'a', 0], reference: ['input', 'b'] },
    { path: ['with', 'a', 0], reference: ['steps', 'order', 'output', 'total'] },
    { path: ['with', '${{ c }}'], inKey: true },
  ]);
  assert.equal(found.length, 4);
  assert.match(found[3]?.problem ?? '', /is not closed/);
});
