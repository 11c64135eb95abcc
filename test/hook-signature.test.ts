// The signature of a webhook: Standard Webhooks to the letter, over the bytes as they came.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { signatureProblem, type SignedDelivery } from '../src/api/hook-signature.ts';
import { openTriggers } from '../src/triggers.ts';
import { signingSecret, signWebhook } from './support/webhook.ts';

const seconds = 1614265330;
const body = Buffer.from('{"test": 2432232314}');
const published = {
  id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  timestamp: String(seconds),
  signature: 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  body,
};
const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

const openssl = spawnSync('openssl', ['version']);

/** The keys as the API gets them: from placeholders in the config and the environment. */
function keysOf(...secrets: string[]): readonly Uint8Array[] {
  const env = Object.fromEntries(secrets.map((text, at) => [`S${at}`, text]));
  const config = { spec: 'refund', secrets: Object.keys(env).map((name) => `\${${name}}`), input: {} };
  return openTriggers({ shop: config }, env, () => undefined).get('shop')?.secrets ?? assert.fail();
}

const check = (delivery: SignedDelivery, keys = keysOf(secret), now = seconds) =>
  signatureProblem(delivery, keys, now * 1000);

test('the vector that Standard Webhooks publishes is valid, at its time', () => {
  assert.equal(check(published), undefined);
  assert.equal(
    check(published, keysOf(secret.replace('whsec_', ''))),
    undefined,
    'the prefix may be missing',
  );
});

test('a change of one byte of id, time, body, signature or secret is invalid', () => {
  const flipped = Buffer.from(body);
  flipped[9] = (flipped[9] ?? 0) ^ 1;
  const changed: Partial<SignedDelivery>[] = [
    { id: published.id.replace('p', 'q') },
    { id: '' },
    { timestamp: String(seconds + 1) },
    { timestamp: `${seconds}.0` },
    { timestamp: ` ${seconds}` },
    { timestamp: '' },
    { timestamp: 'now' },
    { body: flipped },
    { body: Buffer.concat([body, Buffer.from(' ')]) },
    { body: new Uint8Array() },
    { signature: published.signature.replace('g0h', 'g1h') },
    { signature: published.signature.replace('=', '') },
    { signature: `${published.signature}=` },
    { signature: published.signature.replace('v1', 'v2') },
    { signature: published.signature.replace('v1,', 'v1a,') },
    { signature: published.signature.replace('v1,', '') },
    { signature: 'v1,' },
    { signature: '' },
  ];
  for (const change of changed) {
    assert.equal(check({ ...published, ...change }), 'invalid', JSON.stringify(change));
  }
  const other = secret.replace('MfK', 'MfL');
  assert.equal(check(published, keysOf(other)), 'invalid');
});

test('one good signature among others is enough, whichever secret made it', () => {
  const [old, fresh, foreign] = [signingSecret('old'), signingSecret('fresh'), signingSecret('foreign')];
  const signed = (...secrets: string[]) => {
    const headers = signWebhook({ at: seconds, body, secrets });
    const { 'webhook-id': id = '', 'webhook-signature': signature = '' } = headers;
    return { id, timestamp: String(seconds), signature, body };
  };
  const both = keysOf(fresh, old);
  for (const secrets of [[old], [fresh], [old, fresh], [foreign, old], [fresh, foreign]]) {
    assert.equal(check(signed(...secrets), both), undefined);
  }
  assert.equal(check(signed(foreign), both), 'invalid');
  assert.equal(check(signed(old), keysOf(fresh)), 'invalid', 'after the rotation the old one is nothing');
  const amongOthers = `v1a,xxxx ${signed(fresh).signature} v2,yyyy`;
  assert.equal(check({ ...signed(fresh), signature: amongOthers }, both), undefined);
});

test('five minutes from now, either way, is the end; what is not truly signed is never called stale', () => {
  const keys = keysOf(secret);
  for (const [now, problem] of [
    [seconds - 301, 'stale'],
    [seconds - 300, undefined],
    [seconds + 300, undefined],
    [seconds + 301, 'stale'],
  ] as const) {
    assert.equal(check(published, keys, now), problem, String(now - seconds));
  }
  assert.equal(check({ ...published, id: 'another' }, keys, seconds + 301), 'invalid');
});

test(
  'the shell commands of docs/hooks.md sign a delivery',
  { skip: openssl.error !== undefined && 'no openssl here' },
  () => {
    const text = readFileSync(new URL('../docs/hooks.md', import.meta.url), 'utf8');
    const [, commands = ''] = /^(BODY=[^]*?)^curl /m.exec(text) ?? assert.fail('no such commands');
    const env = { PATH: process.env['PATH'], SHOP_HOOK_SECRET: secret };
    const shell = spawnSync(
      'sh',
      ['-c', `${commands}printf '%s|%s|%s|%s' "$ID" "$NOW" "$SIGNATURE" "$BODY"`],
      { env },
    );
    const [id = '', timestamp = '', signature = '', sent = ''] = shell.stdout.toString().split('|');
    const delivery = { id, timestamp, signature: `v1,${signature}`, body: Buffer.from(sent) };
    assert.equal(check(delivery, keysOf(secret), Number(timestamp)), undefined, shell.stderr.toString());
  },
);

test('a signing secret stands in the environment alone, and is named and never shown when it is none', () => {
  const trigger = { spec: 'refund', secrets: ['${NEW}', '${OLD}'], input: {} };
  const told: string[] = [];
  const open = (env: NodeJS.ProcessEnv) => openTriggers({ shop: trigger }, env, (line) => told.push(line));
  assert.throws(() => open({}), {
    name: 'TypeError',
    message: /"shop": no signing secret is set; set NEW or OLD/,
  });
  assert.equal(open({ OLD: secret }).get('shop')?.secrets.length, 1);
  assert.deepEqual(told, ['trigger "shop": NEW is not set, and nothing is verified with it']);
  assert.equal(open({ OLD: secret, NEW: signingSecret('new') }).get('shop')?.secrets.length, 2);
  for (const bad of ['whsec_SHORTSHORT', 'whsec_PLANTED!PLANTED!PLANTED!PLANTED!', 'whsec_']) {
    assert.throws(
      () => open({ NEW: secret, OLD: bad }),
      (error: Error) => {
        assert.match(error.message, /"shop": OLD is no signing secret: it must be whsec_ and base64/);
        assert.doesNotMatch(error.message, /SHORT|PLANTED/);
        return true;
      },
    );
  }
});
