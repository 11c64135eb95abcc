// POST /hooks/:trigger: a signed delivery starts the run of its event, once, and is answered alike however
// often it comes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Hono } from 'hono';
import type { ApiEnv } from '../src/api/deps.ts';
import { dropCredentials, keptHeadersLimit } from '../src/api/hook-headers.ts';
import { openTriggers, type TriggerConfig } from '../src/triggers.ts';
import { createApiHarness, serveApp, type Answer } from './support/api-harness.ts';
import { signingSecret, signWebhook } from './support/webhook.ts';

const secret = signingSecret('of the shop');
const input = { order: 'data.order.id', amount: 'data.order["total-amount"]', note: 'data.note?' };
const order = (id: string, more: object = {}) => ({
  type: 'order.returned',
  data: { order: { id, 'total-amount': '12.50', lines: [{ sku: 'a' }] }, ...more },
});

interface Delivery {
  id?: string;
  trigger?: string;
  headers?: Record<string, string>;
  /** seconds from the API's clock */
  skew?: number;
  secrets?: readonly string[];
}

function shop(
  config: Partial<TriggerConfig> = {},
  more: { dropHeaders?: string[]; specs?: Parameters<typeof createApiHarness>[0] } = {},
) {
  const trigger = { spec: 'refund', secrets: ['${SHOP}'], input, ...config };
  const harness = createApiHarness({
    triggers: openTriggers({ shop: trigger }, { SHOP: secret }, () => undefined),
    ...(more.dropHeaders === undefined ? {} : { dropHeaders: more.dropHeaders }),
    ...more.specs,
  });
  const deliver = (content: unknown, delivery: Delivery = {}): Promise<Answer> => {
    const { id = 'msg_1', trigger: name = 'shop', headers = {}, skew = 0, secrets = [secret] } = delivery;
    const body = typeof content === 'string' ? content : JSON.stringify(content);
    const at = Math.floor(harness.clock.now / 1000) + skew;
    return harness.call('POST', `/hooks/${name}`, {
      as: 'nobody',
      body,
      headers: { ...signWebhook({ id, at, body, secrets }), ...headers },
    });
  };
  const started = (answer: Answer) => {
    assert.equal(answer.status, 200, answer.text);
    const [fact] = harness.fake.must(String(answer.body['id'])).facts;
    assert.ok(fact?.type === 'run_started');
    return fact;
  };
  return { ...harness, deliver, started };
}

function refused(answer: Answer, status: number, code: string): string {
  assert.deepEqual([answer.status, answer.body['code']], [status, code], answer.text);
  return String(answer.body['detail']);
}

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

test('P10: headers that look like credentials reach neither run nor answer nor log; the others are kept', async () => {
  const credentials = [
    ...['Authorization', 'Proxy-Authorization', 'X-Forwarded-Authorization', 'Cookie', 'Set-Cookie', 'X-Api-Key'],
    ...['Api-Key', 'ApiKey', 'X-Auth-Token', 'X-Access-Token', 'X-Amz-Security-Token', 'X-Gitlab-Token', 'X-CSRF-Token'],
    ...['X-Hub-Signature', 'X-Hub-Signature-256', 'Stripe-Signature', 'X-Slack-Signature', 'X-Client-Secret', 'X-Vault-Token'],
    ...['Ocp-Apim-Subscription-Key', 'X-Functions-Key', 'X-Password', 'X-Session-Id', 'DPoP', 'X-Goog-IAP-JWT-Assertion'],
    ...['X-Forwarded-Client-Cert', 'X-Amzn-Oidc-Data', 'X-Auth', 'Idempotency-Key'],
  ]; // prettier-ignore
  const { deliver, started, logged, call } = shop({}, { dropHeaders: ['X-Acme-*', 'x-shop-pass'] });
  const headers = Object.fromEntries(credentials.map((name, at) => [name, `planted-${at}`]));
  const kept = {
    'user-agent': 'Shop/1',
    'x-request-id': 'r-1',
    'x-author': 'ann',
    'x-github-event': 'push',
    'ce-x': '1',
  };
  const more = {
    'x-acme-anything': 'planted-a',
    'X-Shop-Pass': 'planted-b',
    'x-note': 'Bearer planted-c',
    ...kept,
  };
  const answer = await deliver(order('ord-1'), { headers: { ...headers, ...more } });
  const trigger = started(answer).trigger ?? assert.fail();
  assert.deepEqual(
    { ...trigger.headers, 'webhook-timestamp': '' },
    {
      ...kept,
      'content-type': 'application/json',
      'webhook-id': 'msg_1',
      'webhook-timestamp': '',
    },
  );
  await deliver(order('ord-1'), { trigger: 'stop', headers: { ...headers, ...more } });
  await deliver('{', { headers: { ...headers, ...more } });
  const run = await call('GET', `/runs/${String(answer.body['id'])}/trail`);
  assert.match(run.text, /Shop\/1/);
  assert.equal(logged.length, 2);
  for (const text of [answer.text, run.text, JSON.stringify(logged)]) assert.doesNotMatch(text, /planted/);
});

test('P10: the request itself loses them, so that nothing behind can see them, over real HTTP too', async () => {
  const app = new Hono<ApiEnv>();
  app.use('/hooks/*', dropCredentials(['x-acme']));
  app.post('/hooks/shop', async (c) => c.json({ sees: [...c.req.raw.headers], body: await c.req.text() }));
  const server = await serveApp(app);
  try {
    const planted = {
      cookie: 'planted',
      'x-api-key': 'planted',
      'X-Acme': 'planted',
      'webhook-signature': 'planted',
    };
    const headers = { 'content-type': 'application/json', 'x-note': 'kept', ...planted };
    const answer = await fetch(`${server.url}/hooks/shop`, { method: 'POST', headers, body: '{"a": 1}' });
    const text = await answer.text();
    assert.doesNotMatch(text, /planted/);
    assert.match(text, /"x-note","kept"/);
    assert.equal((JSON.parse(text) as { body: string }).body, '{"a": 1}');
  } finally {
    server.close();
  }
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

test('kept headers have a bound, and the trigger says how many more there were', async () => {
  const { deliver, started } = shop();
  const headers = Object.fromEntries(
    Array.from({ length: 30 }, (_, at) => [`x-h-${10 + at}`, 'v'.repeat(1000)]),
  );
  const { trigger } = started(await deliver(order('ord-1'), { headers }));
  const length = Object.entries(trigger?.headers ?? {}).reduce(
    (sum, [name, value]) => sum + name.length + value.length,
    0,
  );
  assert.ok(length <= keptHeadersLimit && length > keptHeadersLimit / 2, String(length));
  const count = Object.keys(trigger?.headers ?? {}).length;
  assert.equal(count + (trigger?.headersOmitted ?? 0), 30 + 3);
});
