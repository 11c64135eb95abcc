// P4, P5: what the end of an attempt means, over all attempts of an effect: it happened, it surely did not, or
// a person is asked. Nobody guesses.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApplicationFailure } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { createActivities } from '../src/activities/index.ts';
import type { EffectRecord, PerformInput } from '../src/core/case.ts';
import { hashPayload } from '../src/core/hash.ts';
import { isClearFailure } from '../src/core/failures.ts';
import {
  defineTool,
  ToolInDoubtError,
  ToolRefusedError,
  ToolRetryError,
  type Found,
  type Tool,
} from '../src/tool.ts';
import { depsWith, position, recordingTool, root, workflowId } from './support/activity.ts';

const args = { order: 'ord-1', amount: 100, currency: 'EUR' };
const hour = 3_600_000;

interface Where {
  attempt?: number;
  /** what the attempt before left */
  heartbeatDetails?: unknown;
  scheduledTimestampMs?: number;
  retryPolicy?: { initialInterval: number; backoffCoefficient: number; maximumInterval: number };
  /** in a run that was reset */
  keysSince?: number;
}

interface End {
  output?: unknown;
  error?: unknown;
  /** the last heartbeat: what the next attempt is told */
  left: unknown;
}

/** One attempt, and how it ended. */
async function attempt(tool: Tool, where: Where = {}): Promise<End> {
  const info = {
    workflowExecution: { workflowId, runId: root },
    attempt: 1,
    scheduledTimestampMs: Date.now(),
  };
  const logger = new DefaultLogger('ERROR'); // every failure in here is wanted
  const { keysSince, ...more } = where;
  const environment = new MockActivityEnvironment({ ...info, ...more }, { logger });
  let left: unknown;
  environment.on('heartbeat', (details) => (left = details));
  const perform: (input: PerformInput) => Promise<EffectRecord> = createActivities(
    depsWith({ tools: [tool] }),
  ).perform;
  const { hash: payloadHash } = hashPayload({ tool: tool.name, arguments: args });
  try {
    const since = keysSince === undefined ? {} : { keysSince };
    const input = { v: 1 as const, position, root, tool: tool.name, arguments: args, payloadHash, ...since };
    const record: EffectRecord = await environment.run(perform, input);
    return { output: record.output, left };
  } catch (error) {
    return { error, left };
  }
}

/** What the workflow and the server see of a failure. */
function seen({ error }: End): { type: string; retried: boolean; clear: boolean } {
  const failure = error instanceof ApplicationFailure ? error : undefined;
  assert.ok(error instanceof Error, 'the attempt did not fail');
  const type = failure?.type ?? error.name;
  return { type, retried: failure?.nonRetryable !== true, clear: isClearFailure(type) };
}

const refused = { type: 'effect_failed', retried: false, clear: true };
const inDoubt = { type: 'effect_in_doubt', retried: false, clear: false };
const clearRetry = { type: 'effect_failed', retried: true, clear: true };
const unclearRetry = { type: 'Error', retried: true, clear: false };

function failing(error: Error, more: Partial<Tool> = {}): Tool {
  const run = () => Promise.reject(error);
  return recordingTool({ requiresApproval: false, run, ...more }).tool;
}

/** A lookup tool that answers the questions in order; one more fails the test. */
function lookupTool(answers: (Found | Error)[], run: () => Promise<unknown>) {
  const log: string[] = [];
  const { tool } = recordingTool({
    requiresApproval: false,
    idempotency: 'lookup',
    find(context, given) {
      log.push(`find ${context.idempotencyKey}`);
      assert.deepEqual(given, args);
      const answer = answers.shift();
      if (answer === undefined) throw new assert.AssertionError({ message: 'asked too often' });
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
    },
    run() {
      log.push('run');
      return run();
    },
  });
  return { tool, log, left: () => answers.length };
}

const key = `${root}:${position}`;
const no: Found = { found: false };
const yes: Found = { found: true, output: { refund: 're_0' } };
const unknown: Found = { found: 'unknown' };
const cut = () => Promise.reject(new Error('socket hang up'));
const done = () => Promise.resolve({ refund: 're_1' });

test('P5: a refusal is clear only when no earlier attempt can have happened', async () => {
  const tool = failing(new ToolRefusedError('card declined'));
  assert.deepEqual(seen(await attempt(tool)), refused);
  const second = await attempt(tool, { attempt: 2 });
  assert.deepEqual(seen(second), inDoubt);
  assert.match(String(second.error), /attempt 2 was refused \(card declined\), an earlier one ended unclear/);
});

