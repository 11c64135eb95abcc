// What every request goes through: routes and methods, who calls, the body, the problem that comes back.
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { test } from 'node:test';
import { createApiHarness, serveApp } from './support/api-harness.ts';

test('an unknown route and a wrong method are problems, without credentials too', async () => {
  const { call } = createApiHarness();
  const unknown = await call('GET', '/nothing', { as: 'nobody' });
  assert.equal(unknown.status, 404);
  assert.equal(unknown.body['code'], 'not_found');
  assert.equal(unknown.headers.get('content-type'), 'application/problem+json');
  const wrong = await call('DELETE', '/runs/x');
  assert.equal(wrong.status, 405);
  assert.equal(wrong.body['code'], 'method_not_allowed');
  assert.equal(wrong.headers.get('allow'), 'GET, HEAD');
  assert.equal((await call('OPTIONS', '/approvals/k/approve')).headers.get('allow'), 'POST');
});

test('a problem has all that RFC 9457 and the contract name', async () => {
  const { call } = createApiHarness();
  const { status, body, headers } = await call('GET', '/runs/none');
  assert.equal(status, 404);
  assert.deepEqual(Object.keys(body).sort(), [
    'code',
    'detail',
    'instance',
    'remedy',
    'status',
    'title',
    'type',
  ]);
  assert.equal(body['type'], 'urn:countersign:error:run_not_found');
  assert.equal(body['status'], 404);
  assert.equal(body['instance'], '/runs/none');
  assert.equal(headers.get('cache-control'), 'no-store');
});

test('without good credentials nothing is answered and nothing is asked of Temporal', async () => {
  const { call, fake } = createApiHarness();
  const { key, hash } = fake.ask({ runId: 'r1' });
  const routes: [string, string][] = [
    ['POST', '/runs'],
    ['GET', '/runs'],
    ['GET', '/runs/r1'],
    ['GET', '/runs/r1/trail'],
    ['GET', '/approvals'],
    ['GET', `/approvals/${key}`],
    ['POST', `/approvals/${key}/approve`],
    ['POST', `/approvals/${key}/reject`],
    ['GET', `/approvals/${key}/decisions/d1`],
    ['POST', '/approvals'],
    ['POST', `/approvals/${key}/edit`],
    ['POST', `/approvals/${key}/respond`],
    ['POST', `/approvals/${key}/amend`],
    ['POST', `/approvals/${key}/withdraw`],
    ['POST', `/approvals/${key}/comment`],
    ['POST', '/runs/r1/approve'],
    ['POST', '/runs/r1/reject'],
    ['POST', '/runs/r1/cancel'],
    ['GET', '/decisions'],
    ['GET', '/runs/r1/events'],
  ];
  const credentials: Record<string, string>[] = [
    {},
    { authorization: 'Basic YTpi' },
    { authorization: 'Bearer' },
    { authorization: 'Bearer nobody-knows-this' },
  ];
  for (const [method, path] of routes) {
    for (const headers of credentials) {
      const body = method === 'POST' ? { payloadHash: hash } : undefined;
      const answer = await call(method, path, { as: 'nobody', headers, ...(body ? { body } : {}) });
      assert.equal(answer.status, 401, `${method} ${path}`);
      assert.equal(answer.body['code'], 'unauthenticated');
      assert.match(answer.headers.get('www-authenticate') ?? '', /^Bearer realm="countersign"/);
    }
  }
  assert.ok(Object.values(fake.control.calls).every((count) => count === 0));
  assert.equal(fake.must('r1').signals.length, 0);
});

test('the scheme of the credentials is not case-sensitive', async () => {
  const { call } = createApiHarness();
  const answer = await call('GET', '/runs', { as: 'nobody', headers: { authorization: 'bearer token-ann' } });
  assert.equal(answer.status, 200);
});

