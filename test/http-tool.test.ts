// The built-in http tool, against real servers on loopback. P5: what an answer means is never guessed. And it
// calls nothing that it may not.
import assert from 'node:assert/strict';
import { createServer as createRawServer } from 'node:net';
import { test } from 'node:test';
import { createServer as createTlsServer } from 'node:tls';
import type { Json } from '../src/core/json.ts';
import { ToolRetryError, type Tool } from '../src/tool.ts';
import type { ResolvedAddress } from '../src/tools/http-request.ts';
import type { HttpToolOptions } from '../src/tools/http-tool.ts';
import {
  call, failed, idempotencyKey, json, listen, loopback, publicAddress, resolver, target, text, toolFor,
} from './support/http-target.ts'; // prettier-ignore

test('a call sends method, headers, JSON body and key, and answers status, headers and JSON', async (t) => {
  const answer = json({ refund: 're_1' }, 201, {
    location: '/refunds/re_1',
    'set-cookie': 'a=b',
    server: 'x',
  });
  const { host, received } = await target(t, answer);
  const output = await call(toolFor(host), {
    method: 'PUT',
    url: `http://${host}/refunds?x=1`,
    headers: { 'X-Tenant': 'a' },
    body: { amount: '12.50', note: 'é' },
  });
  assert.deepEqual(output, {
    status: 201,
    headers: { 'content-type': 'application/json', location: '/refunds/re_1' },
    body: { refund: 're_1' },
  });
  const [request] = received;
  assert.equal(received.length, 1);
  assert.deepEqual([request?.method, request?.url], ['PUT', '/refunds?x=1']);
  assert.equal(request?.body, '{"amount":"12.50","note":"é"}');
  const {
    'idempotency-key': sent,
    'content-type': type,
    'x-tenant': tenant,
    'accept-encoding': coding,
  } = request.headers;
  assert.deepEqual([sent, type, tenant, coding], [idempotencyKey, 'application/json', 'a', 'identity']);
  assert.equal(request.headers['content-length'], '30');
});

test('a body is JSON or none, whatever it is', async (t) => {
  const { host, received } = await target(t);
  const url = `http://${host}/`;
  for (const body of [null, 0, '', [], 'é'] as Json[]) {
    await call(toolFor(host), { url, body, headers: { 'content-type': 'application/merge-patch+json' } });
  }
  await call(toolFor(host), { url, method: 'DELETE' });
  assert.deepEqual(
    received.map(({ body }) => body),
    ['null', '0', '""', '[]', '"é"', ''],
  );
  assert.equal(received[0]?.headers['content-type'], 'application/merge-patch+json');
  assert.equal(received.at(-1)?.headers['content-type'], undefined);
});

test('P5: what an answer means', async (t) => {
  const { host } = await target(t, (response, { url = '' }) => {
    response.writeHead(Number(url.slice(1, 4)), { location: '/elsewhere' });
    response.end('because');
  });
  const [none, keyed] = [toolFor(host), toolFor(host, { targetTakesKey: true })];
  const kind = async (tool: Tool, status: number, method = 'POST') =>
    (await failed(call(tool, { method, url: `http://${host}/${status}` })))[0];
  const meanings: [status: number, none: string, keyed: string, safe: string][] = [
    [300, 'in doubt', 'in doubt', 'refused'],
    [301, 'in doubt', 'in doubt', 'refused'],
    [302, 'in doubt', 'in doubt', 'refused'],
    [303, 'in doubt', 'in doubt', 'refused'],
    [307, 'refused', 'refused', 'refused'],
    [308, 'refused', 'refused', 'refused'],
    [400, 'refused', 'refused', 'refused'],
    [401, 'refused', 'refused', 'refused'],
    [402, 'refused', 'refused', 'refused'],
    [404, 'refused', 'refused', 'refused'],
    [408, 'unclear retry', 'unclear retry', 'unclear retry'],
    [409, 'clear retry', 'unclear retry', 'clear retry'],
    [422, 'refused', 'refused', 'refused'],
    [425, 'clear retry', 'clear retry', 'clear retry'],
    [429, 'clear retry', 'clear retry', 'clear retry'],
    [500, 'unclear retry', 'unclear retry', 'unclear retry'],
    [501, 'unclear retry', 'unclear retry', 'unclear retry'],
    [503, 'unclear retry', 'unclear retry', 'unclear retry'],
    [599, 'unclear retry', 'unclear retry', 'unclear retry'],
  ];
  for (const [status, ...expected] of meanings) {
    const got = [await kind(none, status), await kind(keyed, status), await kind(none, status, 'GET')];
    assert.deepEqual(got, expected, String(status));
  }
  const [, message] = await failed(call(none, { url: `http://${host}/422?token=a` }));
  assert.equal(message, `POST http://${host}/422 answered 422: because`, 'without the query');
  for (const status of [200, 201, 204, 207]) {
    assert.equal((await call(none, { url: `http://${host}/${status}` })).status, status);
  }
  assert.equal((await call(none, { method: 'GET', url: `http://${host}/304` })).status, 304);
});

