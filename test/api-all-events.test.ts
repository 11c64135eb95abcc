// Events of all runs: each new fact once, in one order, from now or from the last one heard; one sweep for all.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApiDeps } from '../src/api/deps.ts';
import { createFollowAll } from '../src/api/follow-all.ts';
import { createSkipOdd, type SkipOdd } from '../src/api/odd-runs.ts';
import { createApiHarness, serveApp } from './support/api-harness.ts';
import { listen, type HeardEvent } from './support/event-listener.ts';
import { eventually } from './support/eventually.ts';

const quick = { allEvents: { holdMs: 0, pauseMs: 2 } };
type Harness = ReturnType<typeof createApiHarness>;

function follow({ app }: Pick<Harness, 'app'>, lastEventId?: string) {
  const place = lastEventId === undefined ? {} : { 'last-event-id': lastEventId };
  return app.request('/events', { headers: { authorization: 'Bearer token-ann', ...place } });
}

/** Time passes, then something happens. */
function happens<T>({ clock }: Harness, what: () => T): T {
  clock.now += 10;
  return what();
}

/** Is there when the sweep has looked at all that happened before. */
async function swept({ fake }: Harness): Promise<void> {
  const { listChanged } = fake.control.calls;
  await eventually(() => fake.control.calls.listChanged > listChanged + 1);
}

const named = ({ data, type }: HeardEvent) => `${String(data['runId'])} ${String(data['seq'])} ${type}`;

test('a listener gets what happens in any run from now on, each fact once, in the order of time', async () => {
  const harness = createApiHarness(quick);
  const { fake, clock } = harness;
  fake.ask({ runId: 'before' });
  const response = await follow(harness);
  assert.equal(response.headers.get('content-type'), 'text/event-stream');
  assert.equal(response.headers.get('cache-control'), 'no-store');
  const listener = listen(response);
  await eventually(() => fake.control.calls.listChanged > 1);
  const { key, hash } = happens(harness, () => fake.ask({ runId: 'b/1' }));
  happens(harness, () => fake.ask({ runId: 'a' }));
  clock.now += 10;
  await harness.approve(key, hash);
  happens(harness, () => fake.close('b/1', 'completed'));
  const heard = await listener.take(8);
  assert.deepEqual(heard.map(named), [
    'b/1 1 run_started',
    'b/1 2 step_started',
    'b/1 3 approval_requested',
    'a 1 run_started',
    'a 2 step_started',
    'a 3 approval_requested',
    'b/1 4 approval_granted',
    'b/1 5 run_finished',
  ]);
  assert.match(heard[0]!.id, /^2026-11-02T10:00:00\.010Z\/b%2F1\/1$/);
  happens(harness, () => fake.close('a', 'terminated'));
  assert.equal(named((await listener.take(1))[0]!), 'a 4 run_terminated', 'and nothing comes twice');
  await listener.leave();
});

test('who comes back with Last-Event-ID gets exactly the rest, from this API process or another', async () => {
  const harness = createApiHarness(quick);
  const { fake, clock } = harness;
  const before = clock.now;
  for (const runId of ['r1', 'r2', 'r3']) happens(harness, () => fake.ask({ runId }));
  happens(harness, () => fake.close('r2', 'terminated'));
  const first = listen(await follow(harness, `${new Date(before).toISOString()}//0`));
  const all = await first.take(10);
  await first.leave();
  assert.equal(new Set(all.map(({ id }) => id)).size, 10);
  for (const [index, { id }] of all.entries()) {
    // each connection has a process of its own, which knows nothing of the others
    const other = createApiHarness({ ...quick, client: fake.client, now: () => clock.now });
    const listener = listen(await follow(index % 2 === 0 ? harness : other, id));
    const rest = await listener.take(9 - index);
    assert.deepEqual(rest, all.slice(index + 1), id);
    // then live: the next fact of any run, and nothing before it
    const next = happens(harness, () => fake.ask({ runId: `live-${index}` }));
    const [live] = await listener.take(1);
    assert.equal(live?.data['runId'], next.runId);
    await listener.leave();
    fake.forget(next.runId);
  }
});

test('the place of a listener moves on while nothing happens, and starts at now', async () => {
  const harness = createApiHarness({ ...quick, heartbeatMs: 5 });
  const { fake, clock } = harness;
  happens(harness, () => fake.ask({ runId: 'old' }));
  const listener = listen(await follow(harness));
  const heard = listener.next();
  await eventually(() => listener.place() !== '' && listener.comments() > 3);
  clock.now += 5_000;
  const moved = new Date(clock.now).toISOString().slice(0, 19);
  await eventually(() => listener.place().startsWith(moved));
  const place = listener.place();
  await listener.leave();
  await heard;
  happens(harness, () => fake.ask({ runId: 'new' }));
  const again = listen(await follow(harness, place));
  assert.equal(named((await again.take(1))[0]!), 'new 1 run_started');
  await again.leave();
});

