// POST /hooks/:trigger: a signed delivery starts the run of its event, once, and is answered alike however
// often it comes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hookRunId } from '../src/api/start-hook.ts';
import { createApiHarness, serveApp, type Answer } from './support/api-harness.ts';
import { order, refused, secret, shop } from './support/hook-shop.ts';
import { signingSecret, signWebhook } from './support/webhook.ts';

test('a signed delivery starts the run that its trigger names, with the input that its paths name', async () => {
  const { deliver, started, call, fake } = shop();
  const answer = await deliver(order('ord-1', { card: '4111', note: 'torn' }));
  const fact = started(answer);
  assert.deepEqual(
    fact.input,
    { order: 'ord-1', amount: '12.50', note: 'torn' },
    'and nothing else of the body',
  );
  assert.deepEqual(fact.startedBy, { id: 'hook:shop', name: 'shop', roles: [] });
  assert.equal(fact.spec?.name, 'refund');
  const id = String(answer.body['id']);
  assert.match(id, /^hook-shop-[0-9a-f]{26}$/);
  assert.deepEqual(answer.body, {
    id,
    trigger: { kind: 'hook', name: 'shop', id: 'msg_1' },
    links: { run: `/runs/${id}`, events: `/runs/${id}/events` },
  });
  assert.equal(answer.headers.get('location'), `/runs/${id}`);
  const run = await call('GET', `/runs/${id}`);
  const trigger = run.body['trigger'] as { headers: Record<string, string> };
  assert.deepEqual(
    { ...trigger, headers: undefined },
    { kind: 'hook', name: 'shop', id: 'msg_1', headers: undefined },
  );
  assert.equal(trigger.headers['webhook-id'], 'msg_1');
  assert.equal(fake.runs.size, 1);
});

test('re-deliveries, at once and later, of an open and of a closed run, are one run and one answer', async () => {
  const { deliver, fake, clock, started } = shop();
  const first = await deliver(order('ord-1'));
  const again = await Promise.all(Array.from({ length: 10 }, () => deliver(order('ord-1'))));
  fake.close(String(first.body['id']), 'completed');
  clock.now += 24 * 3600 * 1000;
  const [{ type, data }] = [order('ord-1')];
  const spaced = await deliver(JSON.stringify({ data, type }, null, 2), { headers: { 'x-attempt': '7' } });
  for (const answer of [...again, spaced]) assert.deepEqual([answer.status, answer.text], [200, first.text]);
  assert.equal(fake.runs.size, 1);
  assert.equal(started(first).trigger?.headers?.['x-attempt'], undefined, 'the first one stands');
});

test('deliveries at the same moment start one run, and all get its answer', async () => {
  const { deliver, fake } = shop();
  const answers = await Promise.all(Array.from({ length: 20 }, () => deliver(order('ord-1'))));
  const [{ text }] = answers as [Answer];
  for (const answer of answers) assert.deepEqual([answer.status, answer.text], [200, text]);
  assert.equal(fake.runs.size, 1);
});

test('another event is another run; the same id with another body is refused, and starts nothing', async () => {
  const { deliver, fake } = shop();
  const first = await deliver(order('ord-1'), { id: 'msg_1' });
  const second = await deliver(order('ord-1'), { id: 'msg_2' });
  assert.notEqual(first.body['id'], second.body['id']);
  const detail = refused(await deliver(order('ord-2'), { id: 'msg_1' }), 422, 'idempotency_key_reused');
  assert.match(detail, /another request started/);
  assert.equal(fake.runs.size, 2);
});

test('a re-delivery is answered like the first one, whatever became of spec and mapping since', async () => {
  const state = { gone: false };
  const { refundSpec } = await import('./support/api-harness.ts');
  const specs = {
    get: () => (state.gone ? undefined : { spec: refundSpec, hash: 'sha256:aa' }),
    names: () => [],
    problemOf: () => undefined,
  };
  const { deliver } = shop({}, { specs: { specs } });
  const first = await deliver(order('ord-1'));
  state.gone = true;
  assert.deepEqual((await deliver(order('ord-1'))).text, first.text);
  assert.match(
    refused(await deliver(order('ord-2'), { id: 'msg_2' }), 400, 'invalid_request'),
    /there is no spec "refund"/,
  );
});