test('Retry-After of an answer comes with the wish for another attempt', async (t) => {
  const { host } = await target(t, json({}, 503, { 'retry-after': '120' }));
  await assert.rejects(call(toolFor(host), { url: `http://${host}/` }), (error: unknown) => {
    assert.ok(error instanceof ToolRetryError);
    assert.equal(error.retryAfterMs, 120_000);
    return true;
  });
});

test('a redirect is not followed, wherever it leads', async (t) => {
  const metadata = await target(t);
  const { host, received } = await target(t, (response) => {
    response.writeHead(307, { location: `http://${metadata.host}/latest/meta-data/` });
    response.end();
  });
  const tool = toolFor(host, { allowHosts: [host, metadata.host] });
  const [kind, message] = await failed(call(tool, { url: `http://${host}/` }));
  assert.equal(kind, 'refused');
  assert.match(message, /answered 307 \(to http:.*meta-data\/\): redirects are not followed/);
  assert.deepEqual([received.length, metadata.received.length], [1, 0]);
});

test('the name is resolved once, and that address is connected to (DNS rebinding)', async (t) => {
  const { port, received } = await target(t);
  const host = `pay.example.test:${port}`;
  const { resolve, asked } = resolver([[loopback]]);
  const output = await call(toolFor(host, { resolve }), { url: `http://${host}/a` });
  assert.equal(output.status, 200);
  assert.deepEqual(asked, ['pay.example.test']);
  assert.equal(received[0]?.headers.host, host, 'the target sees the name, not the address');
});

