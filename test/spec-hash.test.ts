// The spec hash stands in histories and is compared when somebody approves. The fixed hashes here may not
// change with a release: a changed one means that every approval that waits is refused as `spec_changed`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { toolFacts, type SpecTool } from '../src/core/spec/hash.ts';
import { parseSpec } from '../src/core/spec/load.ts';

const refund: SpecTool = {
  name: 'payments.refund',
  arguments: z.strictObject({
    order: z.string().min(1),
    amount: z.string(),
    currency: z.string().length(3).default('EUR'),
  }),
  idempotency: 'key',
  requiresApproval: true,
};
const note: SpecTool = {
  name: 'orders.note',
  arguments: z.object({ text: z.string() }),
  idempotency: 'none',
};
const tools = [refund, note];

const steps = [
  '  - id: ask\n    approval: { title: "Go on with ${{ input.orderId }}?", ttl: 2h }\n',
  '  - id: refund\n    tool: payments.refund\n    with: { order: "${{ input.orderId }}", amount: "12.50" }\n    before: { approve: { title: Refund, ttl: 7d } }\n',
  '  - id: note\n    tool: orders.note\n    with: { text: refunded }\n',
];
const [ask = '', pay = '', remark = ''] = steps;
const head = 'version: 1\nname: refund\ninput: { type: object, required: [orderId] }\n';
const whole = `${head}steps:\n${ask}${pay}${remark}`;

function hashOf(text: string, by: readonly SpecTool[] = tools): string {
  const parsed = parseSpec(text, { file: 'a.yaml', tools: by });
  assert.ok('hash' in parsed, JSON.stringify(parsed));
  return parsed.hash;
}

test('golden: these hashes hold over releases', () => {
  assert.equal(hashOf(whole), 'sha256:22163d684e574587f68acac7de74a461d741e85500ab8897a93e452ed20d56ff');
  assert.equal(
    hashOf('version: 1\nname: a\nsteps: [{ id: a, approval: { title: Go on? } }]\n'),
    'sha256:10c89030b9761ef36a7ebb8ec2e0a8e866220f27267334809c70b70910f69281',
  );
});

test('golden: what the hash knows of a tool holds over releases', () => {
  assert.equal(
    toolFacts(refund),
    '{"idempotency":"key","requiresApproval":true,"schema":{"additionalProperties":false,"properties":{"amount":{"type":"string"},"currency":{"default":"EUR","maxLength":3,"minLength":3,"type":"string"},"order":{"minLength":1,"type":"string"}},"required":["order","amount"],"type":"object"}}',
  );
  const kinds: SpecTool = {
    name: 'kinds',
    arguments: z.object({
      text: z.string().min(1).max(9).regex(/^a/).optional(),
      day: z.iso.date(),
      mail: z.email(),
      number: z.number().gt(0).multipleOf(0.5),
      whole: z.int(),
      coerced: z.coerce.number(),
      trimmed: z.string().transform((value) => value.trim()),
      choice: z.enum(['a', 'b']),
      either: z.union([z.string(), z.null()]),
      list: z.array(z.tuple([z.string(), z.boolean()])).max(3),
      map: z.record(z.string(), z.literal(1)),
      date: z.date(),
    }),
    idempotency: 'lookup',
  };
  assert.equal(
    toolFacts(kinds),
    String.raw`{"idempotency":"lookup","schema":{"properties":{"choice":{"enum":["a","b"],"type":"string"},"coerced":{"type":"number"},"date":{},"day":{"format":"date","pattern":"^(?:(?:\\d\\d[2468][048]|\\d\\d[13579][26]|\\d\\d0[48]|[02468][048]00|[13579][26]00)-02-29|\\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|(?:02)-(?:0[1-9]|1\\d|2[0-8])))$","type":"string"},"either":{"type":["string","null"]},"list":{"items":{"items":false,"maxItems":2,"minItems":2,"prefixItems":[{"type":"string"},{"type":"boolean"}],"type":"array"},"maxItems":3,"type":"array"},"mail":{"format":"email","pattern":"^(?:[A-Za-z0-9_'+\\-]+\\.)*[A-Za-z0-9_'+\\-]*[A-Za-z0-9_+-]@(?:[A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$","type":"string"},"map":{"additionalProperties":{"const":1,"type":"number"},"propertyNames":{"type":"string"},"type":"object"},"number":{"exclusiveMinimum":0,"multipleOf":0.5,"type":"number"},"text":{"maxLength":9,"minLength":1,"pattern":"^a","type":"string"},"trimmed":{"type":"string"},"whole":{"maximum":9007199254740991,"minimum":-9007199254740991,"type":"integer"}},"required":["day","mail","number","whole","coerced","trimmed","choice","either","list","map","date"],"type":"object"}}`,
  );
});

