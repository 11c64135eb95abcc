// P5 on a real server: where a target takes no key nobody guesses. An unclear end is one call and a question
// to a person (who gives up here: the run says `effect_in_doubt`), never a blind second try; and a clear
// refusal is no doubt. What the other answers do is in every-kind.server.test.ts.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { WorkflowFailedError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { z } from 'zod';
import type { Idempotency } from '../src/core/case.ts';
import type { Tool } from '../src/tool.ts';
import { openDeployment, sideBySide, type Deployment } from './support/deployment.ts';
import { eventually } from './support/eventually.ts';
import { decisionOn, factsOf, openGate, type SeenGate } from './support/gates.ts';
import { kinds, startGate } from './support/kinds.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';

const temporal = await openTemporal();
const { client } = temporal;
const { path: secretsFile } = await makeSecrets();
const deploy = (): Promise<Deployment> => openDeployment(temporal, secretsFile);
const plain = { tool: 'payments.plain' };

/** The run fails with that code, naming its step, and its trail says so of the one effect that began. */
async function assertEnds(
  { countersign }: Deployment,
  { runId, root }: SeenGate,
  code: 'effect_in_doubt' | 'effect_failed',
): Promise<string> {
  let message = '';
  if (code === 'effect_in_doubt') await giveUp(countersign, runId);
  await assert.rejects(client.workflow.getHandle(runId).result(), (error: unknown) => {
    assert.ok(error instanceof WorkflowFailedError, String(error));
    assert.ok(error.cause instanceof ApplicationFailure, String(error.cause));
    assert.equal(error.cause.type, code, error.cause.message);
    message = error.cause.message;
    return true;
  });
  assert.match(message, /^step "refund": /);
  const trail = await countersign.readTrail(runId);
  const ends = trail.filter(({ type }) => /^(effect_|tool_|run_finished)/.test(type));
  assert.deepEqual(
    ends.map(({ type }) => type),
    ['effect_started', code, 'run_finished'],
  );
  const [told] = await factsOf(countersign, runId, code);
  assert.equal(told?.idempotencyKey, `${root}:refund`);
  const [finished] = await factsOf(countersign, runId, 'run_finished');
  assert.deepEqual([finished?.status, finished?.error?.['code']], ['failed', code]);
  return message;
}

/** Rejects the question whether the effect happened. */
async function giveUp(countersign: Deployment['countersign'], runId: string): Promise<void> {
  const doubt = await eventually(
    async () => {
      const gate = await openGate(countersign, runId);
      return gate.position === 'refund/in-doubt' ? gate : undefined;
    },
    { message: 'the question whether it happened' },
  );
  assert.equal(await countersign.sendDecision(runId, decisionOn(doubt, 'reject')), true);
}

/** A tool that waits for its target however long that takes, and notes the answers. */
function patientTool(ledgerUrl: string, idempotency: Idempotency): { tool: Tool; answers: unknown[] } {
  const answers: unknown[] = [];
  const tool: Tool = {
    name: 'payments.patient',
    arguments: z.looseObject({}),
    idempotency,
    requiresApproval: true,
    timeoutMs: 3_000,
    attempts: 2,
    async run({ idempotencyKey }, args) {
      const [path, headers] =
        idempotency === 'none' ? ['/plain', {}] : ['/refunds', { 'idempotency-key': idempotencyKey }];
      const response = await fetch(ledgerUrl + path, { method: 'POST', headers, body: JSON.stringify(args) });
      answers.push(await response.json());
      return null;
    },
  };
  return { tool, answers };
}

describe('in doubt', sideBySide, () => {
  for (const kind of kinds) {
    test(`P5: done, and the worker killed before it can report: one call, and the run says in doubt (case 21, ${kind})`, async () => {
      const deployment = await deploy();
      const { temporal: own, countersign, ledger, spawn, untilHeld, approve } = deployment;
      const worker = await spawn();
      const gate = await startGate(own, countersign, kind, own.id('killed'), plain);
      await ledger.hold();
      await approve(gate);
      await untilHeld();
      await worker.kill();
      await ledger.release();
      assert.deepEqual(await factsOf(countersign, gate.runId, 'tool_result'), [], 'it could report');

      const next = await spawn();
      assert.match(await assertEnds(deployment, gate, 'effect_in_doubt'), /may or may not have happened/);
      assert.deepEqual(await ledger.counts(), { requests: 1, keys: 0, refunds: 1 });
      await next.stop();
    });

    test(`P5: the time is up and the target answers later: one call, in doubt, the late answer changes nothing (${kind})`, async () => {
      const deployment = await deploy();
      const { temporal: own, countersign, ledger, start, untilHeld, approve } = deployment;
      const { tool, answers } = patientTool(ledger.url, 'none');
      await start({ tools: [tool] });
      const gate = await startGate(own, countersign, kind, own.id('late'), { tool: tool.name });
      await ledger.hold();
      await approve(gate);
      await untilHeld();
      await assertEnds(deployment, gate, 'effect_in_doubt');
      await ledger.release();
      await eventually(() => answers.length === 1, { message: 'the late answer' });
      assert.deepEqual(await ledger.counts(), { requests: 1, keys: 0, refunds: 1 });
      assert.deepEqual(await factsOf(countersign, gate.runId, 'tool_result'), []);
    });

    test(`P5: a keyed effect whose last attempt ends unclear is in doubt, never failed (${kind})`, async () => {
      const deployment = await deploy();
      const { temporal: own, countersign, ledger, start, untilHeld, approve } = deployment;
      const { tool } = patientTool(ledger.url, 'key');
      await start({ tools: [tool] });
      const gate = await startGate(own, countersign, kind, own.id('last'), { tool: tool.name });
      await ledger.hold();
      await approve(gate);
      await untilHeld(2);
      await assertEnds(deployment, gate, 'effect_in_doubt');
      assert.deepEqual(await ledger.counts(), { requests: 2, keys: 1, refunds: 1 });
      await ledger.release();
    });
  }

  test('P5: a 503 from a target without keys may have been carried out: one call, in doubt', async () => {
    const deployment = await deploy();
    const { temporal: own, countersign, ledger, start, approve } = deployment;
    await start();
    for (const [earlier, kind] of kinds.entries()) {
      const gate = await startGate(own, countersign, kind, own.id('503'), plain);
      await ledger.fail({ status: 503, times: 9 });
      await approve(gate);
      assert.match(await assertEnds(deployment, gate, 'effect_in_doubt'), /the ledger answered 503/);
      assert.equal((await ledger.counts()).requests, earlier + 1);
    }
  });

  test("P5: a clear refusal is no doubt: the run fails with the target's own words", async () => {
    const deployment = await deploy();
    const { temporal: own, countersign, ledger, start, approve } = deployment;
    await start();
    const calls = kinds.flatMap((kind) =>
      ['payments.plain', 'payments.refund'].map((tool) => ({ kind, tool })),
    );
    for (const [earlier, { kind, tool }] of calls.entries()) {
      const gate = await startGate(own, countersign, kind, own.id('402'), { tool });
      await ledger.fail({ status: 402, times: 9 });
      await approve(gate);
      assert.match(await assertEnds(deployment, gate, 'effect_failed'), /the ledger answered 402/);
      assert.equal((await ledger.counts()).requests, earlier + 1);
    }
  });
});
