// Decisions whose verdict is not there: recorded is not accepted, a lost answer is never a false yes, and
// the receipts of a run are asked for once for all who wait.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createReceiptDesk } from '../src/api/receipts.ts';
import { NoWorkerError, TemporalUnavailableError } from '../src/countersign-client.ts';
import type { Receipt } from '../src/core/verdict.ts';
import { createApiHarness } from './support/api-harness.ts';

const any = () => true;
const receipt = (decisionId: string, verdict: Receipt['verdict'] = 'accepted'): Receipt => ({
  decisionId,
  decision: 'approve',
  verdict,
});

test('without a worker a decision is 202, and its Location says later what became of it', async () => {
  const { call, fake, approve, reject } = createApiHarness({ receiptBudgetMs: 20 });
  const { key, hash } = fake.ask({ runId: 'r1' });
  fake.control.workers = 'down';
  const first = await approve(key, hash);
  assert.equal(first.status, 202);
  assert.equal(first.body['verdict'], 'pending');
  assert.equal(first.body['state'], 'pending');
  const location = first.headers.get('location') ?? '';
  assert.equal(location, `/approvals/${key}/decisions/${String(first.body['decisionId'])}`);
  const second = await reject(key, { as: 'bob' });
  assert.equal(second.status, 202);
  assert.equal(fake.must('r1').signals.length, 2, 'both are in history');
  const early = await call('GET', location);
  assert.equal(early.status, 202);
  assert.deepEqual(early.body, first.body);
  fake.work();
  fake.control.workers = 'down'; // what was judged is told from the trail
  const judged = await call('GET', location);
  assert.equal(judged.status, 200);
  assert.equal(judged.body['state'], 'approved');
  const lost = await call('GET', second.headers.get('location') ?? '');
  assert.equal(lost.status, 409);
  assert.equal((lost.body['winner'] as Record<string, unknown>)['decisionId'], first.body['decisionId']);
});

test('a decision’s address gives the status and body that the POST gave', async () => {
  const { call, fake, approve } = createApiHarness();
  const { key, hash } = fake.ask({ runId: 'r1' });
  fake.control.refuseWith = 'spec_changed';
  const refused = await approve(key, hash, { headers: { 'idempotency-key': 'k' } });
  const address = `/approvals/${key}/decisions/${String(refused.body['decisionId'])}`;
  const again = await call('GET', address);
  assert.equal(again.status, 409);
  assert.equal(again.body['code'], 'spec_changed');
  assert.equal(again.body['detail'], refused.body['detail']);
  delete fake.control.refuseWith;
  const accepted = await approve(key, hash, { headers: { 'idempotency-key': 'k' } });
  assert.equal(accepted.status, 200);
  assert.deepEqual((await call('GET', address)).body, accepted.body);
});

test('a hand-sent decision with any text as its id has an address too', async () => {
  const { call, fake } = createApiHarness();
  const { key, hash, root } = fake.ask({ runId: 'r1' });
  fake.control.workers = 'down';
  const decision = { v: 1, key, root, decision: 'approve', payloadHash: hash } as const;
  await fake.client.sendDecision('r1', { ...decision, decisionId: 'é /\n', by: { id: 'x' }, via: 'signal' });
  const address = `/approvals/${key}/decisions/${encodeURIComponent('é /\n')}`;
  const answer = await call('GET', address);
  assert.equal(answer.status, 202);
  assert.equal(answer.headers.get('location'), address);
});

test('a refused decision that was sent again is 202 until it is judged again', async () => {
  const { call, fake, approve } = createApiHarness({ receiptBudgetMs: 20 });
  const { key, hash } = fake.ask({ runId: 'r1' });
  fake.control.refuseWith = 'spec_changed';
  const refused = await approve(key, hash);
  fake.control.workers = 'down';
  assert.equal((await approve(key, hash)).status, 202);
  const address = `/approvals/${key}/decisions/${String(refused.body['decisionId'])}`;
  assert.equal((await call('GET', address)).status, 202);
  delete fake.control.refuseWith;
  fake.work();
  assert.equal((await call('GET', address)).status, 200);
});