test('a name that comes to mean a private or metadata address is refused, and nothing is connected', async (t) => {
  const { port, received } = await target(t);
  const host = `pay.example.test:${port}`;
  const bad: [ResolvedAddress[], RegExp][] = [
    [[loopback], /127\.0\.0\.1 is a loopback address; the tool's allowPrivate does not hold it/],
    [[{ address: '::1', family: 6 }], /loopback/],
    [[{ address: '::ffff:127.0.0.1', family: 6 }], /loopback/],
    [[{ address: '10.0.0.1', family: 4 }], /private/],
    [[{ address: '100.64.0.1', family: 4 }], /shared/],
    [[{ address: '169.254.169.254', family: 4 }], /metadata address, which is never allowed/],
    [[{ address: 'fd00:ec2::254', family: 6 }], /metadata address, which is never allowed/],
    [[{ address: '0.0.0.0', family: 4 }], /unspecified/],
    [[{ address: '224.0.0.1', family: 4 }], /multicast/],
    [[publicAddress, loopback], /127\.0\.0\.1 is a loopback/],
  ];
  for (const [addresses, problem] of bad) {
    const { resolve } = resolver([addresses]);
    const tool = toolFor(host, { resolve, allowPrivate: false });
    const [kind, message] = await failed(call(tool, { url: `http://${host}/` }));
    assert.equal(kind, 'refused');
    assert.match(message, problem);
  }
  // with everything private allowed, metadata stays closed
  const { resolve } = resolver([[{ address: '169.254.169.254', family: 4 }]]);
  const [kind] = await failed(
    call(toolFor(host, { resolve, allowPrivate: true }), { url: `http://${host}/` }),
  );
  assert.equal(kind, 'refused');
  assert.equal(received.length, 0);
});

test('an address as the host is judged like a resolved one', async (t) => {
  const { host, received } = await target(t);
  const [kind, message] = await failed(
    call(toolFor(host, { allowPrivate: false }), { url: `http://${host}/` }),
  );
  assert.deepEqual([kind, received.length], ['refused', 0]);
  assert.match(message, /loopback/);
  const metadata = toolFor('169.254.169.254', { allowPrivate: true });
  assert.equal((await failed(call(metadata, { url: 'http://169.254.169.254/latest/' })))[0], 'refused');
});

test('P5: what surely was not sent is no case for a person', async (t) => {
  const closed = createRawServer();
  const port = await listen(t, closed);
  await new Promise((resolve) => closed.close(resolve));
  const url = `http://127.0.0.1:${port}/`;
  const [kind, message] = await failed(call(toolFor(`127.0.0.1:${port}`), { url }));
  assert.equal(kind, 'clear retry');
  assert.match(message, /ECONNREFUSED.*nothing was sent/);
  const named = (resolve: HttpToolOptions['resolve']) =>
    toolFor('a.example.test', { resolve: resolve ?? (async () => []) });
  const gone = await failed(
    call(
      named(() => Promise.reject(new Error('ENOTFOUND'))),
      { url: 'https://a.example.test/' },
    ),
  );
  assert.deepEqual(gone, ['clear retry', 'a.example.test was not found: ENOTFOUND']);
  assert.equal((await failed(call(named(undefined), { url: 'https://a.example.test/' })))[0], 'clear retry');
});

test('P5: a request that may have arrived and got no whole answer is unclear', async (t) => {
  const cut = await target(t, (response) => response.destroy());
  const [kind, message] = await failed(call(toolFor(cut.host), { url: `http://${cut.host}/` }));
  assert.equal(kind, 'unclear');
  assert.match(message, /socket hang up, after the request was sent/);
  const strange = await listen(t, createRawServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => socket.end('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'));
  })); // prettier-ignore
  const url = `http://127.0.0.1:${strange}/`;
  assert.equal((await failed(call(toolFor(`127.0.0.1:${strange}`), { url })))[0], 'unclear');
});

test('P5: a body that breaks off is asked for again where that is harmless, else the status counts', async (t) => {
  const { host } = await target(t, (response) => {
    response.writeHead(201, { 'content-type': 'application/json', 'content-length': '100' });
    response.write('{"refund":', () => response.socket?.end());
  });
  const url = `http://${host}/`;
  const output = await call(toolFor(host), { url });
  assert.deepEqual([output.status, output.body], [201, null]);
  assert.match(output.bodyProblem ?? '', /not kept: the connection ended in it/);
  assert.equal((await failed(call(toolFor(host, { targetTakesKey: true }), { url })))[0], 'unclear retry');
  assert.equal((await failed(call(toolFor(host), { url, method: 'GET' })))[0], 'unclear retry');
});

test('the signal ends a call: unclear once it was sent, clear before', async (t) => {
  const stop = new AbortController();
  const { host } = await target(t, () => stop.abort()); // received, and never answered
  const [kind, message] = await failed(call(toolFor(host), { url: `http://${host}/` }, stop.signal));
  assert.equal(kind, 'unclear');
  assert.match(message, /the time was up, or the run or the worker stopped, after the request was sent/);
  assert.equal(
    (await failed(call(toolFor(host), { url: `http://${host}/` }, stop.signal)))[0],
    'clear retry',
  );
  const hanging = toolFor('a.example.test', { resolve: () => new Promise(() => undefined) });
  const later = new AbortController();
  const running = failed(call(hanging, { url: 'https://a.example.test/' }, later.signal));
  later.abort();
  assert.equal((await running)[0], 'clear retry');
});