test('P5: an attempt that changed nothing leaves word of it, and the next refusal is clear', async () => {
  const busy = failing(new ToolRetryError('429', { clear: true }));
  const first = await attempt(busy);
  assert.deepEqual(seen(first), clearRetry);
  const second = await attempt(busy, { attempt: 2, heartbeatDetails: first.left });
  assert.deepEqual(seen(second), clearRetry, 'used up now, it ends as a clear failure');
  const declined = failing(new ToolRefusedError('declined'));
  assert.deepEqual(seen(await attempt(declined, { attempt: 3, heartbeatDetails: second.left })), refused);
  // what the second one left says nothing of a third that was killed
  assert.deepEqual(seen(await attempt(declined, { attempt: 4, heartbeatDetails: second.left })), inDoubt);
});

test('P5: once one attempt was unclear, no later one makes it clear again', async () => {
  const first = await attempt(failing(new Error('socket hang up')));
  assert.deepEqual(seen(first), unclearRetry);
  const busy = failing(new ToolRetryError('429', { clear: true }));
  const second = await attempt(busy, { attempt: 2, heartbeatDetails: first.left });
  assert.deepEqual(seen(second), { ...unclearRetry, type: 'ToolRetryError' });
  const third = failing(new ToolRefusedError('401'));
  assert.deepEqual(seen(await attempt(third, { attempt: 3, heartbeatDetails: second.left })), inDoubt);
  // a reset of the activity counts from 1 again, and keeps the word of the earlier attempts
  assert.deepEqual(seen(await attempt(third, { attempt: 1, heartbeatDetails: second.left })), inDoubt);
});

test('P5: heartbeats of somebody else are no word', async () => {
  const tool = failing(new ToolRefusedError('declined'));
  for (const heartbeatDetails of [
    null,
    'clear',
    1,
    {},
    { v: 2, startedAt: 1, attempt: 1, clear: true },
    [],
  ]) {
    assert.deepEqual(seen(await attempt(tool, { attempt: 2, heartbeatDetails })), inDoubt);
  }
});

test('P5: a target that takes no key and surely did nothing is no case for a person', async () => {
  const none = (error: Error) => failing(error, { idempotency: 'none' });
  // one attempt: what it says is the end of it
  assert.ok(seen(await attempt(none(new ToolRetryError('429', { clear: true })))).clear);
  assert.ok(!seen(await attempt(none(new ToolRetryError('503')))).clear);
  assert.ok(!seen(await attempt(none(new Error('socket hang up')))).clear);
});

test('P5: a worker that knows the tool as none makes no second attempt after an unclear one', async () => {
  // frozen with keys, so the policy brings more attempts; deployed as none since
  const { tool, calls } = recordingTool({ requiresApproval: false, idempotency: 'none' });
  const unclear = (await attempt(failing(new Error('socket hang up'), { idempotency: 'none' }))).left;
  for (const where of [
    { attempt: 2, heartbeatDetails: unclear },
    { attempt: 2 },
    // an activity that was reset counts from 1 again
    { attempt: 1, heartbeatDetails: unclear },
  ]) {
    const end = await attempt(tool, where);
    assert.deepEqual(seen(end), inDoubt);
    assert.match(
      String(end.error),
      /attempt \d was not made: an earlier one ended unclear, and "payments\.refund" says/,
    );
  }
  assert.equal(calls.length, 0);
  // what surely changed nothing may be tried again, and so may what only reads
  const busy = failing(new ToolRetryError('429', { clear: true }), { idempotency: 'none' });
  const clear = (await attempt(busy)).left;
  assert.deepEqual((await attempt(tool, { attempt: 2, heartbeatDetails: clear })).output, { refund: 're_1' });
  assert.deepEqual((await attempt({ ...tool, safe: () => true }, { attempt: 2 })).output, { refund: 're_1' });
  assert.equal(calls.length, 2);
});

test('P5: a tool can say that nobody can know', async () => {
  const end = await attempt(failing(new ToolInDoubtError('302')));
  assert.deepEqual(seen(end), inDoubt);
});

test("a target's wish for a later attempt is kept, never sooner than the policy's own backoff", async () => {
  const retryPolicy = { initialInterval: 500, backoffCoefficient: 2, maximumInterval: 60_000 };
  const delay = async (retryAfterMs: number | undefined, where: Where = {}) => {
    const { error } = await attempt(failing(new ToolRetryError('503', { retryAfterMs })), where);
    assert.ok(error instanceof ApplicationFailure);
    return error.nextRetryDelay;
  };
  assert.equal(await delay(90_000), 90_000);
  assert.equal(await delay(90_000, { retryPolicy }), 90_000);
  assert.equal(await delay(1_000, { retryPolicy }), 1_000);
  assert.equal(await delay(1_000, { retryPolicy, attempt: 5 }), 8_000);
  assert.equal(await delay(1_000, { retryPolicy, attempt: 50 }), 60_000);
  for (const none of [undefined, 0, -1, NaN, Infinity]) assert.equal(await delay(none), undefined);
});