test('comments, key order, quoting and layout do not change the hash (CASES 45)', () => {
  const expected = hashOf(whole);
  assert.equal(hashOf(`# a comment\n${whole}# and one more\n`), expected);
  assert.equal(hashOf(whole.replaceAll('\n', '\r\n')), expected);
  assert.equal(hashOf(`steps:\n${ask}${pay}${remark}${head}`), expected);
  const quoted = whole
    .replace('text: refunded', `'text': "refunded"`)
    .replace('title: Refund,', 'title: "Ref\\x75nd",');
  assert.equal(hashOf(quoted), expected);
  const block = whole.replace(
    'approve: { title: Refund, ttl: 7d } }',
    'approve: { ttl: "7d", title: "Refund" } }',
  );
  assert.equal(hashOf(block), expected);
  assert.notEqual(block, whole);
  assert.equal(hashOf(JSON.stringify(specOf(whole))), expected);
});

function specOf(text: string): unknown {
  const parsed = parseSpec(text, { file: 'a.yaml', tools });
  assert.ok('spec' in parsed);
  return parsed.spec;
}

test('what changes what would happen changes the hash (CASES 45)', () => {
  const changes: Record<string, string> = {
    'another spec name': whole.replace('name: refund', 'name: refunds'),
    'a renamed step': whole.replace('id: note', 'id: remark'),
    'two steps swapped': `${head}steps:\n${pay}${ask}${remark}`,
    'a title': whole.replace('Go on with', 'Go on with order'),
    'a ttl': whole.replace('ttl: 2h', 'ttl: 3h'),
    'a ttl of the same length in other words': whole.replace('ttl: 2h', 'ttl: 120m'),
    'a default written out': whole.replace('title: Refund, ttl: 7d', 'ttl: 7d'),
    'an argument': whole.replace('12.50', '12.5'),
    'a string for a number': whole.replace('"12.50"', '12.5'),
    'another tool': whole.replace('tool: orders.note', 'tool: payments.refund\n    before: { approve: {} }'),
    'a step less': `${head}steps:\n${ask}${pay}`,
    'the input schema': whole.replace('required: [orderId]', 'required: []'),
    'an output': `${whole}output: 1\n`,
    'a description': `${whole}description: x\n`,
  };
  const hashes = new Map([[hashOf(whole), 'nothing']]);
  for (const [what, text] of Object.entries(changes)) {
    const hash = hashOf(text);
    assert.equal(hashes.get(hash), undefined, what);
    hashes.set(hash, what);
  }
});

test('a change of a named tool changes the hash, one of another tool does not (CASES 45)', () => {
  const expected = hashOf(whole);
  const withRefund = (change: Partial<SpecTool>) => hashOf(whole, [{ ...refund, ...change }, note]);
  assert.notEqual(
    withRefund({ arguments: z.strictObject({ order: z.string(), amount: z.string() }) }),
    expected,
  );
  assert.notEqual(
    withRefund({ arguments: z.object({ ...(refund.arguments as z.ZodObject).shape }) }),
    expected,
  );
  assert.notEqual(withRefund({ idempotency: 'lookup' }), expected);
  assert.notEqual(withRefund({ requiresApproval: false }), expected);
  assert.equal(hashOf(whole, [refund, { ...note, requiresApproval: false }]), expected);
  assert.equal(hashOf(whole, [note, { ...note, name: 'unused' }, refund]), expected);
});

test('a tool whose arguments have no JSON Schema is told at the step', () => {
  const odd: SpecTool = { ...note, arguments: { not: 'a schema' } as unknown as z.ZodType };
  const parsed = parseSpec('version: 1\nname: a\nsteps: [{ id: n, tool: orders.note }]\n', {
    file: 'a.yaml',
    tools: [odd],
  });
  assert.ok('problems' in parsed);
  assert.match(
    parsed.problems[0]?.message ?? '',
    /^step "n": tool: the tool "orders\.note" has arguments without a JSON Schema: /,
  );
});
