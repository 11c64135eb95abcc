// The plans of chaos runs, and the proxies that their faults use: without Temporal, without chance.
import assert from 'node:assert/strict';
import { createServer, connect, type AddressInfo, type Socket } from 'node:net';
import { test } from 'node:test';
import { faultNames, isOfTarget } from './chaos/plan-faults.ts';
import { makePlan, onlyNames, operationNames, readOnly, runKinds, type Plan } from './chaos/plan.ts';
import { openProxy } from './chaos/proxy.ts';
import { createRandom } from './chaos/random.ts';
import { killPlan, resetPlan } from './chaos/reference.ts';
import { eventually } from './support/eventually.ts';

const seeds = Array.from({ length: 1_000 }, (_, index) => index);
const plans = seeds.map((seed) => makePlan(seed));

test('a seed is a plan: the same one each time, and JSON', () => {
  for (const seed of seeds.slice(0, 200)) {
    const plan = makePlan(seed);
    assert.deepEqual(makePlan(seed), plan);
    assert.deepEqual(JSON.parse(JSON.stringify(plan)), plan);
  }
  // what it is, not only that it is the same in one process: a kept seed must mean the same next year
  const [first] = plans;
  assert.equal(first?.kind, makePlan(0, []).kind);
  assert.equal(new Set(plans.map((plan) => JSON.stringify({ ...plan, seed: 0 }))).size, plans.length);
});

test('a plan is bounded: at most six runs, sixty operations, three faults, and over in seconds', () => {
  for (const { seed, operations, faults } of plans) {
    assert.ok(operations.length <= 60, `seed ${seed} has ${operations.length} operations`);
    assert.ok(operations.filter(({ op }) => op === 'start').length <= 6, `seed ${seed}`);
    assert.ok(faults.length <= 3);
    for (const { at } of operations) assert.ok(at <= 10_000, `seed ${seed}: an operation at ${at} ms`);
    for (const { at, lasts } of faults) assert.ok(at + lasts <= 10_000);
  }
});

test('every fault, every kind of run and every operation is in some plan', () => {
  const struck = new Set(plans.flatMap(({ faults }) => faults.map(({ name }) => name)));
  assert.deepEqual(
    [...faultNames].filter((name) => !struck.has(name)),
    [],
  );
  const kinds = new Set(
    plans.flatMap(({ operations }) => operations.map((one) => (one.op === 'start' ? one.kind : ''))),
  );
  assert.deepEqual(
    runKinds.filter((kind) => !kinds.has(kind)),
    [],
  );
  const done = new Set<string>(plans.flatMap(({ operations }) => operations.map(({ op }) => op)));
  const named = [
    'approve',
    'reject',
    'edit',
    'amend',
    'withdraw',
    'respond',
    'comment',
    'cancel',
    'malformed',
    'read',
  ];
  assert.deepEqual(
    named.filter((op) => !done.has(op)),
    [],
  );
});

test('--only leaves nothing else of the sort that it names', () => {
  for (const name of faultNames) {
    for (const seed of seeds.slice(0, 20)) {
      const { faults } = makePlan(seed, [name]);
      assert.deepEqual([...new Set(faults.map((fault) => fault.name))], [name]);
    }
  }
  for (const seed of seeds.slice(0, 100)) {
    const { operations } = makePlan(seed, ['reject', 'carried', 'kill-api']);
    const starts = operations.filter(({ op }) => op === 'start') as { kind: string }[];
    assert.ok(starts.every(({ kind }) => kind === 'carried'));
    // a fault may need one that approves
    assert.ok(operations.every(({ op }) => ['start', 'reject', 'approve'].includes(op)));
  }
  assert.deepEqual(readOnly('approve,kill-worker'), ['approve', 'kill-worker']);
  assert.throws(() => readOnly('aprove'), /--only takes .*approve.*; got "aprove"/);
  assert.deepEqual([...onlyNames].sort(), [...runKinds, ...operationNames, ...faultNames, 'calm'].sort());
});

test('a fault has whom it needs', () => {
  const shapesOf: Record<string, string[]> = {
    'spec-edited': ['named'],
    'ten-builds': ['named'],
    'reset-parent': ['child', 'children'],
    'continue-as-new': ['carried'],
  };
  for (const plan of plans) {
    for (const { name, run } of plan.faults) {
      const victim = startOf(plan, run ?? '');
      assert.ok(victim, `seed ${plan.seed}: ${name} strikes nobody`);
      const shapes = shapesOf[name];
      if (shapes !== undefined) assert.ok(shapes.includes(victim.shape), `seed ${plan.seed}: ${name}`);
      if (name === 'keys-forgotten') assert.equal(victim.gates[0]?.tool, 'pay.short');
      if (!isOfTarget(name)) continue;
      const isApproved = plan.operations.some(
        (one) => one.op === 'approve' && one.run === run && one.gate === 0 && one.shouldSucceed,
      );
      assert.ok(isApproved, `seed ${plan.seed}: ${name}, and nobody approves`);
    }
  }
});