test('a CloudEvent is one event by its source and id, however often it is wrapped anew', async () => {
  const { deliver, started, fake } = shop();
  const event = { specversion: '1.0', id: 'e-1', source: '/shop/eu', ...order('ord-1') };
  const headers = { 'content-type': 'application/cloudevents+json; charset=utf-8' };
  const first = await deliver(event, { id: 'msg_1', headers });
  const fact = started(first);
  assert.deepEqual(fact.input, { order: 'ord-1', amount: '12.50' });
  assert.deepEqual(first.body['trigger'], { kind: 'hook', name: 'shop', id: 'e-1', source: '/shop/eu' });
  assert.deepEqual((await deliver(event, { id: 'msg_2', headers })).text, first.text);
  const elsewhere = await deliver({ ...event, source: '/shop/us' }, { id: 'msg_1', headers });
  assert.notEqual(elsewhere.body['id'], first.body['id']);
  assert.equal(fake.runs.size, 2);
  refused(
    await deliver({ ...event, ...order('ord-9') }, { id: 'msg_3', headers }),
    422,
    'idempotency_key_reused',
  );
});

test('P4: a CloudEvent is one whatever the unsigned headers around it say', async () => {
  const event = { specversion: '1.0', id: 'e-1', source: '/shop/eu', ...order('ord-1') };
  const attributes = { 'ce-specversion': '1.0', 'ce-id': 'e-9', 'ce-source': '/x', 'ce-type': 'y' };
  const wrappings: Record<string, string>[] = [
    { 'content-type': 'application/cloudevents+json' },
    { 'content-type': 'application/json' },
    { 'content-type': 'application/json', ...attributes },
    { 'content-type': 'application/cloudevents+json', ...attributes },
  ];
  for (const first of wrappings) {
    const { deliver, started, fake } = shop();
    const answer = await deliver(event, { headers: first });
    assert.deepEqual(started(answer).input, { order: 'ord-1', amount: '12.50' });
    assert.deepEqual(answer.body['trigger'], { kind: 'hook', name: 'shop', id: 'e-1', source: '/shop/eu' });
    for (const headers of wrappings) assert.equal((await deliver(event, { headers })).text, answer.text);
    assert.equal(fake.runs.size, 1);
  }
  // and what is none is none by its body too: refused, or identified by webhook-id
  const { deliver, fake } = shop();
  for (const none of [
    { ...event, specversion: '0.3' },
    { ...event, source: 7 },
    { ...event, type: '' },
  ]) {
    refused(await deliver(none, { headers: wrappings[0] ?? {} }), 400, 'invalid_request');
  }
  const plain = await deliver({ ...event, specversion: '0.3' });
  assert.deepEqual(plain.body['trigger'], { kind: 'hook', name: 'shop', id: 'msg_1' });
  assert.equal(fake.runs.size, 1);
});

test('P4: ids that follow from an event or a key are not for POST /runs to take', async () => {
  const { deliver, call, started } = shop();
  const id = hookRunId('shop', { id: 'msg_7' });
  const taken = await call('POST', '/runs', { body: { spec: 'refund', id } });
  assert.match(refused(taken, 400, 'invalid_request'), /ids that begin with "hook-" are those of webhooks/);
  const keyed = { body: { spec: 'refund' }, headers: { 'idempotency-key': 'k-1' } };
  const run = await call('POST', '/runs', keyed);
  const squat = await call('POST', '/runs', { as: 'bob', body: { spec: 'refund', id: run.body['id'] } });
  assert.match(refused(squat, 400, 'invalid_request'), /made from an Idempotency-Key; take another id/);
  assert.equal((await call('POST', '/runs', { body: { spec: 'refund', id: 'run-12' } })).status, 201);
  assert.equal((await deliver(order('ord-1'), { id: 'msg_7' })).body['id'], id);
  started(await deliver(order('ord-1'), { id: 'msg_7' }));
});

test('a signed body at the limits of JSON is refused, or started; it is no error of ours', async () => {
  const { deliver, fake } = shop();
  const nested = (levels: number) => ({ ...order('ord-1'), more: nest(levels - 1) });
  const wide = (values: number) => {
    // the rest of the body has 6 values, and the array itself is one
    return { ...order('ord-1'), data: { order: { id: 'o', 'total-amount': '1' } }, more: ones(values - 7) };
  };
  const binary = { 'ce-specversion': '1.0', 'ce-id': 'e', 'ce-source': 's', 'ce-type': 't' };
  for (const body of [nested(64), wide(10_000), wide(9_998)]) {
    const detail = refused(await deliver(body), 400, 'invalid_request');
    assert.match(detail, /a webhook may have 62 levels and 9996 values; make it flatter/);
  }
  for (const body of [nested(63), wide(9_997)]) {
    refused(await deliver(body, { headers: binary }), 400, 'invalid_request');
  }
  for (const body of [nested(65), wide(10_001)]) {
    assert.match(refused(await deliver(body), 400, 'invalid_request'), /^the body is refused: line 1/);
  }
  assert.equal(fake.runs.size, 0);
  assert.equal((await deliver(nested(62), { id: 'msg_2' })).status, 200);
  assert.equal((await deliver(wide(9_996), { id: 'msg_3' })).status, 200);
});