test('the same person’s second, equal decision is told as the first, by its address too', async () => {
  const { call, fake, approve } = createApiHarness({ receiptBudgetMs: 20 });
  const { key, hash } = fake.ask({ runId: 'r1' });
  fake.control.workers = 'down';
  const one = await approve(key, hash, { headers: { 'idempotency-key': '1' } });
  const two = await approve(key, hash, { headers: { 'idempotency-key': '2' } });
  assert.deepEqual([one.status, two.status], [202, 202]);
  fake.work();
  const told = await call('GET', two.headers.get('location') ?? '');
  assert.equal(told.status, 200);
  assert.equal(told.body['decisionId'], one.body['decisionId']);
});

test('a decision that was never sent is 404, never 202, with and without workers', async () => {
  const { call, fake } = createApiHarness();
  const { key } = fake.ask({ runId: 'r1' });
  for (const workers of ['up', 'down'] as const) {
    fake.control.workers = workers;
    const answer = await call('GET', `/approvals/${key}/decisions/${'0'.repeat(32)}`);
    assert.equal(answer.status, 404);
    assert.equal(answer.body['code'], 'decision_not_found');
  }
});

test('a decision that its run never judged is 409 once the run ended', async () => {
  const { call, fake, approve } = createApiHarness({ receiptBudgetMs: 20 });
  const { key, hash } = fake.ask({ runId: 'r1' });
  fake.control.workers = 'down';
  const sent = await approve(key, hash);
  fake.close('r1', 'terminated');
  const answer = await call('GET', sent.headers.get('location') ?? '');
  assert.equal(answer.status, 409);
  assert.equal(answer.body['state'], 'cancelled');
});

test('a lost answer is 503 and no yes; sent again it is the one decision', async () => {
  for (const headers of [{}, { 'idempotency-key': 'k' }] as Record<string, string>[]) {
    const { fake, approve } = createApiHarness();
    const { key, hash } = fake.ask({ runId: 'r1' });
    fake.control.loseAnswers = true;
    const lost = await approve(key, hash, { headers });
    assert.equal(lost.status, 503);
    assert.equal(lost.body['detail'], 'not confirmed; send it again with the same Idempotency-Key');
    fake.control.loseAnswers = false;
    const again = await approve(key, hash, { headers });
    assert.equal(again.status, 200);
    assert.equal(fake.must('r1').facts.filter(({ type }) => type === 'approval_granted').length, 1);
  }
});

test('a run that ends between the look and the signal is answered by what became of it', async () => {
  const { fake, reject } = createApiHarness();
  const { key } = fake.ask({ runId: 'r1' });
  fake.control.afterDescribe = () => {
    delete fake.control.afterDescribe;
    fake.expire(key);
    fake.close('r1', 'completed');
  };
  assert.equal((await reject(key)).status, 404);
  const gone = fake.ask({ runId: 'r2' });
  fake.control.afterDescribe = () => {
    delete fake.control.afterDescribe;
    fake.forget('r2');
  };
  assert.equal((await reject(gone.key)).status, 404);
});

test('a run that says it is open and takes no signal is 503, never a yes', async () => {
  const { fake, reject, call } = createApiHarness();
  const { key } = fake.ask({ runId: 'r1' });
  const { reject: rejectAgain } = createApiHarness({
    client: { ...fake.client, sendDecision: async () => false },
  });
  assert.equal((await rejectAgain(key)).status, 503);
  assert.equal((await call('GET', `/approvals/${key}`)).body['state'], 'pending');
  assert.equal((await reject(key)).status, 200);
});

test('receipts that are still pending are asked for again until the verdict is there', async () => {
  const { fake, approve } = createApiHarness();
  const { key, hash } = fake.ask({ runId: 'r1' });
  fake.control.pendingAnswers = 5;
  assert.equal((await approve(key, hash)).status, 200);
  assert.equal(fake.control.calls.queryReceipts, 6);
});

test('the same request at the same time waits for the first one’s verdict', async () => {
  const { fake, approve } = createApiHarness();
  const { key, hash } = fake.ask({ runId: 'r1' });
  let release: () => void = () => assert.fail('nothing waits');
  const reached = new Promise<void>((resolve) => {
    fake.control.queryPause = () => {
      resolve();
      return new Promise<void>((go) => (release = go));
    };
  });
  const headers = { 'idempotency-key': 'k' };
  const first = approve(key, hash, { headers });
  await reached;
  const second = approve(key, hash, { headers });
  const other = await approve(key, otherHash(hash), { headers });
  assert.equal(other.status, 422);
  release();
  assert.deepEqual((await first).body, (await second).body);
  assert.equal(fake.must('r1').signals.length, 1);
});

