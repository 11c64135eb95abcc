// P8 on a real server: mutated signals by the thousand. Before a run asks, while it asks, after its answer and after
// its end: no workflow task fails, the next good decision works, the history replays, and each signal is one fact.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { isGrpcServiceError } from '@temporalio/client';
import { startApi } from './support/api-server.ts';
import { testBundle } from './support/bundle.ts';
import { eventually } from './support/eventually.ts';
import { fuzzSeed, isFullFuzz } from './support/fuzz.ts';
import { clientOf, openGate, startSpec, type SeenGate } from './support/gates.ts';
import { fetchHistory, taskFailures } from './support/history.ts';
import { sendRaw } from './support/hostile-signals.ts';
import { startLedger } from './support/ledger.ts';
import { mutatedSignals, mutations, type MutatedSignal } from './support/mutated-signals.ts';
import { linesOf, refundSpec, startGate } from './support/refund-gates.ts';
import { replayHistories } from './support/replay.ts';
import { makeSecrets } from './support/secrets.ts';
import { contentOf, meaningOf, type Meaning } from './support/signal-meaning.ts';
import { openTemporal } from './support/temporal.ts';
import { startWorker } from './support/worker.ts';
import { approvalKey } from '../src/core/approval-key.ts';
import { hashPayload } from '../src/core/hash.ts';
import type { Spec } from '../src/core/spec/spec.ts';
import type { TrailFact } from '../src/core/trail-fact.ts';

const temporal = await openTemporal();
const { client, address, namespace, taskQueue } = temporal;
const countersign = clientOf(temporal);
const ledger = await startLedger();
const { path: secretsFile } = await makeSecrets();
const api = await startApi(temporal, { secretsFile });
const settings = { address, namespace, secretsFile, ledgerUrl: ledger.url };
await startWorker({ ...settings, taskQueue });

/** In all: eight sorts of runs, 10,000 signals (and a few that come twice) by `npm run fuzz`. */
const runsEach = isFullFuzz ? 5 : 1;
const signalsEach = isFullFuzz ? 255 : 75;

/** Thousands of signals on a busy machine take their time; a run that is wedged takes for ever. */
const timeoutMs = 300_000;

const figures = new Map<string, number>();
const count = (what: string, by = 1): unknown => figures.set(what, (figures.get(what) ?? 0) + by);
after(() => {
  const all = [...figures].sort(([a], [b]) => (a < b ? -1 : 1)).map(([what, times]) => `${what}: ${times}`);
  console.log(`# seed ${fuzzSeed}; ${all.join('; ')}`);
});

/** @returns those that Temporal took; it refuses by itself what is no signal to it, or comes after the end */
async function sendAll(runId: string, signals: readonly MutatedSignal[]): Promise<MutatedSignal[]> {
  const taken: MutatedSignal[] = [];
  for (const signal of signals) {
    count(`sent, ${signal.mutation}`);
    try {
      await sendRaw(temporal, runId, signal);
      taken.push(signal);
    } catch (error) {
      if (!isGrpcServiceError(error)) throw error;
      // INVALID_ARGUMENT: a name of no or too many characters. NOT_FOUND: the run has ended
      const code = Number(error.code);
      assert.ok([3, 5].includes(code), `${signal.mutation}: ${error.message}`);
      count(code === 3 ? 'refused by Temporal' : 'after the end');
    }
  }
  return taken;
}

/** By what the rule says that each means to an open gate. What was accepted and comes again is no new fact, so none does. */
function sorted(gate: SeenGate, nth: number) {
  const contents = new Set<string>();
  const signals = mutatedSignals(gate, { seed: fuzzSeed + nth, count: signalsEach }).filter((signal) => {
    const content = contentOf(signal);
    const isAgain = !['ignored', 'refused'].includes(meaningOf(signal, gate)) && contents.has(content);
    contents.add(content);
    return !isAgain;
  });
  const isGood = (signal: MutatedSignal): boolean =>
    !['ignored', 'refused', 'comments'].includes(meaningOf(signal, gate));
  return { signals, poor: signals.filter((one) => !isGood(one)), good: signals.filter(isGood) };
}

type Told = 'ignored' | 'refused' | 'comments' | 'settles';
const toldBy = (fact: TrailFact): Told | undefined => {
  if (fact.type === 'signal_ignored') return 'ignored';
  if (fact.type === 'decision_refused') return 'refused';
  if (fact.type === 'approval_commented') return 'comments';
  const isSettling = ['approval_granted', 'approval_rejected', 'approval_responded'].includes(fact.type);
  return isSettling ? 'settles' : undefined;
};

function tally(all: readonly (Told | Meaning | undefined)[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const one of all) if (one !== undefined) counts[one] = (counts[one] ?? 0) + 1;
  return counts;
}

