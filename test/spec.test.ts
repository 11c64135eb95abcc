// Specs are checked before anything starts: every problem at once, each at its line and column.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { z } from 'zod';
import { checkSpecObject, formatSpecProblem, parseSpec } from '../src/core/spec/load.ts';
import type { Tool } from '../src/tool.ts';

const tools: Tool[] = [
  {
    name: 'payments.refund',
    arguments: z.strictObject({ order: z.string(), amount: z.string() }),
    idempotency: 'key',
    requiresApproval: true,
    run: async () => null,
  },
  {
    name: 'orders.note',
    arguments: z.strictObject({ text: z.string() }),
    idempotency: 'key',
    run: async () => null,
  },
];

function problemsOf(text: string): string[] {
  const parsed = parseSpec(text, { file: 'bad.yaml', tools });
  assert.ok('problems' in parsed, 'the spec was taken');
  return parsed.problems.map(formatSpecProblem);
}

/** A good spec with this as its steps. */
function withSteps(steps: string): string {
  return `version: 1\nname: a\nsteps:\n${steps}`;
}

const exampleText = readFileSync(new URL('../examples/refund/specs/refund.yaml', import.meta.url), 'utf8');

test('the refund example is a spec, and goes on exactly as written', () => {
  const parsed = parseSpec(exampleText, { file: 'refund.yaml', tools });
  assert.ok('spec' in parsed, JSON.stringify(parsed));
  assert.equal(parsed.spec.name, 'refund');
  assert.match(parsed.hash, /^sha256:[0-9a-f]{64}$/);
  assert.deepEqual(parsed.spec.steps, [
    {
      id: 'refund',
      tool: 'payments.refund',
      with: { order: '${{ input.orderId }}', amount: '${{ input.amount }}' },
      before: { approve: { title: 'Refund ${{ input.amount }} for order ${{ input.orderId }}', ttl: '7d' } },
    },
  ]);
});

test('a spec that is not YAML', () => {
  assert.deepEqual(problemsOf('version: 1\nname: [a\nsteps: }\n'), [
    'bad.yaml:3:1 error not valid YAML: flow sequence in block collection must be sufficiently indented and end with a ]',
    'bad.yaml:3:8 error not valid YAML: unexpected flow-map-end token in YAML stream: "}"',
  ]);
  assert.deepEqual(problemsOf('version: 1\nsteps:\n\t- id: a\n'), [
    'bad.yaml:3:1 error not valid YAML: tabs are not allowed as indentation',
  ]);
});

test('a spec with unknown keys, each at the key', () => {
  const text = `version: 1
name: a
owner: me
steps:
  - id: note
    tool: orders.note
    wiht: { text: hello }
  - id: ask
    approval:
      title: Go on?
      approvers: [finance]
  - id: pay
    tool: payments.refund
    before: { approve: {}, after: 1 }
`;
  assert.deepEqual(problemsOf(text), [
    'bad.yaml:3:1 error the spec: unknown key "owner"; a spec has version, name, description, input, steps, output',
    'bad.yaml:7:5 error step "note": unknown key "wiht"; a tool step has id, tool, with, before',
    'bad.yaml:11:7 error step "ask": approval: unknown key "approvers"; approval has title, ttl',
    'bad.yaml:14:28 error step "pay": before: unknown key "after"; before has approve',
  ]);
});

test('a spec with a duplicate step id', () => {
  const text = withSteps(
    '  - { id: ask, approval: { title: One } }\n  - { id: ask, approval: { title: Two } }\n',
  );
  assert.deepEqual(problemsOf(text), [
    'bad.yaml:5:11 error step "ask": id: the id is taken by steps[0]; each step has its own',
  ]);
});

test('a spec with an unknown tool', () => {
  assert.deepEqual(problemsOf(withSteps('  - id: pay\n    tool: payments.refnd\n')), [
    'bad.yaml:5:11 error step "pay": tool: unknown tool "payments.refnd"; the config has orders.note, payments.refund',
  ]);
});

test('a spec with bad names', () => {
  assert.deepEqual(problemsOf('version: 1\nname: a/b\nsteps:\n  - { id: a:b, approval: { title: x } }\n'), [
    'bad.yaml:2:7 error name: a spec\'s name has no "/"; rename "a/b"',
    'bad.yaml:4:11 error steps[0].id: name "a:b": a part has only letters, digits, ".", "_" and "-"; rename "a:b"',
  ]);
  for (const id of ['', 'a//b', 'a#2', 'each[3]', '__proto__', 'refund/in-doubt', 'x'.repeat(181), 'é']) {
    const problems = problemsOf(withSteps(`  - { id: ${JSON.stringify(id)}, approval: { title: x } }\n`));
    assert.equal(problems.length, 1, id);
    assert.match(problems[0] ?? '', /^bad\.yaml:4:11 error steps\[0\]\.id: /, id);
  }
  for (const id of ['refund', 'both/a/pay', 'sign-off', 'v1.2_x', 'constructor', 'no']) {
    assert.ok(
      'spec' in parseSpec(withSteps(`  - { id: ${id}, approval: { title: x } }\n`), { file: 'a', tools }),
      id,
    );
  }
});

