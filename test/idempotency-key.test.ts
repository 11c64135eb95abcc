// The Idempotency-Key header (draft-ietf-httpapi-idempotency-key-header): how it is read, and on which routes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readIdempotencyKey } from '../src/api/headers.ts';
import { createApiHarness, type Answer } from './support/api-harness.ts';

test('quoted as the draft has it, or bare as most send it, is the same key', () => {
  for (const [header, key] of [
    ['"8e03978e-40d5"', '8e03978e-40d5'],
    ['8e03978e-40d5', '8e03978e-40d5'],
    [' "k" ', 'k'],
    ['"two words"', 'two words'],
    ['"a, b; c"', 'a, b; c'],
    ['"say \\"a\\\\b\\""', 'say "a\\b"'],
    ['order/17:refund+1=', 'order/17:refund+1='],
    ['"k";v=1', 'k'],
    ['"k" ; a ; b="x;y" ; c=?1', 'k'],
  ] as const) {
    assert.equal(readIdempotencyKey(header), key, header);
  }
  assert.equal(readIdempotencyKey(undefined), undefined);
});

test('what is no string of the draft and no bare key is malformed', () => {
  for (const header of ['', ' ', '""', '"open', 'open"', '"a" "b"', '"a", "b"', 'a, b', 'two words', 'a;v=1', '"a\\x"', '"\u00e9"', '"k";', '"k";V=1', `"${'x'.repeat(256)}"`]) {
    assert.throws(() => readIdempotencyKey(header), { message: /^Idempotency-Key / }, header);
  }
}); // prettier-ignore

const call = { tool: 'refund', arguments: { order: 'ord-1', amount: '1.00' } };

/** Each route that takes the header, on a gate of its own. */
const routes: [name: string, send: (headers: Record<string, string>) => Promise<[Answer, Answer]>][] = [
  ['POST /runs', (headers) => twice(headers, () => ['/runs', { spec: 'refund' }])],
  ['POST /approvals', (headers) => twice(headers, () => ['/approvals', call])],
  ...(
    [
      ['approve', (payloadHash) => ({ payloadHash })],
      ['reject', () => ({})],
      ['edit', (payloadHash) => ({ payloadHash, arguments: call.arguments })],
      ['respond', (payloadHash) => ({ payloadHash, result: 1 })],
      ['amend', () => ({ arguments: call.arguments })],
      ['withdraw', () => ({})],
      ['comment', () => ({ reason: 'hm' })],
    ] as [string, (hash: string) => object][]
  ).flatMap(([action, body]): typeof routes => [
    [
      `POST /approvals/:key/${action}`,
      (headers) => twice(headers, ({ key, hash }) => [`/approvals/${key}/${action}`, body(hash)]),
    ],
    ...(action === 'approve' || action === 'reject'
      ? [
          [
            `POST /runs/:id/${action}`,
            (headers: Record<string, string>) =>
              twice(headers, ({ hash }) => [`/runs/r1/${action}`, body(hash)]),
          ] as (typeof routes)[number],
        ]
      : []),
  ]),
];

/** The same request with each of the headers, on one gate that ann asked for. */
async function twice(
  headers: Record<string, string>,
  request: (gate: { key: string; hash: string }) => [path: string, body: object],
): Promise<[Answer, Answer]> {
  const harness = createApiHarness();
  const gate = harness.fake.ask({ runId: 'r1', requestedBy: { id: 'ann', name: 'Ann', roles: ['finance'] } });
  const [path, body] = request(gate);
  const answers = [];
  for (const key of [headers['first'], headers['second']]) {
    answers.push(await harness.call('POST', path, { body, headers: { 'idempotency-key': key ?? '' } }));
  }
  return answers as [Answer, Answer];
}

for (const [name, send] of routes) {
  test(`${name} takes the header quoted and bare as one key, and refuses a malformed one`, async () => {
    const [quoted, bare] = await send({ first: '"k-1"', second: 'k-1' });
    assert.ok(quoted.status < 300, quoted.text);
    assert.equal(bare.status, name === 'POST /runs' || name === 'POST /approvals' ? 200 : quoted.status);
    const id = (answer: Answer) => answer.body['decisionId'] ?? answer.body['id'] ?? answer.body['key'];
    assert.ok(id(quoted) !== undefined);
    assert.equal(id(bare), id(quoted));

    const [malformed, good] = await send({ first: '"open', second: '"k-1"' });
    assert.deepEqual([malformed.status, malformed.body['code']], [400, 'invalid_request']);
    assert.match(String(malformed.body['detail']), /^Idempotency-Key must be/);
    assert.ok(good.status < 300, 'the malformed one did nothing');
  });
}
