// P3, P4: the only activity that changes the world calls the tool with exactly what was approved, under the
// key of (root, position), and for nothing else at all.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApplicationFailure } from '@temporalio/common';
import { createActivities } from '../src/activities/index.ts';
import type { ActivityDeps } from '../src/activities/deps.ts';
import type { EffectRecord, Grant, PerformInput } from '../src/core/case.ts';
import { issueGrant } from '../src/core/grant.ts';
import { hashPayload, shortKey } from '../src/core/hash.ts';
import { ToolRefusedError, type Tool } from '../src/tool.ts';
import {
  depsWith, environment, key, makeGrantKey, namespace, position, recordingTool, root, run, workflowId,
} from './support/activity.ts'; // prettier-ignore

const grantKey = makeGrantKey('g1');
const args = { order: 'ord-1', amount: 100, currency: 'EUR' };
const payloadHash = hashPayload({ tool: 'payments.refund', arguments: args }).hash;
const right: Omit<Grant, 'kid' | 'mac'> = {
  v: 1, namespace, workflowId, key, root, position, tool: 'payments.refund', payloadHash, decisionId: 'd-1',
}; // prettier-ignore
const grant = issueGrant(right, [grantKey]);
const granted: PerformInput = {
  v: 1,
  position,
  root,
  tool: 'payments.refund',
  arguments: args,
  payloadHash,
  grant,
};
const { grant: _grant, ...ungranted } = granted;

function deployed(tool: Tool, more: Partial<ActivityDeps> = {}): ActivityDeps {
  return depsWith({ tools: [tool], grantKeys: () => [grantKey], ...more });
}

/** Performs it; it must be refused, for good, and no tool may be called. */
async function refused(
  code: string,
  input: PerformInput,
  where: { workflowId?: string; attempt?: number } = {},
  more: Partial<ActivityDeps> = {},
): Promise<string> {
  const { tool, calls } = recordingTool();
  let told = '';
  await assert.rejects(run('perform', deployed(tool, more), input, where), (error: unknown) => {
    assert.ok(error instanceof ApplicationFailure, String(error));
    assert.deepEqual([error.type, error.nonRetryable], [code, true], error.message);
    told = error.message;
    return true;
  });
  assert.deepEqual(calls, [], 'the tool was called');
  return told;
}

test('P4: with its grant the tool is called once, with the approved arguments, under root and position', async () => {
  const { tool, calls } = recordingTool();
  const record = await run('perform', deployed(tool), granted);
  const idempotencyKey = `${root}:${position}`;
  const done = { tool: tool.name, idempotencyKey, payloadHash, output: { refund: 're_1' } };
  assert.deepEqual(record, { v: 1, kind: 'effect', position, root, ...done });
  assert.equal(calls.length, 1);
  assert.deepEqual(calls[0]?.args, args);
  assert.equal(calls[0].context.idempotencyKey, idempotencyKey);
});

test('P4: the key is the same in every attempt and every run id, and another in another position', async () => {
  const { tool, calls } = recordingTool({ requiresApproval: false });
  for (const attempt of [1, 2, 9]) await run('perform', deployed(tool), ungranted, { attempt });
  await run('perform', deployed(tool), ungranted, { workflowId: 'another-id' });
  await run('perform', deployed(tool), { ...ungranted, position: 'refund#2' });
  const keys = calls.map(({ context }) => context.idempotencyKey);
  const same = `${root}:refund`;
  assert.deepEqual(keys, [same, same, same, same, `${root}:refund#2`]);
  assert.deepEqual(
    calls.slice(0, 3).map(({ context }) => context.attempt),
    [1, 2, 9],
  );
});

test('P4: a target that takes only short keys gets 43 characters of the SHA-256, and short ones as they are', async () => {
  const { tool, calls } = recordingTool({ requiresApproval: false, keyMaxLength: 43 });
  const record = await run('perform', deployed(tool), ungranted);
  const full = `${root}:${position}`;
  assert.equal(full.length, 43);
  const long = { ...ungranted, position: 'refund#2' };
  const short = await run('perform', deployed(tool), long);
  assert.deepEqual([record.idempotencyKey, short.idempotencyKey], [full, shortKey(`${root}:refund#2`)]);
  assert.match(short.idempotencyKey, /^[A-Za-z0-9_-]{43}$/);
  assert.deepEqual(
    calls.map(({ context }) => context.idempotencyKey),
    [record.idempotencyKey, short.idempotencyKey],
  );
});

test('P3: a tool that requires approval never runs without a grant (case 8)', async () => {
  assert.match(await refused('approval_required', ungranted), /payments\.refund.*only with a grant/);
});

test('P3: a made-up, altered or foreign grant, or one of a removed key, is refused (cases 8 and 55)', async () => {
  const forged: [string, Grant][] = [
    ['made up', { ...right, kid: 'g1', mac: 'A'.repeat(43) }],
    ['signed with a key made up', issueGrant(right, [makeGrantKey('g1')])],
    ['of an unknown key', issueGrant(right, [makeGrantKey('g0')])],
    ['for another run', issueGrant({ ...right, workflowId: 'refund-ord-1002' }, [grantKey])],
    ['of another namespace', issueGrant({ ...right, namespace: 'staging' }, [grantKey])],
    ['of an earlier chain of the id', issueGrant({ ...right, root: root.replace('01', '02') }, [grantKey])],
    ['for another position', issueGrant({ ...right, position: 'refund#2' }, [grantKey])],
    ['for another tool', issueGrant({ ...right, tool: 'notify.send' }, [grantKey])],
  ];
  for (const name of Object.keys(grant) as (keyof Grant)[]) {
    forged.push([`with ${name} changed`, { ...grant, [name]: `${String(grant[name])}x` }]);
  }
  for (const [what, presented] of forged) {
    const message = await refused('grant_invalid', { ...granted, grant: presented });
    assert.notEqual(message, '', what);
  }
  await refused('grant_invalid', granted, { workflowId: 'refund-ord-1002' });
  await refused('grant_invalid', granted, {}, { namespace: 'staging' });
  await refused('grant_invalid', granted, {}, { grantKeys: () => [] });
  for (const odd of [null, 'grant', {}, []])
    await refused('grant_invalid', { ...granted, grant: odd as never });
});