/** What every run must be like in the end, whatever was sent. `told`: the facts of its signals, by sort. */
async function assertUnhurt(runId: string, told: readonly (Told | Meaning)[]): Promise<void> {
  const history = await fetchHistory(client, runId);
  assert.deepEqual(taskFailures(history), []);
  const report = await replayHistories(await testBundle(), [{ workflowId: runId, history }]);
  assert.deepEqual(report, { replayed: 1, failures: [] });
  // what came last is told once its workflow task is done
  const trail = await eventually(
    async () => {
      const facts = await countersign.readTrail(runId);
      assert.deepEqual(tally(facts.map(toldBy)), tally(told));
      return facts;
    },
    { timeoutMs, message: 'each signal as one fact' },
  );
  for (const fact of trail) if (fact.type === 'decision_refused') count(`fact ${fact.code}`);
  for (const fact of trail) if (fact.type !== 'decision_refused' && toldBy(fact)) count(`fact ${fact.type}`);
}

const meanings = (signals: readonly MutatedSignal[], gate: SeenGate): Meaning[] =>
  signals.map((signal) => meaningOf(signal, gate));
/** Of a gate that does not take it: not open yet, or settled. */
const refused = (signals: readonly MutatedSignal[]): Told[] =>
  signals.map(({ signalName = 'decide' }) => (signalName === 'decide' ? 'refused' : 'ignored'));

const ownGate = (runId: string) => ({
  name: 'refund',
  tool: 'payments.refund',
  arguments: { order: runId, amount: '10.00' },
});

async function startOwn(name: string): Promise<SeenGate> {
  const runId = temporal.id(name);
  const args = [{ ...ownGate(runId), lingerMs: 3_600_000 }];
  await client.workflow.start('oneGated', { workflowId: runId, taskQueue, args });
  return openGate(countersign, runId);
}

/** The gate that a run will open at `refund`. */
async function foretold(runId: string, position = 'refund'): Promise<SeenGate> {
  const { root } = (await countersign.describeRun(runId)) ?? assert.fail(`no run ${runId}`);
  const { hash } = hashPayload({
    tool: 'payments.refund',
    arguments: { order: runId, amount: '10.00', currency: 'EUR' },
  });
  return { runId, root, position, hash, key: approvalKey({ workflowId: runId, position, root }) };
}

async function stateOf(gate: SeenGate): Promise<unknown> {
  return (await api.call('GET', `/approvals/${gate.key}`)).body['state'];
}

async function approve(gate: SeenGate): Promise<void> {
  const answer = await api.final(await api.approve(gate));
  assert.equal(answer.status, 200, answer.text);
}

async function refunds(runId: string): Promise<number> {
  return (await linesOf(ledger, runId)).length;
}

/** Several runs at once, each with signals of its own. */
async function each(sort: number, fuzz: (nth: number) => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: runsEach }, (_, index) => fuzz(sort * runsEach + index)));
}

const ends: Record<string, string> = { approves: 'approved', rejects: 'rejected', responds: 'responded' };

/** Poor ones, and the gate is open; then the good ones among them, of which the first wins. */
async function fuzzOpen(gate: SeenGate, nth: number): Promise<void> {
  const { poor, good } = sorted(gate, nth);
  const taken = await sendAll(gate.runId, poor);
  assert.equal(await stateOf(gate), 'pending');
  const told = meanings(taken, gate);
  const [winner] = good;
  const late = await sendAll(gate.runId, good);
  if (winner === undefined) await approve(gate);
  const means = winner === undefined ? 'approves' : meaningOf(winner, gate);
  count(`as good as before, ${means}`, good.length);
  await eventually(async () => (await stateOf(gate)) === ends[means], {
    timeoutMs,
    message: `the gate ${ends[means]}`,
  });
  const isRefunded = means === 'approves';
  if (isRefunded) await eventually(async () => (await refunds(gate.runId)) === 1, { message: 'the refund' });
  await assertUnhurt(gate.runId, [...told, 'settles', ...refused(late.slice(1))]);
  assert.equal(await refunds(gate.runId), isRefunded ? 1 : 0);
}

test('P8: mutated signals do not hurt a spec run while it asks, and those that are good all the same count', () =>
  each(0, async (nth) => fuzzOpen(await startGate(temporal, countersign, 'fuzz-open'), nth)));

test('P8: mutated signals do not hurt an own workflow while it asks', () =>
  each(1, async (nth) => fuzzOpen(await startOwn('fuzz-open-own'), nth)));