test('a tool that requires approval without a gate is refused before anything runs', () => {
  assert.deepEqual(problemsOf(withSteps('  - id: pay\n    tool: payments.refund\n')), [
    'bad.yaml:5:11 error step "pay": tool: the tool "payments.refund" requires approval; add before: {approve: {}}',
  ]);
});

test('missing and ill-typed parts, all at once and in the order of the text', () => {
  const text = `version: 2
steps:
  - id: 5
    approval: { title: "", ttl: 7 days }
  - tool: [orders.note]
    with: text
  - title: x
  - id: two
    tool: orders.note
    approval: { title: x }
  -
description: 7
`;
  assert.deepEqual(problemsOf(text), [
    'bad.yaml:1:1 error name: is required',
    'bad.yaml:1:10 error version: must be 1, got 2 (number)',
    'bad.yaml:3:9 error steps[0].id: must be a string, got 5 (number)',
    'bad.yaml:4:24 error steps[0].approval.title: must not be empty',
    'bad.yaml:4:33 error steps[0].approval.ttl: must be a duration like 500ms, 30s, 10m, 2h, 7d or 1h30m, more than 0, at most 3650d, got "7 days"',
    'bad.yaml:5:5 error steps[1].id: is required',
    'bad.yaml:5:11 error steps[1].tool: must be a string, got an array',
    'bad.yaml:6:11 error steps[1].with: must be an object, got "text"',
    'bad.yaml:7:5 error steps[2]: a step needs one of the keys tool, approval',
    'bad.yaml:7:5 error steps[2]: unknown key "title"; a step has id, tool, with, before, approval',
    'bad.yaml:10:5 error step "two": a step has tool or approval, not both',
    'bad.yaml:11:4 error steps[4]: must be an object, got null',
    'bad.yaml:12:14 error description: must be a string, got 7 (number)',
  ]);
  assert.deepEqual(problemsOf('version: 1\nname: a\nsteps: []\n'), [
    'bad.yaml:3:8 error steps: must not be empty',
  ]);
  assert.deepEqual(problemsOf('- a\n'), ['bad.yaml:1:1 error the spec: must be an object, got an array']);
});

test('templates: syntax, unknown names, and references to steps that are not earlier ones', () => {
  const text = `version: 1
name: a
steps:
  - id: first
    tool: orders.note
    with:
      a: "\${{ steps.second.output }}"
      b: ["\${{ env.HOME }}"]
      "\${{ input.key }}": 1
  - id: second
    approval: { title: "\${{ steps.first.result }} \${{ input.a" }
output: "\${{ steps.third.output.x }}"
`;
  assert.deepEqual(problemsOf(text), [
    'bad.yaml:7:10 error step "first": with.a: steps.second: step "second" does not come before this one; earlier steps: none',
    'bad.yaml:8:11 error step "first": with.b[0]: ${{ env.HOME }}: unknown name "env"; a template starts at input or steps',
    'bad.yaml:9:7 error step "first": with: a template in a key is not resolved; rename the key',
    'bad.yaml:11:24 error step "second": approval.title: ${{ input.a: "${{" is not closed by "}}"; a literal "${{" is written ${{ "${{" }}',
    'bad.yaml:12:9 error output: steps.third: there is no step "third"; earlier steps: first, second',
  ]);
});

test('a value is JSON: what YAML has beyond that is refused where it stands', () => {
  const text = `version: 1
name: &anchor a
steps:
  - id: note
    tool: orders.note
    with:
      a: *anchor
      b: .inf
      c: 12345678901234567890
      d: 0x1F
      e: !!binary aGk=
      f: "\\uD800"
      g: 0.1000000000000000055
      h: .nan
      <<: { x: 1 }
      i: 1
      i: 2
`;
  assert.deepEqual(problemsOf(text), [
    'bad.yaml:7:10 error alias "*anchor": write the value out; a spec has no aliases',
    'bad.yaml:8:10 error ".inf" is not a JSON number; write it in decimal digits, or quote it to make it a string',
    'bad.yaml:9:10 error the integer 12345678901234567890 is beyond ±9007199254740991, where numbers lose digits; send it as a string',
    'bad.yaml:10:10 error "0x1F" is not a JSON number; write it in decimal digits, or quote it to make it a string',
    'bad.yaml:11:19 error tag "tag:yaml.org,2002:binary": a spec has no tags; quote a string',
    'bad.yaml:12:10 error the string holds a lone surrogate; it is not valid Unicode text',
    'bad.yaml:13:10 error the number 0.1000000000000000055 would become 0.1; send it as a string',
    'bad.yaml:14:10 error ".nan" is not a JSON number; write it in decimal digits, or quote it to make it a string',
    'bad.yaml:15:7 error the merge key "<<": write the keys out; a spec has no merge keys',
    'bad.yaml:17:7 error the key "i" is there twice; take one out',
  ]);
  assert.deepEqual(problemsOf('? [a]\n: 1\n'), ['bad.yaml:1:3 error a key must be plain or quoted text']);
  assert.deepEqual(problemsOf(''), ['bad.yaml:1:1 error the file is empty']);
  assert.deepEqual(problemsOf('a: 1\n---\nb: 2\n'), [
    'bad.yaml:2:1 error a second document; a spec file holds exactly one',
  ]);
  assert.deepEqual(problemsOf('%YAML 1.1\n---\na: no\n'), [
    'bad.yaml:1:1 error a spec is YAML 1.2; take out the %YAML line',
  ]);
});