/** An array in an array, so many levels deep. */
function nest(levels: number): unknown {
  return JSON.parse('['.repeat(levels) + ']'.repeat(levels));
}

function ones(count: number): number[] {
  return Array.from({ length: count }, () => 1);
}

test('a CloudEvent in binary mode is identified by what is signed: its attributes are not', async () => {
  const { deliver, started, fake } = shop();
  const { data } = order('ord-1');
  const attributes = {
    'ce-specversion': '1.0',
    'ce-id': 'e-1',
    'ce-source': '/shop',
    'ce-type': 'order.returned',
  };
  const first = await deliver(data, { headers: attributes });
  const fact = started(first);
  assert.deepEqual(fact.input, { order: 'ord-1', amount: '12.50' }, 'data is where it is in structured mode');
  assert.equal(fact.trigger?.headers?.['ce-id'], 'e-1');
  // a caught delivery with another ce-id is no second event
  const forged = await deliver(data, { headers: { ...attributes, 'ce-id': 'e-2' } });
  assert.deepEqual([forged.status, forged.text, fake.runs.size], [200, first.text, 1]);
  const unsigned = shop({ input: { order: 'type' } });
  assert.match(
    refused(await unsigned.deliver(data, { headers: attributes }), 400, 'invalid_request'),
    /type: there is an object without "type"/,
  );
});

test('what is no CloudEvent is refused, naming each attribute', async () => {
  const { deliver } = shop();
  const headers = { 'content-type': 'application/cloudevents+json' };
  for (const [event, says] of [
    [
      { specversion: '0.3', id: 'e', source: 's', type: 't' },
      /^not a CloudEvent: specversion: must be "1\.0"$/,
    ],
    [
      { specversion: '1.0', id: '', source: 7, type: 't' },
      /^not a CloudEvent: id: must be a text .*; source: must/,
    ],
    [{}, /specversion: .*id: .*source: .*type: /],
    [[], /a CloudEvent is a JSON object/],
    [null, /a CloudEvent is a JSON object/],
  ] as const) {
    assert.match(refused(await deliver(event, { headers }), 400, 'invalid_request'), says);
  }
  const binary = await deliver(order('a').data, { headers: { 'ce-id': 'e-1', 'ce-specversion': '1.0' } });
  assert.match(refused(binary, 400, 'invalid_request'), /header ce-source: must be a text .*header ce-type/);
});

test('no trigger of that name is 404, with and without a signature', async () => {
  const { deliver, call } = shop();
  assert.match(
    refused(await deliver({}, { trigger: 'stop' }), 404, 'trigger_not_found'),
    /there is no trigger "stop"/,
  );
  refused(await call('POST', '/hooks/__proto__', { body: '{}' }), 404, 'trigger_not_found');
  const none = createApiHarness();
  refused(await none.call('POST', '/hooks/shop', { body: '{}' }), 404, 'trigger_not_found');
  assert.equal((await call('GET', '/hooks/shop')).status, 405);
});

test('without a valid signature of now it is 401, before anything of the body is read', async () => {
  const { deliver, call, fake, logged } = shop();
  const foreign = await deliver('{"not json', { secrets: [signingSecret('foreign')] });
  assert.match(
    refused(foreign, 401, 'invalid_signature'),
    /do not sign this body with a secret of trigger "shop"/,
  );
  assert.match(foreign.headers.get('www-authenticate') ?? '', /^StandardWebhooks /);
  // a token of the API is none for a hook
  refused(await call('POST', '/hooks/shop', { as: 'ann', body: order('ord-1') }), 401, 'invalid_signature');
  for (const skew of [-301, 301]) {
    const stale = await deliver(order('ord-1'), { skew });
    assert.match(refused(stale, 401, 'stale_timestamp'), /more than 300 s from now, which is \d{10}$/);
  }
  assert.equal((await deliver(order('ord-1'), { skew: -300 })).status, 200);
  assert.equal(fake.runs.size, 1);
  assert.doesNotMatch(JSON.stringify(logged), /v1,|whsec/);
});