test('a body that is not strict JSON is refused with its place', async () => {
  const { call, fake } = createApiHarness();
  const bodies: Record<string, string | Uint8Array> = {
    'not JSON': '{"spec": refund}',
    'a duplicate key': '{"spec": "refund",\n "spec": "other"}',
    'an inexact number': '{"spec": "refund", "input": {"n": 12345678901234567890}}',
    'a lone surrogate': '{"spec": "refund", "input": "\\ud800"}',
    'invalid UTF-8': new Uint8Array([0x7b, 0xff, 0x7d]),
    'a byte order mark': '\ufeff{"spec": "refund"}',
  };
  for (const [what, body] of Object.entries(bodies)) {
    const answer = await call('POST', '/runs', { body });
    assert.equal(answer.status, 400, what);
    assert.equal(answer.body['code'], 'invalid_request', what);
    assert.equal(typeof answer.body['line'], 'number', what);
    assert.equal(typeof answer.body['pointer'], 'string', what);
  }
  assert.equal(fake.control.calls.startRun, 0);
});

test('a body that is no object of the known fields is refused by name', async () => {
  const { call } = createApiHarness();
  for (const [body, said] of [
    [{ spec: 'refund', inputs: {} }, /unknown field "inputs"/],
    [{ input: {} }, /"spec"/],
    [{ spec: 7 }, /"spec"/],
    [{ spec: 'refund', id: 7 }, /"id"/],
    [[], /the body/],
    ['null', /the body/],
    ['{"__proto__": {}, "spec": "refund"}', /unknown field "__proto__"/],
  ] as const) {
    const answer = await call('POST', '/runs', { body });
    assert.equal(answer.status, 400, JSON.stringify(body));
    assert.match(String(answer.body['detail']), said);
    assert.ok(Array.isArray(answer.body['problems']));
  }
});

test('only JSON is taken, uncompressed', async () => {
  const { call } = createApiHarness();
  const body = '{"spec": "refund"}';
  for (const headers of [
    { 'content-type': 'text/plain' },
    { 'content-type': 'application/x-www-form-urlencoded' },
    { 'content-type': 'application/json; charset=latin1' },
    { 'content-type': 'application/merge-patch+json' },
    { 'content-encoding': 'gzip' },
  ]) {
    const answer = await call('POST', '/runs', { body, headers: headers });
    assert.equal(answer.status, 415, JSON.stringify(headers));
    assert.equal(answer.body['code'], 'unsupported_media_type');
  }
  const headers = { 'content-type': 'application/json; charset=utf-8' };
  assert.equal((await call('POST', '/runs', { body, headers })).status, 201);
});

test('a body over the limit is refused by counting, whatever the headers say', async () => {
  const { call, fake } = createApiHarness();
  const { key } = fake.ask({ runId: 'r1' });
  const long = await call('POST', '/runs', {
    body: JSON.stringify({ spec: 'refund', input: 'x'.repeat(600_000) }),
  });
  assert.equal(long.status, 413);
  assert.equal(long.body['code'], 'too_large');
  let sent = 0;
  const endless = new ReadableStream<Uint8Array>({
    pull(controller) {
      sent += 1;
      controller.enqueue(new TextEncoder().encode(' '.repeat(1024)));
    },
  });
  const chunked = await call('POST', `/approvals/${key}/reject`, { body: endless });
  assert.equal(chunked.status, 413);
  assert.ok(sent < 40, `read ${sent} KiB of an endless body`);
  const announced = await call('POST', `/approvals/${key}/reject`, {
    body: '{}',
    headers: { 'content-length': '5000000' },
  });
  assert.equal(announced.status, 413);
});

test('over a real connection too: an endless body is cut off with its answer, an empty one is no body', async (t) => {
  const { app, fake } = createApiHarness();
  const { key, hash } = fake.ask({ runId: 'r1' });
  const { url, close } = await serveApp(app);
  t.after(close);
  const status = await new Promise<number | undefined>((resolve, reject) => {
    const headers = { authorization: 'Bearer token-ann', 'content-type': 'application/json' };
    const sending = request(`${url}/approvals/${key}/reject`, { method: 'POST', headers }, (response) => {
      resolve(response.statusCode);
      response.resume();
      clearInterval(drip);
      sending.destroy();
    });
    const drip = setInterval(() => sending.write(' '.repeat(4096)), 1);
    sending.on('error', (error) => {
      clearInterval(drip);
      reject(error);
    });
  });
  assert.equal(status, 413);
  const approved = await fetch(`${url}/approvals/${key}/approve`, {
    method: 'POST',
    headers: { authorization: 'Bearer token-ann', 'if-match': `"${hash}"` },
  });
  assert.equal(approved.status, 200);
});