test('the reference plans kill each process at each event, and reset each form of run to each task', () => {
  const kills = seeds.slice(0, 90).map((seed) => killPlan(seed).faults[0]);
  assert.equal(new Set(kills.map((fault) => `${fault?.name} ${fault?.event}`)).size, 90);
  assert.deepEqual(
    kills.slice(0, 4).map((fault) => `${fault?.name} ${fault?.event}`),
    ['kill-worker 1', 'kill-api 1', 'kill-server 1', 'kill-worker 2'],
  );
  const resets = seeds.slice(0, 60).map((seed) => resetPlan(seed));
  assert.equal(new Set(resets.map(({ kind }) => kind)).size, 60);
  // a target that takes no key would do it again, and says so
  const tools = resets.flatMap(({ operations }) =>
    operations.flatMap((one) => (one.op === 'start' ? one.gates : [])),
  );
  assert.ok(tools.every(({ tool }) => tool === 'pay.keyed'));
});

test('chance is as likely as it is told, and never what has no weight', () => {
  const random = createRandom(7);
  const counts = { often: 0, seldom: 0, never: 0 };
  for (let index = 0; index < 10_000; index += 1) {
    counts[
      random.weighted([
        ['often', 9],
        ['never', 0],
        ['seldom', 1],
      ] as const)
    ] += 1;
  }
  assert.equal(counts.never, 0);
  assert.ok(counts.seldom > 800 && counts.seldom < 1_200, String(counts.seldom));
  assert.deepEqual([...random.shuffle([1, 2, 3, 4])].sort(), [1, 2, 3, 4]);
  assert.throws(() => random.pick([]), RangeError);
});

function startOf({ operations }: Plan, run: string) {
  for (const one of operations) if (one.op === 'start' && one.run === run) return one;
  return undefined;
}

/** An echo behind a proxy, and a client of it. */
async function throughProxy(t: { after(end: () => unknown): void }) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('data', (piece: Buffer) => socket.write(piece));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const proxy = await openProxy((server.address() as AddressInfo).port);
  t.after(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await proxy.close();
  });
  return {
    proxy,
    heard: () => sockets.size,
    async dial() {
      const socket = connect(proxy.port, '127.0.0.1');
      let got = '';
      let isOver = false;
      socket.on('data', (piece: Buffer) => (got += piece.toString()));
      socket.on('error', () => undefined);
      socket.on('close', () => (isOver = true));
      await new Promise((resolve) => socket.once('connect', resolve));
      return {
        say: (text: string) => socket.write(text),
        got: () => got,
        isOver: () => isOver,
        end: () => socket.end(),
      };
    },
  };
}

test('a proxy that is cut ends what is open, refuses what is new, and is whole when it is healed', async (t) => {
  const { proxy, dial } = await throughProxy(t);
  const before = await dial();
  before.say('a');
  await eventually(() => before.got() === 'a');
  proxy.cut();
  await eventually(before.isOver);
  const meanwhile = await dial();
  await eventually(meanwhile.isOver);
  assert.equal(proxy.hits(), 2);
  proxy.heal();
  const after = await dial();
  after.say('b');
  await eventually(() => after.got() === 'b');
  assert.equal(proxy.hits(), 2);
});

test('one way: what one side says is kept back, the rest goes through, and healed it comes in its order', async (t) => {
  const { proxy, dial } = await throughProxy(t);
  const client = await dial();
  client.say('1');
  await eventually(() => client.got() === '1');
  proxy.oneWay('upstream');
  client.say('2');
  await eventually(() => proxy.hits() === 1);
  client.say('3');
  await eventually(() => proxy.hits() === 2);
  assert.equal(client.got(), '1');
  proxy.heal();
  await eventually(() => client.got() === '123');
});

test('one way, healed with its connection: the answer is lost', async (t) => {
  const { proxy, dial } = await throughProxy(t);
  const client = await dial();
  proxy.oneWay('upstream');
  client.say('1');
  await eventually(() => proxy.hits() === 1);
  proxy.heal(true);
  await eventually(client.isOver);
  assert.equal(client.got(), '');
});

test('a slow proxy keeps the order, and loses nothing when a side closes', async (t) => {
  const { proxy, dial } = await throughProxy(t);
  const client = await dial();
  proxy.slow(50);
  for (const text of ['a', 'b', 'c']) client.say(text);
  await eventually(() => proxy.hits() > 0);
  proxy.heal();
  client.say('d');
  await eventually(() => client.got() === 'abcd');
});