test('P3: arguments that do not hash to what was approved are refused (cases 4 and 5)', async () => {
  const changed = [
    { ...args, amount: 101 }, { ...args, note: '' }, { ...args, currency: 'EUR ' }, { order: 'ord-1', amount: 100 },
    { ...args, order: 'ord-1\u0301' }, [args], null,
  ]; // prettier-ignore
  for (const other of changed) {
    assert.match(
      await refused('payload_changed', { ...granted, arguments: other }),
      /approved was [0-9a-f]{12}/,
    );
    // with a hash that fits the changed arguments the grant still does not
    const { hash } = hashPayload({ tool: 'payments.refund', arguments: other });
    await refused('payload_changed', { ...granted, arguments: other, payloadHash: hash });
  }
});

test('P3: an ungated call whose arguments were changed on their way is refused too', async () => {
  const { tool } = recordingTool();
  const open = { tools: [{ ...tool, requiresApproval: false }] };
  await refused('payload_changed', { ...ungranted, arguments: { ...args, amount: 1 } }, {}, open);
});

test('P5: a right refused on a later attempt says nothing of the earlier ones: in doubt', async () => {
  const message = await refused('effect_in_doubt', granted, { attempt: 2 }, { grantKeys: () => [] });
  assert.match(message, /attempt 2 was refused \(the grant is refused.*an earlier one was not/);
});

test('P4: a worker that lacks the tool fails for another to take it', async () => {
  await assert.rejects(
    run('perform', depsWith({ grantKeys: () => [grantKey] }), granted),
    (error: unknown) => {
      assert.ok(error instanceof ApplicationFailure);
      assert.deepEqual([error.type, error.nonRetryable], ['unknown_tool', false]);
      return true;
    },
  );
});

test('P4: a clear refusal of the target is final, any other error is retried', async () => {
  const failing = (error: Error) => deployed(recordingTool({ run: () => Promise.reject(error) }).tool);
  const declined = failing(new ToolRefusedError('card declined'));
  await assert.rejects(run('perform', declined, granted), (error: unknown) => {
    assert.ok(error instanceof ApplicationFailure);
    assert.deepEqual(
      [error.type, error.nonRetryable, error.message],
      ['effect_failed', true, 'card declined'],
    );
    return true;
  });
  const cause = new Error('socket hang up');
  await assert.rejects(run('perform', failing(cause), granted), (error: unknown) => error === cause);
});

test('P4: an output that cannot be recorded does not fail the effect, which happened', async () => {
  const cyclic: Record<string, unknown> = {};
  cyclic['self'] = cyclic;
  const outputs: [unknown, RegExp | undefined, unknown][] = [
    [undefined, undefined, null], [{ a: [1, 'é', null] }, undefined, { a: [1, 'é', null] }], [cyclic, /cycles/, null],
    [{ at: new Date(0) }, /at \/at: a Date/, null], [{ n: Number.NaN }, /at \/n: .*NaN/, null], [{ a: undefined }, /\/a/, null],
    [10n, /BigInt/, null], [() => 1, /function/, null], ['x'.repeat(3_000_000), /3000002 bytes.*limit is 262144/, null],
  ]; // prettier-ignore
  for (const [output, problem, recorded] of outputs) {
    const { tool } = recordingTool({ run: () => Promise.resolve(output) });
    const record: EffectRecord = await run('perform', deployed(tool), granted);
    assert.deepEqual(record.output, recorded);
    if (problem === undefined) assert.equal(record.outputProblem, undefined);
    else assert.match(record.outputProblem ?? '', problem);
  }
});

test('P4: it heartbeats by itself every second while the tool works, and not after', async (t) => {
  const timer = {} as NodeJS.Timeout;
  const started = t.mock.method(globalThis, 'setInterval', () => timer);
  const ended = t.mock.method(globalThis, 'clearInterval', () => undefined);
  let finish: (value: unknown) => void = () => undefined;
  const { tool } = recordingTool({ run: () => new Promise((resolve) => (finish = resolve)) });
  const context = environment();
  let beats = 0;
  context.on('heartbeat', () => (beats += 1));
  const running = context.run(createActivities(deployed(tool)).perform, granted);
  const [beat, everyMs] = started.mock.calls[0]?.arguments as unknown as [() => void, number];
  assert.equal(everyMs, 1_000);
  beat();
  beat();
  assert.equal(beats, 2);
  assert.equal(ended.mock.callCount(), 0);
  finish({ refund: 're_1' });
  await running;
  assert.deepEqual(
    ended.mock.calls.map((call) => call.arguments as unknown[]),
    [[timer]],
  );
});

test('P4: the tool is told when its run is cancelled or its worker stops', async () => {
  const { tool } = recordingTool({
    run: ({ signal }) =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('stopped')))),
  });
  const context = environment();
  const running = context.run(createActivities(deployed(tool)).perform, granted);
  context.cancel();
  await assert.rejects(running, /stopped/);
});