test('a run that the index shows late is told all the same, once, and is no place to go on from', async () => {
  const harness = createApiHarness(quick);
  const { fake, clock } = harness;
  const listener = listen(await follow(harness));
  const { run } = happens(harness, () => fake.ask({ runId: 'late' }));
  run.isListed = false;
  happens(harness, () => fake.addRun('on-time'));
  const [first] = await listener.take(1);
  assert.equal(first?.data['runId'], 'on-time');
  clock.now += 10;
  run.isListed = true;
  const late = await listener.take(3);
  assert.deepEqual(
    late.map(({ id, data }) => [id, data['runId'], data['seq']]),
    [1, 2, 3].map((seq) => ['', 'late', seq]),
  );
  assert.equal(listener.place(), first.id);
  happens(harness, () => fake.addRun('next'));
  assert.equal(named((await listener.take(1))[0]!), 'next 1 run_started');
  await listener.leave();
});

test('all listeners share one sweep; runs that do not change are looked at, not told; it ends with the last', async () => {
  const harness = createApiHarness(quick);
  const { fake } = harness;
  fake.ask({ runId: 'r1' });
  const { url, close } = await serveApp(harness.app);
  const headers = { authorization: 'Bearer token-ann' };
  const listeners = [];
  for (let one = 0; one < 20; one += 1) listeners.push(listen(await fetch(`${url}/events`, { headers })));
  await swept(harness);
  const { listChanged, readFacts } = fake.control.calls;
  await swept(harness);
  const sweeps = fake.control.calls.listChanged - listChanged;
  const looks = fake.control.calls.readFacts - readFacts;
  assert.ok(Math.abs(looks - sweeps) <= 1, `${looks} looks at one run in ${sweeps} sweeps for 20 listeners`);
  happens(harness, () => fake.addRun('r2'));
  for (const listener of listeners) {
    assert.equal(named((await listener.take(1))[0]!), 'r2 1 run_started');
    await listener.leave();
  }
  // two looks in a row at an unchanged number of sweeps
  await eventually(async () => {
    const { listChanged: sweptSoFar } = fake.control.calls;
    await new Promise((resolve) => setTimeout(resolve, 50));
    return fake.control.calls.listChanged === sweptSoFar;
  });
  close();
});

test('a listener that does not read is let go when it is 10,000 facts behind, and costs nothing more', async () => {
  const run = { runId: 'busy', temporalRunId: 'busy-1', historyLength: 0 };
  const asked = { sweeps: 0, facts: 0 };
  const client = {
    listChanged: () => {
      asked.sweeps += 1;
      run.historyLength += 1;
      return Promise.resolve({ runs: [{ ...run }] });
    },
    readFacts: () => {
      const facts = Array.from({ length: 1_000 }, () => {
        asked.facts += 1;
        const fact = { seq: asked.facts, type: 'tool_result', temporalRunId: run.temporalRunId, eventId: 1 };
        return { fact, knownAt: Date.now() };
      });
      return Promise.resolve({ facts, historyLength: run.historyLength });
    },
  };
  const log = (): void => undefined;
  const deps = { client, log, skipOdd: createSkipOdd(log), now: Date.now, ...quick };
  const gone = new AbortController();
  const events = createFollowAll(deps as unknown as ApiDeps & { skipOdd: SkipOdd })(
    undefined,
    () => true,
    gone.signal,
  );
  await events.next(); // its place; from here on it reads nothing
  // the only listener: with it the sweep ends
  await eventually(
    () => {
      const { sweeps } = asked;
      return new Promise<boolean>((resolve) => setTimeout(() => resolve(asked.sweeps === sweeps), 200));
    },
    { message: 'the sweep to end' },
  );
  assert.ok(asked.facts > 10_000, String(asked.facts));
  assert.deepEqual(await events.next(), { done: true, value: undefined });
  gone.abort();
});

test('Temporal may go away and come back: no fact is lost, none comes twice', async () => {
  const harness = createApiHarness(quick);
  const { fake, logged } = harness;
  const listener = listen(await follow(harness));
  happens(harness, () => fake.ask({ runId: 'r1' }));
  await listener.take(3);
  fake.control.temporal = 'down';
  await eventually(() => logged.some(({ message }) => String(message).startsWith('the runs could not be')));
  fake.control.temporal = 'up';
  happens(harness, () => fake.close('r1', 'terminated'));
  assert.equal(named((await listener.take(1))[0]!), 'r1 4 run_terminated');
  await listener.leave();
});

test('a malformed Last-Event-ID, no credentials and no Temporal are problems, not streams', async () => {
  const harness = createApiHarness(quick);
  const time = '2026-11-02T10:00:00.000Z';
  for (const id of [
    'x',
    '4',
    `${time}/r`,
    `${time}/r/x`,
    `${time}/a/b/1`,
    `2026-11-02/r/1`,
    `${time}/%ff/1`,
  ]) {
    const answer = await follow(harness, id);
    assert.equal(answer.status, 400, id);
    assert.equal(((await answer.json()) as { code: string }).code, 'invalid_request');
  }
  assert.equal((await harness.call('GET', '/events', { as: 'nobody' })).status, 401);
  harness.fake.control.temporal = 'down';
  assert.equal((await follow(harness)).status, 503);
  assert.equal(harness.fake.control.calls.listChanged, 0);
});
