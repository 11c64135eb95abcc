// A run's input is checked against the spec's JSON Schema, and the schema when the spec is loaded.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inputProblems } from '../src/core/spec/input.ts';
import { formatSpecProblem, parseSpec } from '../src/core/spec/load.ts';

function problemsOf(text: string): string[] {
  const parsed = parseSpec(text, { file: 'bad.yaml', tools: [] });
  assert.ok('problems' in parsed, 'the spec was taken');
  return parsed.problems.map(formatSpecProblem);
}

test('an input schema that is not JSON Schema is a problem at its place', () => {
  const schema = (text: string) =>
    problemsOf(`version: 1\nname: a\ninput: ${text}\nsteps: [{ id: a, approval: { title: b } }]\n`);
  assert.deepEqual(
    schema('{ type: objct, properties: { a: { minimum: "3", pattern: "(" } }, requried: [a] }'),
    [
      'bad.yaml:3:65 error input.properties.a.pattern: invalid regular expression: /(/u: Unterminated group',
      'bad.yaml:3:74 error input: unknown keyword "requried"; this is a JSON Schema (draft 2020-12)',
    ],
  );
  assert.deepEqual(schema('{ type: objct, properties: { a: { minimum: "3" } }, required: a }'), [
    'bad.yaml:3:16 error input.type: must be one of "array","boolean","integer","null","number","object","string", got "objct"',
    'bad.yaml:3:51 error input.properties.a.minimum: must be a number, got "3"',
    'bad.yaml:3:70 error input.required: must be an array, got "a"',
  ]);
  assert.deepEqual(schema('{ $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/a" } } }'), [
    'bad.yaml:3:8 error input: not a JSON Schema that can be used: it refers to itself without end',
  ]);
  assert.deepEqual(schema('{ $ref: "https://example.org/schema", format: phone }'), [
    'bad.yaml:3:16 error input["$ref"]: must point into this schema, such as #/$defs/line, got "https://example.org/schema"',
    'bad.yaml:3:54 error input.format: must be one of date, date-time, duration, email, ipv4, ipv6, uri, uuid, got "phone"',
  ]);
  assert.deepEqual(schema('text'), ['bad.yaml:3:8 error input: must be an object, got "text"']);
});

test('a run input that breaks the schema is told field by field', () => {
  const schema = {
    type: 'object',
    required: ['orderId', 'amount'],
    additionalProperties: false,
    properties: {
      orderId: { type: 'string', minLength: 1 },
      amount: { type: 'string', pattern: '^[0-9]+$' },
      reason: { type: 'string' },
    },
  };
  assert.deepEqual(inputProblems(schema, { orderId: 'ord-1001', amount: '40', reason: 'broken' }), []);
  assert.deepEqual(inputProblems(schema, {}), ['input.orderId: is required', 'input.amount: is required']);
  assert.deepEqual(inputProblems(schema, { orderId: '', amount: 40, extra: 1 }), [
    'input.extra: is not allowed here',
    'input.orderId: must NOT have fewer than 1 characters, got ""',
    'input.amount: must be a string, got 40 (number)',
  ]);
  assert.deepEqual(inputProblems(schema, null), ['input: must be an object, got null']);
  assert.deepEqual(inputProblems(undefined, null), []);
});

test('an input schema is read as JSON Schema says, with nothing passed over', () => {
  assert.deepEqual(inputProblems({ required: ['constructor', 'a'] }, {}), [
    'input.constructor: is required',
    'input.a: is required',
  ]);
  assert.deepEqual(inputProblems({ properties: { at: { format: 'date-time' } } }, { at: 'soon' }), [
    'input.at: must match format "date-time", got "soon"',
  ]);
  assert.deepEqual(inputProblems({ const: { a: [1] } }, { a: [1] }), []);
  assert.deepEqual(inputProblems({ enum: [1, 'x', null] }, 2), [
    'input: must be one of 1,"x",null, got 2 (number)',
  ]);
  assert.deepEqual(inputProblems({ type: 'array', items: { $ref: '#' } }, [[['x']]]), [
    'input[0][0][0]: must be an array, got "x"',
  ]);
  assert.deepEqual(inputProblems({ if: { required: ['a'] }, then: { required: ['b c'] } }, { a: 1 }), [
    'input["b c"]: is required',
    'input: must match "then" schema, got an object',
  ]);
  // No default is filled in: what was sent is what the run has.
  const input = {};
  assert.deepEqual(inputProblems({ properties: { a: { default: 1 } }, required: ['a'] }, input), [
    'input.a: is required',
  ]);
  assert.deepEqual(input, {});
});

test('a check without end is stopped, and is a problem of the input', () => {
  assert.deepEqual(inputProblems({ pattern: '^(a+)+$' }, `${'a'.repeat(60)}!`), [
    "input: cannot be checked against the spec's schema: it takes longer than 2000 ms",
  ]);
  const doubling = Object.fromEntries(
    Array.from({ length: 60 }, (_, level) => {
      const next = { $ref: `#/$defs/d${level + 1}` };
      return [`d${level}`, level === 59 ? {} : { allOf: [next, next] }];
    }),
  );
  assert.deepEqual(inputProblems({ $defs: doubling, $ref: '#/$defs/d0' }, 1), [
    "input: cannot be checked against the spec's schema: it takes longer than 2000 ms",
  ]);
  assert.deepEqual(inputProblems({ minimum: 1 }, 1), []);
});
