// P6 on a real server: earlier executions of a run are past the retention (here: deleted). What is kept is
// served, its gates are decided, and the doors of all runs stay open.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { startApi } from './support/api-server.ts';
import { listen, type HeardEvent } from './support/event-listener.ts';
import { eventually } from './support/eventually.ts';
import { clientOf, decisionOn, openGate, openGates, receiptOf } from './support/gates.ts';
import { fetchHistory } from './support/history.ts';
import { startGate } from './support/kinds.ts';
import { startLedger } from './support/ledger.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { startWorker } from './support/worker.ts';

const temporal = await openTemporal();
const { address, namespace, taskQueue, client } = temporal;
const countersign = clientOf(temporal);
const ledger = await startLedger();
const { path: secretsFile } = await makeSecrets();
await startWorker({ address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url });
const events = { allEvents: { holdMs: 200, pauseMs: 50 } };
const began = new Date().toISOString();

const executionOf = async (runId: string): Promise<string> =>
  (await client.workflow.getHandle(runId).describe()).runId;

const replaced = (runId: string, first: string): Promise<unknown> =>
  eventually(async () => (await executionOf(runId)) !== first);

async function lose(workflowId: string, runId: string): Promise<void> {
  const workflowExecution = { workflowId, runId };
  await client.workflowService.deleteWorkflowExecution({ namespace, workflowExecution });
  const gone = () =>
    client.workflow
      .getHandle(workflowId, runId)
      .fetchHistory()
      .then(
        () => false,
        () => true,
      );
  await eventually(gone);
}

const typesIn = (body: Record<string, unknown>): string[] =>
  (body['trail'] as { type: string }[]).map(({ type }) => type);

test('P6: a continued run whose first execution is not kept any more is read and decided', async () => {
  const api = await startApi(temporal, { secretsFile, events });
  const runId = temporal.id('gone');
  const gates = ['a', 'b'].map((name) => ({
    name,
    tool: 'payments.refund',
    arguments: { order: `${runId}/${name}`, amount: '1.00' },
  }));
  await client.workflow.start('carriedGates', { workflowId: runId, taskQueue, args: [{ gates }] });
  const first = await executionOf(runId);
  const [a, b] = await openGates(countersign, runId, 2);
  assert.ok(a && b);
  const approve = decisionOn(a, 'approve');
  await countersign.sendDecision(runId, approve);
  await receiptOf(countersign, approve, runId);
  await client.workflow.getHandle(runId).signal('roll');
  await replaced(runId, first);
  await lose(runId, first);

  const listener = listen(await api.open('/events'));
  const path = `/runs/${encodeURIComponent(runId)}`;
  const trail = await api.call('GET', `${path}/trail`);
  assert.equal(trail.status, 200, trail.text);
  assert.deepEqual(typesIn(trail.body).slice(0, 2), ['run_started', 'approval_requested']);
  for (const read of [path, `/approvals/${b.key}`, '/decisions', '/runs', '/approvals']) {
    const { status, text } = await api.call('GET', read);
    assert.equal(status, 200, `${read}: ${text}`);
  }
  const decided = await api.approve(b, { idempotencyKey: 'retention-1' });
  assert.equal(decided.status, 200, decided.text);
  const again = await api.approve(b, { idempotencyKey: 'retention-1' });
  assert.deepEqual([again.status, again.body['decisionId']], [200, decided.body['decisionId']]);
  await api.find(`/decisions?since=${began}`, ({ key }) => key === b.key);
  // runs of other tests are heard too
  const isHeard = ({ type, data }: HeardEvent) => type === 'approval_granted' && data['key'] === b.key;
  while (!(await listener.take(1)).some(isHeard));
  await listener.leave();
  await api.close();
});

test('P6: a run that was reset keeps what it copied when the execution it was reset from is gone', async () => {
  const api = await startApi(temporal, { secretsFile, events });
  const runId = temporal.id('gone-base');
  const gate = await startGate(temporal, countersign, 'runSpec', runId);
  const first = await executionOf(runId);
  const history = await fetchHistory(client, runId);
  const task = history.events?.findLast((event) => event.workflowTaskCompletedEventAttributes);
  assert.ok(task?.eventId);
  await client.workflowService.resetWorkflowExecution({
    namespace,
    workflowExecution: { workflowId: runId },
    reason: 'a test',
    workflowTaskFinishEventId: task.eventId,
    requestId: randomUUID(),
  });
  await replaced(runId, first);
  await openGate(countersign, runId);
  await lose(runId, first);
  const trail = await api.call('GET', `/runs/${encodeURIComponent(runId)}/trail`);
  assert.equal(trail.status, 200, trail.text);
  assert.equal(typesIn(trail.body)[0], 'run_started');
  const { status, text } = await api.call('GET', `/approvals/${gate.key}`);
  assert.equal(status, 200, text);
  const decided = await api.approve(gate, { idempotencyKey: 'retention-2' });
  assert.equal(decided.status, 200, decided.text);
  await api.close();
});
