// The ledger is what every count of "once" rests on, so it is tested as hard as what it judges.
import assert from 'node:assert/strict';
import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { eventually } from './support/eventually.ts';
import { startLedger, type Ledger } from './support/ledger.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

const body = { amount: '12.50', currency: 'EUR', order: 'ord-1' };
/** sha256 of {"amount":"12.50","currency":"EUR","order":"ord-1"} */
const bodyHash = 'sha256:9d18ded50969add9c05765815e9b0c44d71a30bc313f63424979f814e9a45448';

function refund(ledger: Ledger, key: string | undefined, sent: unknown = body): Promise<Response> {
  return fetch(`${ledger.url}/refunds`, {
    method: 'POST',
    headers: key === undefined ? {} : { 'idempotency-key': key },
    body: typeof sent === 'string' ? sent : JSON.stringify(sent),
  });
}

test('a request with the same key and body is answered as the first, and refunds once', async () => {
  const ledger = await startLedger();
  const first = await refund(ledger, 'run:refund');
  assert.equal(first.status, 201);
  assert.equal(first.headers.get('idempotent-replayed'), null);
  const told = await first.json();

  // Other spacing and order of the members: the same value, so the same request.
  const again = await refund(ledger, 'run:refund', '{"order":"ord-1", "currency":"EUR","amount":"12.50"}');
  assert.equal(again.status, 201);
  assert.equal(again.headers.get('idempotent-replayed'), 'true');
  assert.deepEqual(await again.json(), told);

  assert.deepEqual(await ledger.counts(), { requests: 2, keys: 1, refunds: 1 });
  const [line] = await ledger.lines();
  assert.equal(line?.key, 'run:refund');
  assert.deepEqual(line?.body, body);
  assert.equal(line?.payloadHash, bodyHash);
  await ledger.process.stop();
});

test('a key used with another body is refused with 422 and refunds nothing', async () => {
  const ledger = await startLedger();
  await refund(ledger, 'run:refund');
  assert.equal((await refund(ledger, 'run:refund', { ...body, amount: '99.00' })).status, 422);
  assert.deepEqual(await ledger.counts(), { requests: 2, keys: 1, refunds: 1 });
  await ledger.process.stop();
});

test('a request without a key, or without JSON, is refused with 400 and leaves no line', async () => {
  const ledger = await startLedger();
  assert.equal((await refund(ledger, undefined)).status, 400);
  assert.equal((await refund(ledger, 'run:refund', '{"amount":')).status, 400);
  assert.deepEqual(await ledger.counts(), { requests: 0, keys: 0, refunds: 0 });
  await ledger.process.stop();
});

test('twenty requests with one key at once refund once', async () => {
  const ledger = await startLedger();
  const answers = await Promise.all(Array.from({ length: 20 }, () => refund(ledger, 'run:refund')));
  const replayed = answers.filter((answer) => answer.headers.get('idempotent-replayed') === 'true');
  assert.equal(replayed.length, 19);
  assert.deepEqual(await ledger.counts(), { requests: 20, keys: 1, refunds: 1 });
  await ledger.process.stop();
});

test('the target without keys carries out every request', async () => {
  const ledger = await startLedger();
  for (let call = 0; call < 2; call += 1) {
    const answer = await fetch(`${ledger.url}/plain`, { method: 'POST', body: JSON.stringify(body) });
    assert.equal(answer.status, 201);
  }
  assert.deepEqual(await ledger.counts(), { requests: 2, keys: 0, refunds: 2 });
  await ledger.process.stop();
});

test('a ledger told to fail answers so, keeps the line and does not refund', async () => {
  const ledger = await startLedger();
  await ledger.fail({ status: 503, times: 1 });
  assert.equal((await refund(ledger, 'run:refund')).status, 503);
  assert.equal((await refund(ledger, 'run:refund')).status, 201);
  assert.deepEqual(await ledger.counts(), { requests: 2, keys: 1, refunds: 1 });
  await ledger.process.stop();
});

test('while it holds, the refund is carried out and the answer stays; release lets it go', async () => {
  const ledger = await startLedger();
  await ledger.hold();
  let answered = false;
  const waiting = refund(ledger, 'run:refund').then((response) => {
    answered = true;
    return response;
  });
  await eventually(async () => (await ledger.counts()).refunds === 1);
  assert.equal(answered, false);
  await ledger.release();
  assert.equal((await waiting).status, 201);
  await ledger.process.stop();
});

test('what was written before a kill -9 is there after it, and the key is still carried out once', async () => {
  const file = join(temporaryFolder(), 'ledger.jsonl');
  const killed = await startLedger({ file });
  await killed.hold();
  const cut = assert.rejects(refund(killed, 'run:refund'), TypeError);
  await eventually(async () => (await killed.counts()).refunds === 1);
  await killed.process.kill();
  await cut;

  const restarted = await startLedger({ file });
  assert.deepEqual(await restarted.counts(), { requests: 1, keys: 1, refunds: 1 });
  const again = await refund(restarted, 'run:refund');
  assert.equal(again.status, 201);
  assert.equal(again.headers.get('idempotent-replayed'), 'true');
  assert.deepEqual(await restarted.counts(), { requests: 2, keys: 1, refunds: 1 });
  await restarted.process.stop();
});

test('a line that a kill tore in two was never answered and is dropped', async () => {
  const file = join(temporaryFolder(), 'ledger.jsonl');
  const killed = await startLedger({ file });
  await refund(killed, 'run:refund');
  await killed.process.kill();
  const whole = readFileSync(file, 'utf8');
  appendFileSync(file, whole.slice(0, 40));

  const restarted = await startLedger({ file });
  assert.equal(readFileSync(file, 'utf8'), whole);
  await refund(restarted, 'run:other');
  assert.deepEqual(await restarted.counts(), { requests: 2, keys: 2, refunds: 2 });
  await restarted.process.stop();
});

test('a ledger ends with the process that started it', async () => {
  const ledger = await startLedger();
  ledger.process.closeInput();
  await eventually(() => !ledger.process.running());
});