test('when Temporal is down every route that needs it says so, and livez does not need it', async () => {
  const { call, fake } = createApiHarness();
  const { key, hash } = fake.ask({ runId: 'r1' });
  fake.control.temporal = 'down';
  for (const [method, path] of [
    ['POST', '/runs'],
    ['GET', '/runs'],
    ['GET', '/runs/r1'],
    ['GET', '/runs/r1/trail'],
    ['GET', '/approvals'],
    ['GET', `/approvals/${key}`],
    ['POST', `/approvals/${key}/approve`],
    ['GET', `/approvals/${key}/decisions/d1`],
    ['GET', '/readyz'],
  ] as const) {
    const body = path === '/runs' ? { spec: 'refund' } : { payloadHash: hash };
    const answer = await call(method, path, method === 'POST' ? { body } : {});
    assert.equal(answer.status, 503, `${method} ${path}`);
    assert.equal(answer.body['code'], 'temporal_unavailable');
    assert.equal(answer.headers.get('retry-after'), '5');
    if (method !== 'POST') continue;
    assert.equal(answer.body['detail'], 'not confirmed; send it again with the same Idempotency-Key');
  }
  assert.equal((await call('GET', '/livez', { as: 'nobody' })).status, 200);
  fake.control.temporal = 'up';
  assert.equal((await call('GET', '/readyz', { as: 'nobody' })).status, 200);
});

test('an unexpected error is a 500 that tells nothing, and a log line that tells all', async () => {
  const { call, logged } = createApiHarness({
    authenticate: () => {
      throw new Error('the password is hunter2');
    },
  });
  const answer = await call('GET', '/runs');
  assert.equal(answer.status, 500);
  assert.equal(answer.body['code'], 'internal_error');
  assert.doesNotMatch(answer.text, /hunter2/);
  assert.match(JSON.stringify(logged), /hunter2/);
});

test('a refused request is logged with who, what and why, and without its token', async () => {
  const { call, logged } = createApiHarness();
  await call('GET', '/runs/none');
  assert.equal(logged.length, 1);
  const [{ method, path, status, code, by } = {}] = logged;
  assert.deepEqual(
    { method, path, status, code, by },
    {
      method: 'GET',
      path: '/runs/none',
      status: 404,
      code: 'run_not_found',
      by: 'ann',
    },
  );
  assert.doesNotMatch(JSON.stringify(logged), /token-ann/);
});

test('the route definitions make a valid OpenAPI document that names every route', () => {
  const { app } = createApiHarness();
  const document = app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: { title: 'countersign', version: '1' },
  });
  assert.deepEqual(Object.keys(document.paths ?? {}).sort(), [
    '/approvals',
    '/approvals/{key}',
    '/approvals/{key}/amend',
    '/approvals/{key}/approve',
    '/approvals/{key}/comment',
    '/approvals/{key}/decisions/{decisionId}',
    '/approvals/{key}/edit',
    '/approvals/{key}/reject',
    '/approvals/{key}/respond',
    '/approvals/{key}/withdraw',
    '/decisions',
    '/events',
    '/hooks/{trigger}',
    '/livez',
    '/readyz',
    '/runs',
    '/runs/{id}',
    '/runs/{id}/approve',
    '/runs/{id}/cancel',
    '/runs/{id}/events',
    '/runs/{id}/reject',
    '/runs/{id}/trail',
  ]);
  const approve = document.paths?.['/approvals/{key}/approve']?.post;
  for (const status of ['200', '202', '400', '404', '409', '412', '413', '415', '422', '428', '503']) {
    assert.ok(approve?.responses?.[status] !== undefined, `approve documents ${status}`);
  }
});
