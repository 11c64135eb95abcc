// Events of a run: the trail from the start or from the last one heard, then live; each fact once.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiProblem } from '../src/api/problem.ts';
import { createApiHarness, serveApp } from './support/api-harness.ts';
import { listen } from './support/event-listener.ts';
import { eventually } from './support/eventually.ts';

const quick = { followPausesMs: { first: 2, longest: 10 } };
const credentials = { authorization: 'Bearer token-ann' };

function follow({ app }: ReturnType<typeof createApiHarness>, runId: string, lastEventId?: string) {
  const headers = { ...credentials, ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }) };
  return app.request(`/runs/${encodeURIComponent(runId)}/events`, { headers });
}

test('a listener gets the trail from the start, then each fact as it comes, and the end with the run', async () => {
  const harness = createApiHarness(quick);
  const { fake, approve } = harness;
  const { key, hash, run } = fake.ask({ runId: 'r 1' });
  const response = await follow(harness, 'r 1');
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('content-type'), 'text/event-stream');
  assert.equal(response.headers.get('cache-control'), 'no-store');
  const listener = listen(response);
  const before = await listener.take(3);
  assert.deepEqual(
    before.map(({ id, type }) => [id, type]),
    [
      ['1', 'run_started'],
      ['2', 'step_started'],
      ['3', 'approval_requested'],
    ],
  );
  await approve(key, hash);
  const [granted] = await listener.take(1);
  assert.equal(granted?.type, 'approval_granted');
  assert.equal(granted.data['key'], key);
  fake.close('r 1', 'completed');
  const end = await listener.rest();
  assert.deepEqual(
    end.map(({ type }) => type),
    ['run_finished'],
  );
  assert.deepEqual(
    [...before, granted, ...end].map(({ data }) => data),
    JSON.parse(JSON.stringify(run.facts)),
    'as in the trail, each once, in order',
  );
});

test('who comes back with Last-Event-ID gets only what is new; after the end there is nothing, by 204', async () => {
  const harness = createApiHarness(quick);
  const { fake, reject } = harness;
  const { key } = fake.ask({ runId: 'r1' });
  const first = listen(await follow(harness, 'r1'));
  const [, heard] = await first.take(2);
  await first.leave();
  await reject(key);
  fake.close('r1', 'completed');
  const again = listen(await follow(harness, 'r1', heard?.id));
  const rest = await again.rest();
  assert.deepEqual(
    rest.map(({ id, type }) => [id, type]),
    [
      ['3', 'approval_requested'],
      ['4', 'approval_rejected'],
      ['5', 'run_finished'],
    ],
  );
  const done = await follow(harness, 'r1', '5');
  assert.equal(done.status, 204);
  assert.equal((await listen(await follow(harness, 'r1')).rest()).length, 5, 'a new listener hears it all');
});

test('a run that does not change is looked at, but its trail is not read again', async () => {
  const harness = createApiHarness(quick);
  const { fake } = harness;
  fake.ask({ runId: 'r1' });
  const listener = listen(await follow(harness, 'r1'));
  await listener.take(3);
  const { describeRun } = fake.control.calls;
  await eventually(async () => (fake.control.calls.describeRun > describeRun + 3 ? true : undefined));
  assert.equal(fake.control.calls.readTrail, 1);
  await listener.leave();
});

test('a listener that leaves is not served any more', async () => {
  const harness = createApiHarness(quick);
  const { fake } = harness;
  fake.ask({ runId: 'r1' });
  const { url, close } = await serveApp(harness.app);
  const listener = listen(await fetch(`${url}/runs/r1/events`, { headers: credentials }));
  await listener.take(3);
  await listener.leave();
  // two looks in a row at an unchanged number of looks
  await eventually(async () => {
    const { describeRun } = fake.control.calls;
    await new Promise((resolve) => setTimeout(resolve, 50));
    return fake.control.calls.describeRun === describeRun ? true : undefined;
  });
  close();
});

test('while nothing happens there are heartbeats', async () => {
  const harness = createApiHarness({ ...quick, heartbeatMs: 5 });
  harness.fake.ask({ runId: 'r1' });
  const listener = listen(await follow(harness, 'r1'));
  await listener.take(3);
  await listener.heartbeat();
  await listener.heartbeat();
  await listener.leave();
});

test('Temporal may go away and come back: nothing is lost, nothing comes twice', async () => {
  const harness = createApiHarness(quick);
  const { fake, logged, reject } = harness;
  const { key } = fake.ask({ runId: 'r1' });
  const listener = listen(await follow(harness, 'r1'));
  await listener.take(3);
  fake.control.temporal = 'down';
  await eventually(async () =>
    logged.some(({ message }) => String(message).startsWith('a run could not be followed'))
      ? true
      : undefined,
  );
  fake.control.temporal = 'up';
  await reject(key);
  fake.close('r1', 'completed');
  assert.deepEqual(
    (await listener.rest()).map(({ id }) => id),
    ['4', '5'],
  );
});

test('an unknown run, a malformed Last-Event-ID and a missing Temporal are problems, not streams', async () => {
  const harness = createApiHarness(quick);
  harness.fake.ask({ runId: 'r1' });
  assert.equal((await follow(harness, 'none')).status, 404);
  for (const id of ['x', '-1', '1.5', '1/r1/2'])
    assert.equal((await follow(harness, 'r1', id)).status, 400, id);
  harness.fake.control.temporal = 'down';
  assert.equal((await follow(harness, 'r1')).status, 503);
});

test('a listener whose token is revoked, or loses its scope, is let go with the next heartbeat', async () => {
  const held = { ann: ['read'], bob: ['read'], eve: ['read'] } as Record<
    string,
    ('read' | 'start')[] | undefined
  >;
  const harness = createApiHarness({
    ...quick,
    heartbeatMs: 5,
    authenticate(id) {
      if (id === 'eve' && held['ann'] === undefined) throw new ApiProblem('issuer_unavailable', 'not now');
      const scopes = held[id];
      return scopes && { id, name: id, roles: [], kind: 'person', scopes };
    },
  });
  harness.fake.ask({ runId: 'r1' });
  const open = async (id: string, path: string) =>
    listen(await harness.app.request(path, { headers: { authorization: `Bearer ${id}` } }));
  const ann = [await open('ann', '/runs/r1/events'), await open('ann', '/events')];
  const bob = await open('bob', '/runs/r1/events');
  const eve = await open('eve', '/runs/r1/events');
  await ann[0]!.take(3);
  held['ann'] = undefined;
  held['bob'] = ['start'];
  for (const listener of [...ann, bob]) await listener.rest();
  // one of whom nobody can tell now goes on: to its end with the run
  harness.fake.close('r1', 'completed');
  assert.equal((await eve.rest()).at(-1)?.type, 'run_finished');
});
