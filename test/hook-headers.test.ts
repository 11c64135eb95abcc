// P10: which headers of a webhook are kept, and that nothing sees the others.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Hono } from 'hono';
import type { ApiEnv } from '../src/api/deps.ts';
import { dropCredentials, keptHeadersLimit } from '../src/api/hook-headers.ts';
import { serveApp } from './support/api-harness.ts';
import { order, shop } from './support/hook-shop.ts';

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

test('P10: URLs and lists in headers are dropped where they may hold a credential', async () => {
  const planted = {
    ...{ 'X-Original-URI': '/hooks/shop?token=planted', 'X-Original-URL': 'https://x/?t=planted' },
    ...{ 'X-Forwarded-Uri': '/?t=planted', 'X-Rewrite-Url': '/?t=planted', 'X-Request-Uri': '/?t=planted' },
    ...{ 'X-Url': 'https://ann:planted@x/', 'X-Envoy-Original-Path': '/?t=planted', Referer: '/?t=planted' },
    ...{ 'X-Forwarded-Query': 't=planted', 'x-note': 'a, Bearer planted', 'x-list': 'a,b ,  basic planted' },
  };
  const kept = { 'x-forwarded-host': 'shop.example', 'x-tags': 'a, bearer', 'x-purl-kind': 'npm' };
  const { deliver, started } = shop();
  const fact = started(await deliver(order('ord-1'), { headers: { ...planted, ...kept } }));
  assert.doesNotMatch(JSON.stringify(fact), /planted/);
  const ours = ['content-type', 'webhook-id', 'webhook-timestamp'];
  assert.deepEqual(Object.keys(fact.trigger?.headers ?? {}).sort(), [...ours, ...Object.keys(kept)].sort());
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
