// P10: a secret of the http tool reaches the hosts that are named for it, and no history, log, message or output.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CaseRecord, EffectRecord } from '../src/core/case.ts';
import type { Json } from '../src/core/json.ts';
import type { HttpOutput } from '../src/tools/http-answer.ts';
import type { ResolvedAddress } from '../src/tools/http-request.ts';
import { httpTool } from '../src/tools/http-tool.ts';
import { depsWith, key, now, position, root, run } from './support/activity.ts';
import {
  call, failed, freezeProblems, idempotencyKey, json, loopback, publicAddress, resolver, target, text, toolFor,
  type Answer,
} from './support/http-target.ts'; // prettier-ignore

const value = 'sk_live_a/b+c"d';
const secrets = (host: string) => ({ PAY_KEY: { hosts: [host] } });
const bearer = { authorization: 'Bearer ${PAY_KEY}' };

test('P10: a placeholder in a header is filled in where it is sent, and stands everywhere else', async (t) => {
  const echo: Answer = (response, request) => {
    const sent = request.headers.authorization ?? '';
    const bare = sent.replace('Bearer ', '');
    const bytes = Buffer.from(bare);
    response.writeHead(200, { 'content-type': 'application/json', 'x-request-id': sent, location: `/?k=${encodeURIComponent(bare)}` });
    response.end(
      JSON.stringify({ sent, [bare]: [bare, { deep: `<${bare}>` }], b64: bytes.toString('base64'), url: bytes.toString('base64url') }),
    );
  }; // prettier-ignore
  const { host, received } = await target(t, echo);
  const tool = toolFor(host, { env: { PAY_KEY: value }, secrets: secrets(host) });
  const output = await call(tool, { url: `http://${host}/`, headers: bearer });
  assert.equal(received[0]?.headers.authorization, `Bearer ${value}`);
  assert.deepEqual(output, {
    status: 200,
    headers: {
      'content-type': 'application/json',
      'x-request-id': 'Bearer ${PAY_KEY}',
      location: '/?k=${PAY_KEY}',
    },
    body: {
      sent: 'Bearer ${PAY_KEY}',
      '${PAY_KEY}': ['${PAY_KEY}', { deep: '<${PAY_KEY}>' }],
      b64: '${PAY_KEY}',
      url: '${PAY_KEY}',
    },
  });
});

test('P10: a secret that is a number, or in a text, or in a refusal, is taken out', async (t) => {
  const env = { PAY_KEY: '90210' };
  for (const [answer, kept] of [
    [json({ n: 90210, deep: [190210.5, 7] }), { n: '${PAY_KEY}', deep: ['1${PAY_KEY}.5', 7] }],
    [text('key=90210;'), 'key=${PAY_KEY};'],
    [text('{"a":90210,}', 200, { 'content-type': 'application/json' }), '{"a":${PAY_KEY},}'],
  ] as [Answer, Json][]) {
    const { host } = await target(t, answer);
    const output = await call(toolFor(host, { env, secrets: secrets(host) }), {
      url: `http://${host}/`,
      headers: bearer,
    });
    assert.deepEqual(output.body, kept);
    assert.ok(!JSON.stringify(output).includes('90210'));
  }
  for (const status of [302, 401, 429, 500]) {
    const { host } = await target(t, text('no such key: 90210', status, { location: '/90210' }));
    const tool = toolFor(host, { env, secrets: secrets(host) });
    const [, message] = await failed(call(tool, { url: `http://${host}/`, headers: bearer }));
    assert.match(message, /\$\{PAY_KEY\}/);
    assert.doesNotMatch(message, /90210/);
  }
});

test('P10: a secret is found in the encodings that targets echo', async (t) => {
  const base64 = Buffer.from(value).toString('base64');
  const shapes = [
    value, 'sk_live_a/b+c\\"d', 'sk_live_a\\/b+c\\"d', 'sk_live_a%2Fb%2Bc%22d', 'sk_live_a%2fb%2bc%22d', base64,
    base64.replace(/=+$/, ''), Buffer.from(value).toString('base64url'), Buffer.from(value).toString('hex'),
    Buffer.from(value).toString('hex').toUpperCase(),
  ]; // prettier-ignore
  const { host } = await target(t, text(shapes.join(' '), 403));
  const tool = toolFor(host, { env: { PAY_KEY: value }, secrets: secrets(host) });
  const [, message] = await failed(call(tool, { url: `http://${host}/`, headers: bearer }));
  assert.equal(message, `POST http://${host}/ answered 403: ${shapes.map(() => '${PAY_KEY}').join(' ')}`);
});