test('keyTtl: after it there is no automatic attempt', async () => {
  const { tool, calls } = recordingTool({ requiresApproval: false, keyTtl: '24h' });
  const old = Date.now() - 24 * hour;
  const late = await attempt(tool, { attempt: 2, scheduledTimestampMs: old });
  assert.deepEqual(seen(late), inDoubt);
  assert.match(String(late.error), /attempt 2 was not made: .*86400 s ago.*may forget a key after 86400 s/);
  assert.equal(calls.length, 0);
  const young = await attempt(tool, { attempt: 2, scheduledTimestampMs: old + 60_000 });
  assert.deepEqual(young.output, { refund: 're_1' });
});

test('keyTtl counts from the start of the first attempt, not from when it was put into the queue', async () => {
  const { tool } = recordingTool({ requiresApproval: false, keyTtl: hour });
  const queued = Date.now() - 30 * hour;
  const first = await attempt(failing(new Error('cut'), { keyTtl: hour }), { scheduledTimestampMs: queued });
  assert.deepEqual(seen(first), unclearRetry, 'no worker for a day: the key is new all the same');
  const second = await attempt(tool, {
    attempt: 2,
    scheduledTimestampMs: queued,
    heartbeatDetails: first.left,
  });
  assert.deepEqual(second.output, { refund: 're_1' });
  const long = { v: 1, startedAt: Date.now() - 2 * hour, attempt: 1, clear: false };
  assert.deepEqual(seen(await attempt(tool, { attempt: 2, heartbeatDetails: long })), inDoubt);
  // the word is handed on, attempt by attempt
  const again = await attempt(failing(new Error('cut')), { attempt: 2, heartbeatDetails: long });
  assert.equal((again.left as { startedAt: number }).startedAt, long.startedAt);
});

test('keyTtl counts from the start of a run that was reset, since its first attempt may be none (P5)', async () => {
  const { tool, calls } = recordingTool({ requiresApproval: false, keyTtl: hour });
  const late = await attempt(tool, { keysSince: Date.now() - 2 * hour });
  assert.deepEqual(seen(late), inDoubt);
  assert.match(String(late.error), /attempt 1 was not made: the run was reset and began 7200 s ago/);
  assert.equal(calls.length, 0);
  const young = await attempt(tool, { keysSince: Date.now() - hour / 2 });
  assert.deepEqual(young.output, { refund: 're_1' });
  const { tool: without } = recordingTool({ requiresApproval: false });
  assert.deepEqual(
    (await attempt(without, { keysSince: 0 })).output,
    { refund: 're_1' },
    'no keyTtl, no limit',
  );
});
test('keyTtl is no matter where no attempt has reached the target', async () => {
  const { tool, calls } = recordingTool({ requiresApproval: false, keyTtl: hour });
  const unsent = { v: 1, startedAt: Date.now() - 2 * hour, attempt: 3, clear: true };
  assert.deepEqual((await attempt(tool, { attempt: 4, heartbeatDetails: unsent })).output, {
    refund: 're_1',
  });
  assert.equal(calls.length, 1);
});

test('lookup: the target is asked before every attempt, the first too, under the key', async () => {
  const first = lookupTool([no], done);
  assert.deepEqual((await attempt(first.tool)).output, { refund: 're_1' });
  assert.deepEqual(first.log, [`find ${key}`, 'run']);
  // a reset of the run comes after it happened
  const afterReset = lookupTool([yes], done);
  assert.deepEqual((await attempt(afterReset.tool)).output, { refund: 're_0' });
  assert.deepEqual(afterReset.log, [`find ${key}`]);
  const second = lookupTool([yes], done);
  assert.deepEqual((await attempt(second.tool, { attempt: 2 })).output, { refund: 're_0' });
  assert.deepEqual(second.log, [`find ${key}`]);
});

test('lookup: what cannot be told is in doubt, and not called', async () => {
  for (const answer of [unknown, undefined, null, {}, { found: 'maybe' }, true] as Found[]) {
    const { tool } = recordingTool({
      requiresApproval: false,
      idempotency: 'lookup',
      find: async () => answer,
    });
    const run = test.mock.method(tool, 'run');
    assert.deepEqual(seen(await attempt(tool)), inDoubt);
    assert.equal(run.mock.callCount(), 0);
  }
});

test('lookup: a tool without find() is in doubt, and not called', async () => {
  const { tool, calls } = recordingTool({ requiresApproval: false, idempotency: 'lookup' });
  assert.deepEqual(seen(await attempt(tool)), inDoubt);
  assert.equal(calls.length, 0);
});