test('P8: mutated signals before a spec run has begun do not hurt it, and none is kept as a yes', async () => {
  const later = { ...temporal, taskQueue: `${taskQueue}-later` };
  const laterClient = clientOf(later);
  const started = await Promise.all(
    Array.from({ length: runsEach }, async (_, index) => {
      const runId = temporal.id('fuzz-opening');
      await startSpec(laterClient, runId, refundSpec, { order: runId });
      const gate = await foretold(runId);
      return { gate, taken: await sendAll(runId, sorted(gate, 2 * runsEach + index).signals) };
    }),
  );
  await startWorker({ ...settings, taskQueue: later.taskQueue });
  for (const { gate, taken } of started) {
    assert.deepEqual(await openGate(laterClient, gate.runId), gate);
    await approve(gate);
    await eventually(async () => (await refunds(gate.runId)) === 1, { message: 'the refund' });
    await assertUnhurt(gate.runId, [...refused(taken), 'settles']);
  }
});

test('P8: mutated signals before an own workflow asks do not hurt it, and none is kept as a yes', () =>
  each(3, async (nth) => {
    const runId = temporal.id('fuzz-opening-own');
    const args = [{ gates: [ownGate(runId)] }];
    const handle = await client.workflow.start('gatesAfterGo', { workflowId: runId, taskQueue, args });
    const gate = await foretold(runId);
    const taken = await sendAll(runId, sorted(gate, nth).signals);
    await handle.signal('go');
    assert.deepEqual(await openGate(countersign, runId), gate);
    await approve(gate);
    assert.deepEqual(await handle.result(), ['approved']);
    await assertUnhurt(runId, [...refused(taken), 'ignored', 'settles']);
    assert.equal(await refunds(runId), 1);
  }));

/** The first gate is settled, the second one asks: nothing is said about it, and then it is approved. */
async function fuzzSettled(first: SeenGate, nth: number): Promise<void> {
  const { runId } = first;
  await approve(first);
  const second = await eventually(async () => {
    const gate = await openGate(countersign, runId);
    return gate.position === 'second' ? gate : undefined;
  });
  const taken = await sendAll(runId, sorted(first, nth).signals);
  assert.deepEqual([await stateOf(first), await stateOf(second)], ['approved', 'pending']);
  await approve(second);
  await client.workflow.getHandle(runId).result();
  await assertUnhurt(runId, ['settles', ...refused(taken), 'settles']);
  assert.equal(await refunds(runId), 2);
}

test('P8: mutated signals for a settled gate do not hurt a spec run, nor its next gate', () => {
  const steps = [...refundSpec.steps, ...refundSpec.steps.map((step) => ({ ...step, id: 'second' }))];
  const spec: Spec = { ...refundSpec, name: 'two-refunds', steps };
  return each(4, async (nth) =>
    fuzzSettled(await startGate(temporal, countersign, 'fuzz-settled', spec), nth),
  );
});

test('P8: mutated signals for a settled gate do not hurt an own workflow, nor its next gate', () =>
  each(5, async (nth) => {
    const runId = temporal.id('fuzz-settled-own');
    const args = [{ gates: [ownGate(runId), { ...ownGate(runId), name: 'second' }] }];
    await client.workflow.start('gatesInARow', { workflowId: runId, taskQueue, args });
    await fuzzSettled(await openGate(countersign, runId), nth);
  }));

async function fuzzFinished(gate: SeenGate, nth: number): Promise<void> {
  const { runId } = gate;
  await approve(gate);
  await client.workflow.getHandle(runId).result();
  const events = (await fetchHistory(client, runId)).events?.length;
  assert.deepEqual(await sendAll(runId, sorted(gate, nth).signals), []);
  assert.equal((await fetchHistory(client, runId)).events?.length, events);
  assert.equal((await api.reject(gate)).status, 409);
  await assertUnhurt(runId, ['settles']);
  assert.equal(await refunds(runId), 1);
}

test('P8: mutated signals to a finished spec run change nothing and start nothing', () =>
  each(6, async (nth) => fuzzFinished(await startGate(temporal, countersign, 'fuzz-finished'), nth)));

test('P8: mutated signals to a finished own workflow change nothing and start nothing', () =>
  each(7, async (nth) => {
    const runId = temporal.id('fuzz-finished-own');
    await client.workflow.start('oneGated', { workflowId: runId, taskQueue, args: [ownGate(runId)] });
    await fuzzFinished(await openGate(countersign, runId), nth);
  }));

test('of every sort of mutation some were sent, and taken, and of every sort of answer some were given', () => {
  const all = [
    ...mutations.map((mutation) => `sent, ${mutation}`),
    ...['malformed', 'too_large', 'unknown_key', 'not_open', 'already_resolved'].map(
      (code) => `fact ${code}`,
    ),
    ...['fact signal_ignored', 'fact approval_granted', 'after the end'],
  ];
  assert.deepEqual(
    all.filter((what) => !figures.has(what)),
    [],
  );
});