test('P10: a secret is found inside of what is encoded with it, and escaped in part', async (t) => {
  const secret = 'sk_live_a/b+c"d&e<f\'g 12';
  const { host } = await target(t, (response, { headers }) => {
    const sent = headers.authorization ?? '';
    const around = ['', 'k', 'ke', 'key'].flatMap((before) =>
      ['', '!', '!!'].map((after) => before + sent + after),
    );
    const escapes = [
      ...around.flatMap((text) => [
        Buffer.from(text).toString('base64'),
        Buffer.from(text).toString('base64url'),
      ]),
      ...[
        JSON.stringify(sent),
        JSON.stringify(JSON.stringify(sent)),
        encodeURI(sent),
        sent.replaceAll(' ', '+'),
      ],
      sent.replace(/[^\w]/g, (character) => `&#${character.charCodeAt(0)};`),
      sent.replace(/[^\w]/g, (character) => `&#x${character.charCodeAt(0).toString(16)};`),
      sent.replace(/./g, (character) => `\\u00${character.charCodeAt(0).toString(16).toUpperCase()}`),
      sent
        .replaceAll('&', '&amp;')
        .replaceAll('<', '&lt;')
        .replaceAll('"', '&quot;')
        .replaceAll("'", '&#039;'),
    ];
    response.end(escapes.join('\n'));
  });
  const tool = toolFor(host, { env: { PAY_KEY: secret }, secrets: secrets(host) });
  const { body } = await call(tool, {
    url: `http://${host}/`,
    headers: { authorization: 'Basic ${PAY_KEY}' },
  });
  assert.ok(typeof body === 'string');
  const lines = body.split('\n');
  assert.equal(lines.length, 12 * 2 + 8);
  for (const line of lines) assert.equal(line.split('${PAY_KEY}').length, 2, line);
  // of the base64 of a header only its own beginning is left
  assert.equal(Buffer.from(lines[0]?.split('$')[0] ?? '', 'base64').toString(), 'Basic ');
});

test('P10: what is wrong with a body is told without half a secret in it', async (t) => {
  const long = 'sk_live_'.padEnd(100, '0123456789abcdef');
  for (const answer of [
    text(`{"${long}": 1, "${long}": 2}`, 200, { 'content-type': 'application/json' }),
    text('x', 200, { 'content-encoding': long }),
  ]) {
    const { host } = await target(t, answer);
    const tool = toolFor(host, { env: { PAY_KEY: long }, secrets: secrets(host) });
    const output = await call(tool, { url: `http://${host}/`, headers: bearer });
    assert.match(output.bodyProblem ?? '', /\$\{PAY_KEY\}/);
    assert.doesNotMatch(JSON.stringify(output), /sk_live/);
  }
});

test('P10: one secret inside of another is taken out whole', async (t) => {
  const { host } = await target(t, text('key=abc-def, abc'));
  const env = { SHORT: 'abc', LONG: 'abc-def' };
  const both = { SHORT: { hosts: [host], headers: ['x-short'] }, LONG: { hosts: [host] } };
  const tool = toolFor(host, { env, secrets: both });
  const headers = { authorization: '${LONG}', 'x-short': '${SHORT}' };
  assert.equal((await call(tool, { url: `http://${host}/`, headers })).body, 'key=${LONG}, ${SHORT}');
});