test('over TLS the server name is that of the host, and an unproven target gets nothing', async (t) => {
  const names: string[] = [];
  // without a certificate the handshake ends after the client has said whom it wants
  const server = createTlsServer({
    SNICallback: (name, callback) => {
      names.push(name);
      callback(null);
    },
  });
  const port = await listen(t, server);
  const host = `pay.example.test:${port}`;
  const { resolve } = resolver([[loopback]]);
  const [kind, message] = await failed(call(toolFor(host, { resolve }), { url: `https://${host}/` }));
  assert.equal(kind, 'clear retry');
  assert.match(message, /nothing was sent/);
  assert.deepEqual(names, ['pay.example.test']);
});

test('a response over the limit is not kept, and does not undo the effect', async (t) => {
  const { host } = await target(t, (response) => {
    response.writeHead(200, { 'content-type': 'text/plain' });
    response.end('x'.repeat(1_001));
  });
  const url = `http://${host}/`;
  const over = await call(toolFor(host, { maxResponseBytes: 1_000 }), { url });
  assert.deepEqual(
    [over.status, over.body, over.bodyProblem],
    [200, null, 'not kept: it is over 1000 bytes'],
  );
  const fits = await call(toolFor(host, { maxResponseBytes: 1_001 }), { url });
  assert.deepEqual([fits.body, fits.bodyProblem], ['x'.repeat(1_001), undefined]);
});

test('an endless response is cut off at the limit', async (t) => {
  let closed: () => void = () => undefined;
  const gone = new Promise<void>((resolve) => (closed = resolve));
  const { host } = await target(t, (response) => {
    const more = (): void => void (response.destroyed || response.write(Buffer.alloc(16_384), more));
    response.on('close', closed);
    more();
  });
  const output = await call(toolFor(host), { url: `http://${host}/` });
  assert.match(output.bodyProblem ?? '', /over 131072 bytes/);
  await gone;
});

test('whatever a target sends as a body can be recorded', async (t) => {
  const bodies: [body: string | Buffer, type: string, kept: Json, problem: RegExp | undefined][] = [
    ['{"a":[1,"é",null]}', 'application/json; charset=utf-8', { a: [1, 'é', null] }, undefined],
    ['{"a":1}', 'application/problem+json', { a: 1 }, undefined],
    ['{"a":1}', 'text/plain', '{"a":1}', undefined],
    ['', 'application/json', null, undefined],
    ['<html>', 'text/html', '<html>', undefined],
    [
      '{"id":12345678901234567890}',
      'application/json',
      '{"id":12345678901234567890}',
      /kept as text: .*\/id/,
    ],
    ['{"a":1,"a":2}', 'application/json', '{"a":1,"a":2}', /kept as text/],
    ['{"a":', 'application/json', '{"a":', /kept as text/],
    [Buffer.from([0xff, 0xfe, 0x00]), 'image/png', null, /not UTF-8/],
    ['\u0000'.repeat(100_000), 'text/plain', null, /not kept: .*limit is 262144/],
  ];
  for (const [body, type, kept, problem] of bodies) {
    const { host } = await target(t, text(body, 200, { 'content-type': type }));
    const output = await call(toolFor(host), { url: `http://${host}/` });
    assert.deepEqual([output.status, output.body], [200, kept], type);
    if (problem === undefined) assert.equal(output.bodyProblem, undefined);
    else assert.match(output.bodyProblem ?? '', problem);
  }
  const packed = await target(t, text('x', 200, { 'content-encoding': 'gzip' }));
  const output = await call(toolFor(packed.host), { url: `http://${packed.host}/` });
  assert.match(output.bodyProblem ?? '', /it is gzip, which was not asked for/);
});