test('YAML 1.2: no, dates and numbers with underscores are strings; own __proto__ keys stay', () => {
  const text = withSteps(
    '  - id: note\n    tool: orders.note\n    with: { a: no, b: 2024-01-01, c: 1_000, d: 1e2, e: ~, __proto__: { x: 1 } }\n',
  );
  const parsed = parseSpec(text, { file: 'a.yaml', tools });
  assert.ok('spec' in parsed, JSON.stringify(parsed));
  const [step] = parsed.spec.steps;
  assert.ok(step !== undefined && 'with' in step);
  assert.equal(
    JSON.stringify(step.with),
    '{"a":"no","b":"2024-01-01","c":"1_000","d":100,"e":null,"__proto__":{"x":1}}',
  );
  assert.equal(Object.getPrototypeOf(step.with), Object.prototype);
});

test('no text of any kind keeps the loader busy or ends the process', () => {
  const size = 256 * 1024;
  assert.deepEqual(problemsOf('['.repeat(size)), [
    'bad.yaml:1:35 error nested deeper than 32 levels; make it flatter',
  ]);
  assert.deepEqual(problemsOf('a'.repeat(size + 1)), [
    'bad.yaml:1:1 error the spec has 262145 bytes, the limit is 262144; split it',
  ]);
  for (const part of [
    '- ',
    '? ',
    '{a: ',
    '}',
    '%\n',
    '&a ',
    '*a ',
    '"',
    '---\n',
    'a: b: c\n',
    '[a,',
    '- 1\n',
  ]) {
    assert.ok(problemsOf(part.repeat(size / part.length)).length > 0, part);
  }
});

test('an inline spec goes through the same checks, with JSON pointers, and has the same hash', () => {
  const parsed = parseSpec(exampleText, { file: 'refund.yaml', tools });
  assert.ok('spec' in parsed);
  assert.deepEqual(checkSpecObject(structuredClone(parsed.spec), { tools }), {
    spec: parsed.spec,
    hash: parsed.hash,
  });

  const bad = {
    version: 1,
    name: 'a',
    'x/y': 1,
    input: { properties: { a: { tpye: 'string' } } },
    steps: [{ id: 'pay', tool: 'payments.refund', with: { a: '${{ steps.pay.output }}' } }, { approval: {} }],
  };
  assert.deepEqual(checkSpecObject(bad, { tools }), {
    problems: [
      {
        pointer: '/x~1y',
        message: 'the spec: unknown key "x/y"; a spec has version, name, description, input, steps, output',
      },
      { pointer: '/steps/1/id', message: 'steps[1].id: is required' },
      { pointer: '/steps/1/approval/title', message: 'steps[1].approval.title: is required' },
      {
        pointer: '/steps/0/tool',
        message: 'step "pay": tool: the tool "payments.refund" requires approval; add before: {approve: {}}',
      },
      {
        pointer: '/steps/0/with/a',
        message:
          'step "pay": with.a: steps.pay: step "pay" does not come before this one; earlier steps: none',
      },
      {
        pointer: '/input/properties/a/tpye',
        message: 'input.properties.a: unknown keyword "tpye"; this is a JSON Schema (draft 2020-12)',
      },
    ],
  });
});

test('what a problem quotes is harmless to print', () => {
  const [problem = ''] = problemsOf(withSteps('  - { id: "a\\u202Eb\\u001B", approval: { title: x } }\n'));
  assert.match(problem, /rename "a\\u202eb\\u001b"$/);
});

test('anything at all as an inline spec is an answer, never a throw', () => {
  let deep: unknown = 1;
  for (let level = 0; level < 33; level += 1) deep = [deep];
  const cyclic: Record<string, unknown> = {};
  cyclic['self'] = cyclic;
  const hostile = JSON.parse(
    '{"__proto__": {"steps": []}, "version": 1, "name": "a", "steps": [{"__proto__": 1}]}',
  ) as unknown;
  for (const value of [
    undefined,
    null,
    5,
    'x',
    [],
    {},
    { steps: [null, 1, []] },
    deep,
    cyclic,
    () => 1,
    hostile,
    new Date(),
  ]) {
    const checked = checkSpecObject(value, { tools });
    assert.ok('problems' in checked && checked.problems.length > 0);
  }
  const large = { version: 1, name: 'a', description: 'x'.repeat(256 * 1024), steps: [] };
  assert.deepEqual(checkSpecObject(large, { tools }), {
    problems: [{ pointer: '', message: 'the spec has 262196 bytes, the limit is 262144; split it' }],
  });
});