test('P10: a placeholder that is not declared for that header and host is refused before anybody is asked', () => {
  const tool = httpTool({
    allowHosts: ['pay.example', 'logs.example', '*.shop.example'],
    secrets: {
      PAY_KEY: { hosts: ['pay.example'] },
      SHOP_KEY: { hosts: ['eu.shop.example'], headers: ['X-Shop-Key'] },
    },
  });
  const refused: [url: string, headers: Record<string, string>, problem: RegExp][] = [
    ['https://logs.example/', bearer, /PAY_KEY\} may be sent only to pay\.example, not to logs\.example/],
    ['https://pay.example/', { 'x-note': '${PAY_KEY}' }, /PAY_KEY\} may stand only in authorization/],
    ['https://us.shop.example/', { 'x-shop-key': '${SHOP_KEY}' }, /may be sent only to eu\.shop\.example/],
    ['https://pay.example/', { authorization: 'Bearer ${COUNTERSIGN_TOKEN}' }, /COUNTERSIGN_TOKEN\} is not a secret of this tool; it has PAY_KEY, SHOP_KEY/],
    ['https://pay.example/', { authorization: 'Bearer ${PAY-KEY}' }, /starts a placeholder.*this one is none/],
    ['https://pay.example/', { authorization: '${PAY_KEY} ${' }, /this one is none/],
    ['https://pay.example/', { authorization: '${${PAY_KEY}}' }, /this one is none/],
    ['https://pay.example/', { authorization: 'Bearer sk_live_1' }, /holds a credential, which would stand in the history/],
    ['https://pay.example/', { 'X-Api-Key': 'k' }, /holds a credential/],
    ['https://pay.example/', { cookie: 'session=1' }, /holds a credential/],
    ['https://pay.example/?key=${PAY_KEY}', {}, /url: \$\{PAY_KEY\} is a secret/],
    ['https://pay.example/%24%7BPAY_KEY%7D', {}, /url: \$\{PAY_KEY\} is a secret/],
  ]; // prettier-ignore
  for (const [url, headers, problem] of refused) {
    assert.match(freezeProblems(tool, { method: 'POST', url, headers }), problem, url);
  }
  const inBody = { method: 'POST', url: 'https://pay.example/', body: { a: [{ 'x${PAY_KEY}': 1 }] } };
  assert.match(freezeProblems(tool, inBody), /body: \$\{PAY_KEY\} is a secret/);
  // text that only looks like one is text: no value would be filled in
  const shell = { method: 'POST', url: 'https://logs.example/', body: { text: 'echo ${HOME}' } };
  assert.ok(tool.arguments.safeParse(shell).success);
  assert.ok(tool.arguments.safeParse({ method: 'GET', url: 'https://eu.shop.example/', headers: { 'x-shop-key': '${SHOP_KEY}' } }).success); // prettier-ignore
});

test('P10: the frozen case holds the placeholder, and so does all that perform returns', async (t) => {
  const { host, received } = await target(t, (response, { headers }) => json({ got: headers.authorization })(response, undefined as never)); // prettier-ignore
  const tool = toolFor(host, { env: { PAY_KEY: value }, secrets: secrets(host) });
  const logged: unknown[] = [];
  const deps = depsWith({ tools: [tool], log: (...line) => logged.push(line) });
  const args = { method: 'POST', url: `http://${host}/pay`, headers: bearer, body: { amount: 1 } };
  const frozen = (await run('freezeCase', deps, {
    ...{ v: 1, position, root, key, now, phase: 'before', tool: 'http', arguments: args },
  })) as CaseRecord;
  const { arguments: given = null, payloadHash } = frozen;
  const record: EffectRecord = await run('perform', deps, {
    ...{ v: 1, position, root, tool: 'http', arguments: given, payloadHash },
  });
  assert.equal(received[0]?.headers.authorization, `Bearer ${value}`);
  assert.equal(received[0].headers['idempotency-key'], idempotencyKey);
  assert.deepEqual((record.output as unknown as HttpOutput).body, { got: 'Bearer ${PAY_KEY}' });
  for (const seen of [frozen, record, logged]) assert.ok(!JSON.stringify(seen).includes('sk_live_a'));
});

test('P10: a secret crosses no foreign network in the clear', async (t) => {
  const { port, received } = await target(t);
  const host = `pay.example.test:${port}`;
  const tool = (addresses: ResolvedAddress[]) =>
    toolFor(host, {
      env: { PAY_KEY: value },
      secrets: secrets(host),
      resolve: resolver([addresses]).resolve,
    });
  const [kind, message] = await failed(
    call(tool([publicAddress]), { url: `http://${host}/`, headers: bearer }),
  );
  assert.deepEqual([kind, received.length], ['refused', 0]);
  assert.match(message, /by https only/);
  assert.equal((await call(tool([loopback]), { url: `http://${host}/`, headers: bearer })).status, 200);
});

test('P10: a secret that is not set, or cannot be sent, is named and never shown', async (t) => {
  const { host, received } = await target(t);
  for (const [env, problem] of [
    [{}, /PAY_KEY is not set here/],
    [{ PAY_KEY: '' }, /PAY_KEY is not set here/],
    [{ PAY_KEY: 'secret\n' }, /PAY_KEY holds a character that a header cannot hold/],
    [{ PAY_KEY: 'secret\r\nx-evil: 1' }, /PAY_KEY holds a character/],
    [{ PAY_KEY: 'sécret' }, /PAY_KEY holds a character/],
  ] as [NodeJS.ProcessEnv, RegExp][]) {
    const tool = toolFor(host, { env, secrets: secrets(host) });
    const [kind, message] = await failed(call(tool, { url: `http://${host}/`, headers: bearer }));
    assert.equal(kind, 'clear retry', 'another worker may have it');
    assert.match(message, problem);
    assert.doesNotMatch(message, /s.cret/);
  }
  assert.equal(received.length, 0);
});
