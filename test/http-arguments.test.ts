// What the http tool may be told to call: refused when the call is frozen, before a person is asked, and again
// when it is sent; and refused when the tool is made, where it could not be meant.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ProblemRecord } from '../src/core/case.ts';
import { httpTool, type HttpToolOptions } from '../src/tools/http-tool.ts';
import { depsWith, position, root, run } from './support/activity.ts';
import { failed, freezeProblems, idempotencyKey, target, toolFor } from './support/http-target.ts';

test('a call that could not be sent is refused before anybody is asked', () => {
  const tool = httpTool({ allowHosts: ['api.example.com'] });
  const good = { method: 'POST', url: 'https://api.example.com/' };
  const refused: [unknown, RegExp][] = [
    [{ ...good, url: 'https://evil.example/' }, /https:\/\/evil\.example is not an allowed host; the tool may call api\.example\.com/],
    [{ ...good, url: 'https://api.example.com:8443/' }, /is not an allowed host/],
    [{ ...good, url: 'http://2130706433/' }, /means 127\.0\.0\.1/],
    [{ ...good, url: 'https://u:p@api.example.com/' }, /user or password/],
    [{ ...good, url: 'file:///etc/passwd' }, /is not a URL/],
    [{ ...good, url: 1 }, /expected string/],
    [{ ...good, method: 'TRACE' }, /expected one of/],
    [{ ...good, method: 'post' }, /expected one of/],
    [{ ...good, method: 'GET', body: {} }, /GET has no body/],
    [{ ...good, idempotency: 'key' }, /Unrecognized key/],
    [{ ...good, targetTakesKey: true }, /Unrecognized key/],
    [{ ...good, headers: { Host: 'evil.example' } }, /"host" is set by the tool itself/],
    [{ ...good, headers: { 'Idempotency-Key': 'mine' } }, /"idempotency-key" is set by the tool itself/],
    [{ ...good, headers: { 'Transfer-Encoding': 'chunked' } }, /is set by the tool itself/],
    [{ ...good, headers: { 'Content-Length': '1' } }, /is set by the tool itself/],
    [{ ...good, headers: { 'Proxy-Authorization': 'x' } }, /is set by the tool itself/],
    [{ ...good, headers: { 'Content-Type': 'text/plain' } }, /bodies are JSON/],
    [{ ...good, headers: { 'a b': 'x' } }, /is not a header name/],
    [{ ...good, headers: { 'a:b': 'x' } }, /is not a header name/],
    [{ ...good, headers: { a: 'x', A: 'y' } }, /is given twice/],
    [{ ...good, headers: { a: 'x\r\nb: y' } }, /not printable ASCII/],
    [{ ...good, headers: { a: 'é' } }, /not printable ASCII/],
    [{ ...good, headers: { a: '' } }, /empty/],
    [{ ...good, headers: { a: 'x'.repeat(8_001) } }, /over 8000 characters/],
    [{ ...good, headers: Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`a${i}`, 'x'])) }, /51 headers, at most 50/],
    [{ ...good, headers: { a: 1 } }, /expected string/],
  ]; // prettier-ignore
  for (const [args, problem] of refused)
    assert.match(freezeProblems(tool, args), problem, JSON.stringify(args));
});

test('P3: what the case shows is what goes out: the URL as it is called, header names as they are sent', async () => {
  const deps = depsWith({ tools: [httpTool({ allowHosts: ['api.example.com'] })] });
  const args = { method: 'POST', url: 'HTTPS://API.example.com:443/a/../b?é', headers: { 'X-Tenant': 'a' } };
  const what = { tool: 'http', arguments: args };
  const prepared = await run('prepareStep', deps, { v: 1, position, root, what });
  assert.ok(prepared.kind === 'prepared');
  assert.deepEqual(prepared.arguments, {
    method: 'POST',
    url: 'https://api.example.com/b?%C3%A9',
    headers: { 'x-tenant': 'a' },
  });
  const evil = { ...args, url: 'https://evil.example/' };
  const refused = await run('prepareStep', deps, {
    v: 1,
    position,
    root,
    what: { tool: 'http', arguments: evil },
  });
  assert.deepEqual([refused.kind, (refused as ProblemRecord).code], ['problem', 'invalid_arguments']);
});

test('a host that left the allow list after the call was frozen is refused', async (t) => {
  const { host, received } = await target(t);
  const before = toolFor(host);
  const after = toolFor('other.example');
  const frozen = before.arguments.parse({ method: 'POST', url: `http://${host}/` });
  const context = { idempotencyKey, signal: new AbortController().signal, attempt: 1, log: () => undefined, heartbeat: () => undefined }; // prettier-ignore
  const [kind, message] = await failed(after.run(context, frozen));
  assert.deepEqual([kind, received.length], ['refused', 0]);
  assert.match(message, /is not an allowed host; the tool may call other\.example/);
});

test('P5: one attempt, unless the deployment says that its targets take a key, or the call only reads', async () => {
  const allowHosts = ['api.example.com'];
  const tools = [httpTool({ allowHosts, attempts: 4 }), httpTool({ name: 'http.keyed', allowHosts, targetTakesKey: true, attempts: 4 })]; // prettier-ignore
  const deps = depsWith({ tools });
  const effect = async (tool: string, method: string) => {
    const call = { tool, arguments: { method, url: 'https://api.example.com/' } };
    const prepared = await run('prepareStep', deps, { v: 1, position, root, what: call });
    assert.ok(prepared.kind === 'prepared');
    return prepared.effect;
  };
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
    assert.deepEqual(await effect('http', method), {
      idempotency: 'none',
      startToCloseMs: 60_000,
      maximumAttempts: 1,
    });
    assert.equal((await effect('http.keyed', method)).maximumAttempts, 4);
  }
  for (const method of ['GET', 'HEAD']) assert.equal((await effect('http', method)).maximumAttempts, 4);
  assert.deepEqual(tools.map(({ idempotency }) => idempotency), ['none', 'key']); // prettier-ignore
});

test('a tool that could not be meant is refused when it is made', () => {
  const allowHosts = ['api.example.com'];
  const wrong: [HttpToolOptions, RegExp][] = [
    [{ allowHosts: [] }, /allowHosts is empty/],
    [{ allowHosts: ['*'] }, /a host is written like/],
    [{ allowHosts: ['https://api.example.com'] }, /a host is written like/],
    [{ allowHosts, allowPrivate: ['169.254.169.254'] }, /can be allowed/],
    [{ allowHosts, maxResponseBytes: -1 }, /maxResponseBytes is a whole number/],
    [{ allowHosts, keyTtl: '24h' }, /keyTtl is for targets that take a key/],
    [{ allowHosts, keyMaxLength: 10 }, /keyMaxLength must be at least 43/],
    [{ allowHosts, name: 'a b' }, /its name must be/],
    [{ allowHosts, secrets: { PAY_KEY: { hosts: ['other.example'] } } }, /PAY_KEY: the host other\.example is not one of allowHosts/],
    [{ allowHosts, secrets: { PAY_KEY: { hosts: [] } } }, /PAY_KEY names no host/],
    [{ allowHosts, secrets: { 'PAY-KEY': { hosts: allowHosts } } }, /is not the name of an environment variable/],
  ]; // prettier-ignore
  for (const [options, problem] of wrong) assert.throws(() => httpTool(options), problem);
  assert.equal(httpTool({ allowHosts, targetTakesKey: true, keyTtl: '24h', keyMaxLength: 43 }).keyTtl, '24h');
});