test('lookup: it is asked after an unclear failure, and the answer decides', async () => {
  const happened = lookupTool([no, yes], cut);
  assert.deepEqual((await attempt(happened.tool)).output, { refund: 're_0' });
  const didNot = lookupTool([no, no], cut);
  assert.deepEqual(seen(await attempt(didNot.tool)), clearRetry);
  const cannotTell = lookupTool([no, unknown], cut);
  const end = await attempt(cannotTell.tool);
  assert.deepEqual(seen(end), inDoubt);
  assert.match(String(end.error), /socket hang up; and the target cannot tell/);
  const doubt = lookupTool([no, yes], () => Promise.reject(new ToolInDoubtError('302')));
  assert.deepEqual((await attempt(doubt.tool)).output, { refund: 're_0' });
  for (const asked of [happened, didNot, cannotTell]) {
    assert.deepEqual(asked.log, [`find ${key}`, 'run', `find ${key}`]);
    assert.equal(asked.left(), 0);
  }
});

test('lookup: nobody is asked after a clear end', async () => {
  const declined = lookupTool([no], () => Promise.reject(new ToolRefusedError('declined')));
  assert.deepEqual(seen(await attempt(declined.tool, { attempt: 3 })), refused);
  const busy = lookupTool([no], () => Promise.reject(new ToolRetryError('429', { clear: true })));
  assert.deepEqual(seen(await attempt(busy.tool, { attempt: 3 })), clearRetry);
});

test('lookup: a question that fails is asked again, whatever it fails with, and nothing is called', async () => {
  const errors = [new Error('down'), new ToolRefusedError('403'), new ToolRetryError('429', { clear: true })];
  for (const error of errors) {
    const before = lookupTool([error], done);
    assert.deepEqual(seen(await attempt(before.tool)), { ...unclearRetry, type: 'lookup_failed' });
    assert.deepEqual(before.log, [`find ${key}`]);
    const after = lookupTool([no, error], cut);
    assert.deepEqual(seen(await attempt(after.tool)), unclearRetry);
  }
});

test('lookup: an old key that was carried out counts, one that was not is in doubt (keyTtl)', async () => {
  const where = { attempt: 2, scheduledTimestampMs: Date.now() - 2 * hour };
  const happened = lookupTool([yes], done);
  assert.deepEqual((await attempt({ ...happened.tool, keyTtl: hour }, where)).output, { refund: 're_0' });
  const forgotten = lookupTool([no], done);
  assert.deepEqual(seen(await attempt({ ...forgotten.tool, keyTtl: hour }, where)), inDoubt);
  assert.deepEqual(forgotten.log, [`find ${key}`]);
});

test('a call that only reads is never in doubt, and asked of nobody', async () => {
  const reads = (error: Error) =>
    failing(error, {
      idempotency: 'lookup',
      safe: () => true,
      find: () => Promise.reject(new Error('asked')),
    });
  for (const error of [new Error('cut'), new ToolRetryError('503')]) {
    assert.deepEqual(seen(await attempt(reads(error), { attempt: 2 })), clearRetry);
  }
  for (const error of [new ToolRefusedError('404'), new ToolInDoubtError('302')]) {
    assert.deepEqual(seen(await attempt(reads(error), { attempt: 2 })), refused);
  }
});

test('the word for the next attempt goes out with every heartbeat', async (t) => {
  const timer = {} as NodeJS.Timeout;
  const started = t.mock.method(globalThis, 'setInterval', () => timer);
  t.mock.method(globalThis, 'clearInterval', () => undefined);
  const { tool } = recordingTool({
    requiresApproval: false,
    run({ heartbeat }) {
      heartbeat();
      return Promise.resolve(null);
    },
  });
  const before = Date.now();
  const { left } = await attempt(tool);
  const { startedAt, ...rest } = left as { startedAt: number };
  assert.ok(startedAt >= before && startedAt <= Date.now());
  assert.deepEqual(rest, { v: 1, position: 'refund', attempt: 1, clear: false });
  assert.equal(started.mock.callCount(), 1);
});

test('defineTool refuses what would guess', () => {
  const { tool } = recordingTool();
  const define = (more: Partial<Tool>) => () => defineTool({ ...tool, ...more });
  assert.throws(define({ idempotency: 'lookup' }), /payments\.refund.*'lookup' needs find/);
  assert.throws(
    define({ find: async () => no }),
    /find\(\) is asked only with idempotency 'lookup', got "key"/,
  );
  assert.throws(define({ idempotency: 'none', keyTtl: '24h' }), /keyTtl is for targets that take a key/);
  for (const keyTtl of ['', '24', 'a day', 0, -1, 1.5, NaN]) {
    assert.throws(define({ keyTtl }), /keyTtl must be a duration like/, String(keyTtl));
  }
  assert.ok(defineTool({ ...tool, keyTtl: '24h' }));
  assert.ok(defineTool({ ...tool, idempotency: 'lookup', keyTtl: 86_400_000, find: async () => no }));
});
