// P4, P5 on a real server: what one attempt leaves for the next survives the way there, a target's wish for a
// later attempt is kept, and an effect ends as what it is over all its attempts.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { TrailFact } from '../src/core/trail-fact.ts';
import { defineTool, ToolRefusedError, ToolRetryError, type Found, type Tool } from '../src/tool.ts';
import { eventually } from './support/eventually.ts';
import { clientOf, startSpec } from './support/gates.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { startWorker } from './support/worker.ts';

const temporal = await openTemporal();
const countersign = clientOf(temporal);
const { address, client, namespace, taskQueue } = temporal;
const { path: secretsFile } = await makeSecrets();

/** What the attempts of one tool do, in order; and when they started. */
interface Script {
  attempts: (() => unknown)[];
  times: number[];
}

function scripted(name: string, attempts: Script['attempts'], more: Partial<Tool> = {}): [Tool, Script] {
  const script: Script = { attempts, times: [] };
  const run = (): Promise<unknown> => {
    const next = script.attempts[script.times.length];
    script.times.push(Date.now());
    if (next === undefined) throw new Error(`${name} was called too often`);
    return Promise.resolve(next());
  };
  const idempotency = more.find === undefined ? 'key' : 'lookup';
  return [defineTool({ name, arguments: z.strictObject({}), idempotency, ...more, run }), script];
}

const fail = (error: Error) => () => {
  throw error;
};
const busy = fail(new ToolRetryError('busy', { clear: true }));
const cut = fail(new Error('socket hang up'));
const declined = fail(new ToolRefusedError('declined'));
const done = () => ({ refund: 're_1' });

const answers: Found[] = [{ found: false }, { found: false }, { found: true, output: { refund: 're_0' } }];
const find = (): Promise<Found> => Promise.resolve(answers.shift() ?? { found: 'unknown' });
const waitMs = 1_500;

const [clearThenDeclined, clearScript] = scripted('clear-then-declined', [busy, declined]);
const [unclearThenDeclined, unclearScript] = scripted('unclear-then-declined', [cut, declined]);
const [alwaysBusy, busyScript] = scripted('always-busy', [busy, busy], { attempts: 2 });
const later = fail(new ToolRetryError('later', { retryAfterMs: waitMs }));
const [laterThenDone, laterScript] = scripted('later', [later, done]);
const [forgotten, forgottenScript] = scripted('forgotten', [later, done], { keyTtl: waitMs - 500 });
const [lookedUp, lookupScript] = scripted('looked-up', [cut], { find });

let letGo: () => void = () => undefined;
const untilLetGo = new Promise<void>((resolve) => (letGo = resolve));
const [seenTrying] = scripted('seen-trying', [
  fail(new ToolRetryError('the till is closed')),
  () => untilLetGo.then(done),
]);

const tools = [
  seenTrying,
  clearThenDeclined,
  unclearThenDeclined,
  alwaysBusy,
  laterThenDone,
  forgotten,
  lookedUp,
];
const worker = await startWorker({ address, namespace, taskQueue, secretsFile }, { tools });
after(() => worker.stop());

type Ended = Extract<TrailFact, { type: 'tool_result' | 'effect_failed' | 'effect_in_doubt' }>;

/** The fact that ends the effect of a tool's only step. */
async function endOf(tool: Tool): Promise<Ended> {
  const runId = temporal.id(tool.name);
  await startSpec(
    countersign,
    runId,
    { version: 1, name: 'attempts', steps: [{ id: 'pay', tool: tool.name }] },
    {},
  );
  const ends: readonly string[] = ['tool_result', 'effect_failed', 'effect_in_doubt'];
  const isEnd = (fact: TrailFact): fact is Ended => ends.includes(fact.type);
  return eventually(async () => (await countersign.readTrail(runId)).find(isEnd), {
    message: `the end of ${tool.name}`,
  });
}

test('P5: a refusal after an attempt that surely changed nothing is clear', async () => {
  const end = await endOf(clearThenDeclined);
  assert.deepEqual([end.type, clearScript.times.length], ['effect_failed', 2]);
});

test('P5: a refusal after an unclear attempt is in doubt', async () => {
  const end = await endOf(unclearThenDeclined);
  assert.deepEqual([end.type, unclearScript.times.length], ['effect_in_doubt', 2]);
});

test('P5: attempts that all surely changed nothing end clear when they are used up', async () => {
  const end = await endOf(alwaysBusy);
  assert.deepEqual([end.type, busyScript.times.length], ['effect_failed', 2]);
});

test('a target that says "later" is asked again, and not sooner', async () => {
  const end = await endOf(laterThenDone);
  assert.equal(end.type, 'tool_result');
  const [first = 0, second = 0] = laterScript.times;
  assert.ok(second - first >= waitMs - 50, `after ${second - first} ms`); // two clocks' rounding
});

test('keyTtl: the attempt that would come too late is not made', async () => {
  const end = await endOf(forgotten);
  assert.deepEqual([end.type, forgottenScript.times.length], ['effect_in_doubt', 1]);
});

test('a run says which attempt of an effect runs, and why the one before failed; and no more after its end', async () => {
  const runId = temporal.id('seen-trying');
  const steps = [{ id: 'pay', tool: seenTrying.name }];
  await startSpec(countersign, runId, { version: 1, name: 'attempts', steps }, {});
  const retries = () => countersign.describeRun(runId).then((run) => run?.retries);
  const runs = { position: 'pay', attempt: 2, lastError: 'the till is closed' };
  await eventually(async () => isDeepStrictEqual(await retries(), [runs]), { message: 'the second attempt' });
  letGo();
  await client.workflow.getHandle(runId).result();
  assert.equal(await retries(), undefined);
});

test('lookup: what the target carried out before it was cut is found, and not done again', async () => {
  const end = await endOf(lookedUp);
  assert.ok(end.type === 'tool_result');
  assert.deepEqual(end.output, { refund: 're_0' });
  assert.deepEqual([lookupScript.times.length, answers.length], [1, 0]);
});
