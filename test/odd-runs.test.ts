// Whoever may write to the namespace can make a run that nobody's code made. It may be told badly; it must not
// take the doors of all other runs with it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Client } from '@temporalio/client';
import { defaultPayloadConverter } from '@temporalio/common';
import { describeExecution, type ExecutionInfo } from '../src/run-description.ts';
import { runRow } from '../src/api/run-view.ts';
import { createApiHarness } from './support/api-harness.ts';
import { listen } from './support/event-listener.ts';
import { eventually } from './support/eventually.ts';

const root = '019d2b1a-7f3e-7c11-9d55-046acc729732';
const client = { options: { loadedDataConverter: { payloadCodecs: [] } } } as unknown as Client;

/** The run's row, as a list shows it. */
async function rowOf(memo: Record<string, unknown>, more: Record<string, unknown> = {}) {
  const fields = Object.fromEntries(
    Object.entries(memo).map(([name, value]) => [name, defaultPayloadConverter.toPayload(value)]),
  );
  const info = {
    ...{ execution: { workflowId: 'r1', runId: root }, type: { name: 'runSpec' }, status: 1 },
    ...{ memo: { fields }, startTime: { seconds: 1_800_000_000 }, ...more },
  };
  const run = await describeExecution(client, info as unknown as ExecutionInfo);
  return { ...runRow(run, undefined), kept: run.approvals.map(({ position }) => position) };
}

const oddMemos: Record<string, [field: string, value: unknown]> = {
  'a position ".."': ['approval/..', { state: 'pending' }],
  'an empty position': ['approval/', { state: 'pending' }],
  'a position of 700 characters': [`approval/${'p'.repeat(700)}`, { state: 'pending' }],
  'a time that no Date has': ['approval/z', { state: 'pending', expiresAt: 1e300 }],
  'a time that is text': ['approval/z', { state: 'pending', requestedAt: 'x' }],
  'an end at no time': ['approval/z', { state: 'approved', at: 1e300 }],
  'a phase that there is not': ['approval/z', { state: 'pending', phase: 'q' }],
  'a title that is no text': ['approval/z', { state: 'pending', title: {} }],
  'no state': ['approval/z', {}],
  'a list': ['approval/z', []],
};

for (const [what, [field, value]] of Object.entries(oddMemos)) {
  test(`a memo field with ${what} is no approval, and the others of its run stay`, async () => {
    const good = { state: 'pending', phase: 'before', expiresAt: 1_800_000_000_000 };
    const row = await rowOf({ [field]: value, 'approval/good': good });
    assert.deepEqual(row.kept, ['good']);
    assert.deepEqual(
      row.pendingApprovals.map(({ position, expiresAt }) => [position, expiresAt]),
      [['good', '2027-01-15T08:00:00.000Z']],
    );
  });
}

test('a run whose id or root can have no approval keys has no approvals', async () => {
  const memo = { 'approval/good': { state: 'pending' } };
  const long = await rowOf(memo, { execution: { workflowId: 'l'.repeat(600), runId: root } });
  assert.deepEqual(long.pendingApprovals, []);
  const parentExecution = { workflowId: 'parent' };
  const handed = await rowOf({ ...memo, root: { root: 'no uuid', prefix: '' } }, { parentExecution });
  assert.deepEqual(handed.pendingApprovals, []);
});

/** A harness in which reading the run `odd` throws, for whatever reason. */
function withOddRun() {
  const harness = createApiHarness({ allEvents: { holdMs: 0, pauseMs: 2 } });
  const { fake } = harness;
  const { readFacts, readTrail } = fake.client;
  const reads = { odd: 0 };
  const refuse = (runId: string): void => {
    if (runId !== 'odd') return;
    reads.odd += 1;
    throw new RangeError('Invalid time value');
  };
  fake.client.readFacts = async (execution, longerThan) => {
    refuse(execution.runId);
    return readFacts(execution, longerThan);
  };
  fake.client.readTrail = async (runId) => {
    refuse(runId);
    return readTrail(runId);
  };
  const told = () => harness.logged.filter(({ runId }) => runId === 'odd');
  return { ...harness, reads, told };
}

const headers = { authorization: 'Bearer token-ann' };

test('GET /events serves all runs but one that cannot be read, and the log says so once', async () => {
  const { app, fake, clock, reads, told, logged } = withOddRun();
  const before = `${new Date(clock.now).toISOString()}//0`;
  clock.now += 10;
  fake.ask({ runId: 'odd' });
  fake.ask({ runId: 'good' });
  const missed = listen(await app.request('/events', { headers: { ...headers, 'last-event-id': before } }));
  const caughtUp = await missed.take(3);
  assert.deepEqual(new Set(caughtUp.map(({ data }) => data['runId'])), new Set(['good']));
  clock.now += 10;
  fake.ask({ runId: 'new' });
  const live = await missed.take(3);
  assert.deepEqual(new Set(live.map(({ data }) => data['runId'])), new Set(['new']));
  await eventually(() => reads.odd > 4);
  assert.equal(told().length, 1, JSON.stringify(logged));
  assert.equal(told()[0]?.['error'], 'RangeError: Invalid time value');
  await missed.leave();
});

test('GET /decisions serves all runs but one that cannot be read', async () => {
  const { approve, call, fake, told } = withOddRun();
  const odd = fake.ask({ runId: 'odd' });
  const good = fake.ask({ runId: 'good' });
  await approve(good.key, good.hash);
  fake.expire(odd.key);
  for (const time of ['first', 'second']) {
    const { status, body, text } = await call('GET', '/decisions');
    assert.equal(status, 200, `${time}: ${text}`);
    assert.deepEqual(
      (body['decisions'] as { key: string }[]).map(({ key }) => key),
      [good.key],
    );
  }
  assert.equal(told().length, 1);
});

test('lists of runs and approvals leave out one that cannot be shown', async () => {
  const { call, fake, told } = withOddRun();
  fake.ask({ runId: 'odd' });
  const good = fake.ask({ runId: 'good' });
  const { listRuns, listAwaiting } = fake.client;
  const spoil = (page: Awaited<ReturnType<typeof listRuns>>) => {
    for (const { runId, approvals } of page.runs) {
      for (const { memo } of approvals) if (runId === 'odd') memo.expiresAt = 1e300;
    }
    return page;
  };
  fake.client.listRuns = async (query) => spoil(await listRuns(query));
  fake.client.listAwaiting = async (query) => spoil(await listAwaiting(query));
  const runs = await call('GET', '/runs');
  assert.deepEqual(
    [runs.status, (runs.body['runs'] as { id: string }[]).map(({ id }) => id)],
    [200, ['good']],
  );
  const approvals = await call('GET', '/approvals');
  const keys = (approvals.body['approvals'] as { key: string }[]).map(({ key }) => key);
  assert.deepEqual([approvals.status, keys], [200, [good.key]]);
  assert.equal(told().length, 1);
});