function otherHash(hash: string): string {
  return `${hash.slice(0, -1)}${hash.endsWith('0') ? '1' : '0'}`;
}

test('who joins while a query is in flight gets the next one, and one query serves all who wait', async () => {
  const asked: string[][] = [];
  const answers: (() => void)[] = [];
  const desk = createReceiptDesk(
    {
      queryReceipts: (_run, ids) => {
        asked.push([...ids]);
        return new Promise((resolve) => answers.push(() => resolve(ids.map((id) => receipt(id)))));
      },
    },
    10_000,
    (error) => assert.fail(String(error)),
  );
  const first = desk.waitFor('r', 'a', any);
  const later = ['b', 'c', 'd'].map((id) => desk.waitFor('r', id, any));
  assert.deepEqual(asked, [['a']]);
  answers.shift()?.();
  assert.equal((await first)?.decisionId, 'a');
  await new Promise(setImmediate);
  assert.deepEqual(asked, [['a'], ['b', 'c', 'd']]);
  answers.shift()?.();
  assert.deepEqual(
    (await Promise.all(later)).map((found) => found?.decisionId),
    ['b', 'c', 'd'],
  );
  void desk.waitFor('r', 'e', any);
  void desk.waitFor('other', 'f', any);
  assert.deepEqual(asked.slice(2), [['e'], ['f']], 'another run has a query of its own');
  answers.splice(0).forEach((answer) => answer());
});

test('a waiter gives up after its own budget, however long the query takes', async () => {
  const desk = createReceiptDesk({ queryReceipts: () => new Promise(() => undefined) }, 30, () => undefined);
  assert.equal(await desk.waitFor('r', 'a', any), undefined);
});

test('where Temporal cannot be reached, or knows of no poller just now, it is asked again', async () => {
  for (const lost of [new TemporalUnavailableError('down'), new NoWorkerError('no poller seen')]) {
    let failures = 3;
    const shaky = createReceiptDesk(
      {
        queryReceipts: async (_run, [id = '']) => {
          failures -= 1;
          if (failures >= 0) throw lost;
          return [receipt(id)];
        },
      },
      60_000,
      (error) => assert.fail(String(error)),
    );
    assert.equal((await shaky.waitFor('r', 'a', any))?.verdict, 'accepted');
  }
});

test('no worker within the budget: there is no receipt', async () => {
  const none = createReceiptDesk(
    { queryReceipts: () => Promise.reject(new NoWorkerError('none')) },
    30,
    (error) => assert.fail(String(error)),
  );
  assert.equal(await none.waitFor('r', 'a', any), undefined);
});

test('a query that Temporal lost is asked again while there is time', async () => {
  const given: number[] = [];
  const desk = createReceiptDesk(
    {
      queryReceipts: async (_run, [id = ''], timeoutMs) => {
        given.push(timeoutMs);
        if (given.length > 1) return [receipt(id)];
        await sleep(timeoutMs);
        throw new NoWorkerError('nothing came in that time');
      },
    },
    60_000,
    (error) => assert.fail(String(error)),
  );
  assert.equal((await desk.waitFor('r', 'a', any))?.verdict, 'accepted');
  const [first = 0, second = 0] = given;
  assert.equal(given.length, 2);
  assert.ok(first < 60_000 / 2 && second > first, given.join());
});

test('a receipt of another content under the same id is not taken for this one', async () => {
  const desk = createReceiptDesk(
    { queryReceipts: async () => [{ ...receipt('a'), decision: 'reject' }] },
    60,
    (error) => assert.fail(String(error)),
  );
  assert.equal(await desk.waitFor('r', 'a', ({ decision }) => decision === 'approve'), undefined);
});

test('a bug in reading receipts is logged and leaves nobody waiting', async () => {
  const bugs: unknown[] = [];
  const desk = createReceiptDesk(
    { queryReceipts: () => Promise.reject(new TypeError('a bug')) },
    60_000,
    (error) => bugs.push(error),
  );
  assert.equal(await desk.waitFor('r', 'a', any), undefined);
  assert.equal(await desk.waitFor('r', 'b', any), undefined);
  assert.equal(bugs.length, 2);
});
