// P4 on a real server: no two effects of a run share a key, whatever its steps, its names and its child runs are
// called; and a faulty start by hand ends its run by name instead of failing its tasks for ever.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WorkflowFailedError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { startLedger } from './support/ledger.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { startWorker } from './support/worker.ts';
import type { NameToUse } from './support/workflows/names.ts';

const temporal = await openTemporal();
const { address, namespace, taskQueue, client } = temporal;
const ledger = await startLedger();
const { path: secretsFile } = await makeSecrets();
await startWorker({ address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url });

async function keysOf(order: string): Promise<string[]> {
  const lines = (await ledger.lines()).filter(({ body }) => (body as { order?: string }).order === order);
  return lines.map(({ key }) => (key ?? '').replace(/^[^:]*:/, ''));
}

function start(type: string, runId: string, input: unknown) {
  // a run that fails its tasks for ever is ended by the server, so that the test fails and does not hang
  const limits = { workflowExecutionTimeout: '20s' } as const;
  return client.workflow.start(type, { workflowId: runId, taskQueue, args: [input], ...limits });
}

/** @returns code and message */
async function failureOf(type: string, input: unknown, runId = temporal.id('faulty')) {
  const handle = await start(type, runId, input);
  const error: unknown = await handle.result().then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof WorkflowFailedError, `${JSON.stringify(input)} must fail its run`);
  assert.ok(error.cause instanceof ApplicationFailure, `${JSON.stringify(input)}: ${String(error.cause)}`);
  return { code: error.cause.type, message: error.cause.message };
}

const usesOf = async (order: string, uses: NameToUse[]) =>
  (await (await start('usesNames', order, { order, uses })).result()) as string[];

test('P4: a spec that repeats an id is refused at its start, and does nothing (started by hand)', async () => {
  const order = temporal.id('repeated');
  const steps = [1, 2, 3].map(() => ({ id: 'tell', tool: 'notify.send', with: { order } }));
  const input = { v: 1, spec: { version: 1, name: 'repeated', steps }, input: {}, continueAfterEvents: 1 };
  assert.deepEqual(await failureOf('runSpec', input, order), {
    code: 'invalid_start',
    message: 'spec: steps[1]: the id "tell" is used by an earlier step; rename one',
  });
  assert.deepEqual(await keysOf(order), []);
});

test('P4: a run of a spec hands on which step is next', async () => {
  const order = temporal.id('next');
  const steps = ['1', '0', 'last'].map((id) => ({ id, tool: 'notify.send', with: { order } }));
  const input = { v: 1, spec: { version: 1, name: 'next', steps }, input: {}, continueAfterEvents: 1 };
  const handle = await start('runSpec', order, input);
  await handle.result();
  assert.deepEqual(await keysOf(order), ['1', '0', 'last']);
  const history = await client.workflow.getHandle(order).fetchHistory();
  const [started] = history.events ?? [];
  const data = started?.workflowExecutionStartedEventAttributes?.input?.payloads?.[0]?.data;
  const { continued } = JSON.parse(Buffer.from(data ?? []).toString()) as { continued: { next: number } };
  assert.equal(continued.next, 2);
});

test('a faulty start by hand fails its run with invalid_start', async () => {
  const tool = { id: 'x', tool: 'notify.send' };
  const specs: [object, RegExp][] = [
    [{ ...tool, before: null }, /step "x": before must be/],
    [{ ...tool, before: 'approve' }, /before must be/],
    [{ ...tool, before: { approve: null } }, /before must be/],
    [{ ...tool, id: '__proto__' }, /"__proto__" cannot be used/],
    [{ ...tool, id: 'a b' }, /only letters/],
    [{ ...tool, id: 'x/in-doubt' }, /in-doubt/],
  ];
  const spec = (step: object) => ({ v: 1, spec: { version: 1, name: 'faulty', steps: [step] }, input: {} });
  const done = { steps: { x: { output: 1 } } };
  const good = { position: 'x', payloadHash: 'h', title: 't', tool: 'notify.send', phase: 'before' };
  const whole = { ...good, expiresAt: 1, policy: { ttlMs: 1 }, effect: {}, arguments: {} };
  const starts: [string, unknown, RegExp][] = [
    ...specs.map(([step, problem]): [string, unknown, RegExp] => ['runSpec', spec(step), problem]),
    ['runSpec', { ...spec(tool), continued: done }, /leave it out of a start/],
    ['runSpec', { ...spec(tool), continued: null }, /leave it out of a start/],
    ['requestApproval', { v: 1, case: { position: 'x', payloadHash: 'h' } }, /\{v: 1, case, …\}/],
    ['requestApproval', { v: 1, case: { ...whole, position: 'a b' } }, /start input/],
    ['requestApproval', { v: 1, case: { ...whole, expiresAt: 1e300 } }, /start input/],
    ['requestApproval', { v: 1, case: { ...whole, reasoning: 5 } }, /start input/],
    ['requestApproval', { v: 1, case: { ...whole, phase: 'in-doubt', doubt: {} } }, /start input/],
    ['requestApproval', { v: 1, case: { ...whole, effect: null } }, /start input/],
  ];
  await Promise.all(
    starts.map(async ([type, input, problem]) => {
      const { code, message } = await failureOf(type, input);
      assert.equal(code, 'invalid_start', JSON.stringify(input));
      assert.match(message, problem);
    }),
  );
});

test('P4: an effect whose key could be that of a child run is refused, over continue-as-new too', async () => {
  const child: NameToUse = { child: 'order', uses: [{ effect: 'pay' }] };
  const refused = /^duplicate_position: .*"order\/pay" lies below the child run "order".*rename it$/;
  for (const uses of [
    [child, { effect: 'order/pay' }],
    [child, { continues: true }, { effect: 'order/pay' }],
  ] satisfies NameToUse[][]) {
    const order = temporal.id('below');
    const ends = await usesOf(order, uses);
    assert.equal(ends[0], 'done');
    assert.match(ends[1] ?? '', refused);
    assert.deepEqual(await keysOf(order), ['order/pay'], 'the key of the child');
  }
  const order = temporal.id('above');
  const ends = await usesOf(order, [{ effect: 'order/pay' }, child, { effect: 'order' }, child]);
  assert.match(ends[1] ?? '', /^duplicate_position: .*"order\/pay" is; rename the child run$/);
  // after an effect of that name the child is order#2, and below that is nobody else
  assert.deepEqual(ends.toSpliced(1, 1), ['done', 'done', 'done']);
  assert.deepEqual(await keysOf(order), ['order/pay', 'order', 'order#2/pay']);
});

test('P4: a child run that would have the workflow id of a grandchild is refused', async () => {
  const order = temporal.id('grandchild');
  const ends = await usesOf(order, [
    { child: 'a', uses: [{ child: 'b', uses: [{ effect: 'tell' }] }] },
    { child: 'a/b', uses: [{ effect: 'tell' }] },
  ]);
  assert.equal(ends[0], 'done');
  assert.match(ends[1] ?? '', /^duplicate_position: .*"a\/b" lies below the child run "a"/);
  assert.deepEqual(await keysOf(order), ['a/b/tell']);
});