test('what is signed and cannot be taken is refused by its fault, and starts nothing', async () => {
  const { deliver, fake } = shop();
  const typed = (type: string) => deliver(order('a'), { headers: { 'content-type': type } });
  for (const type of [
    'text/plain',
    'application/cloudevents-batch+json',
    'application/json; charset=latin1',
    'application/jsonx',
  ]) {
    assert.match(
      refused(await typed(type), 415, 'unsupported_media_type'),
      /application\/json or application\/cloudevents\+json, got/,
    );
  }
  const zipped = await deliver(order('a'), { headers: { 'content-encoding': 'gzip' } });
  refused(zipped, 415, 'unsupported_media_type');
  for (const text of ['', '{"a":', '{"a":1,"a":2}', '\ufeff{}', '{"n":9007199254740993}']) {
    assert.match(refused(await deliver(text), 400, 'invalid_request'), /^the body is refused: line 1/, text);
  }
  const lacking = await deliver({ data: { order: 'x', 'total-amount': '1' } });
  assert.equal(
    refused(lacking, 400, 'invalid_request'),
    'the body lacks what trigger "shop" takes from it: data.order.id: there is a string without "id"; ' +
      'data.order["total-amount"]: there is a string without "total-amount"',
  );
  assert.equal((lacking.body['problems'] as string[]).length, 2);
  const inherited = shop({ input: { order: 'data.constructor' } });
  refused(await inherited.deliver({ data: {} }), 400, 'invalid_request');
  const length = shop({ input: { order: 'data.length' } });
  refused(await length.deliver({ data: [] }), 400, 'invalid_request');
  const bad = shop({ input: { bad: 'data' } });
  assert.match(
    refused(await bad.deliver({ data: 1 }), 400, 'invalid_request'),
    /input does not fit spec "refund": \/bad/,
  );
  const broken = shop({ spec: 'broken' });
  assert.match(refused(await broken.deliver(order('a')), 400, 'invalid_request'), /spec "broken" went bad/);
  assert.match(
    refused(await deliver('x'.repeat(512 * 1024 + 1)), 413, 'too_large'),
    /longer than 524288 bytes/,
  );
  const wide = shop({ input: { order: 'data' } });
  assert.match(
    refused(await wide.deliver({ data: 'x'.repeat(300_000) }), 413, 'too_large'),
    /the limit is 262144/,
  );
  assert.equal(fake.runs.size + inherited.fake.runs.size + bad.fake.runs.size + wide.fake.runs.size, 0);
});

test('while Temporal is down, or its answer lost, a delivery is 503, and delivered again it is one run', async () => {
  const { deliver, fake, started } = shop();
  fake.control.temporal = 'down';
  const answer = await deliver(order('ord-1'));
  assert.equal(refused(answer, 503, 'temporal_unavailable'), 'not confirmed; deliver it again');
  assert.equal(answer.headers.get('retry-after'), '5');
  fake.control.temporal = 'up';
  fake.control.loseAnswers = true;
  refused(await deliver(order('ord-1')), 503, 'temporal_unavailable');
  assert.equal(fake.runs.size, 1, 'the start came through');
  fake.control.loseAnswers = false;
  started(await deliver(order('ord-1')));
  assert.equal(fake.runs.size, 1);
});

test('a delivery over real HTTP is one too, whatever its query says', async () => {
  const { app, clock, fake, logged } = shop();
  const server = await serveApp(app);
  try {
    const body = JSON.stringify(order('ord-1'));
    const signed = signWebhook({ at: Math.floor(clock.now / 1000), body, secrets: [secret] });
    const headers = { ...signed, 'content-type': 'application/json', cookie: 'planted' };
    const send = (text: string) =>
      fetch(`${server.url}/hooks/shop?token=planted`, { method: 'POST', headers, body: text });
    assert.equal((await send(body)).status, 200);
    assert.equal((await send(`${body} `)).status, 401);
  } finally {
    server.close();
  }
  assert.equal(fake.runs.size, 1);
  const facts = [...fake.runs.values()].map((run) => run.facts);
  assert.doesNotMatch(JSON.stringify([facts, logged]), /planted/);
});
