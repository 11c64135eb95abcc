// DESIGN §7 on a real server over real HTTP: all who wait for the verdicts of one run share a query, and nobody
// waits longer than their own budget, with a worker and without one.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createClient } from '../src/client.ts';
import type { CountersignClient } from '../src/countersign-client.ts';
import { startApi } from './support/api-server.ts';
import { eventually } from './support/eventually.ts';
import { clientOf } from './support/gates.ts';
import { startGate } from './support/kinds.ts';
import { startLedger } from './support/ledger.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { startWorker } from './support/worker.ts';

const temporal = await openTemporal();
const { address, namespace, taskQueue } = temporal;
const countersign = clientOf(temporal);
const ledger = await startLedger();
const { path: secretsFile } = await makeSecrets();
const people = Array.from({ length: 50 }, (_, index) => `person-${index}`);
/** Reads without waiting for the run to be idle: here it is not. */
const looker = createClient({ client: temporal.client, namespace, taskQueue });
/** Longer than 50 verdicts take where nothing is cached and others work too. */
const patientMs = 120_000;
const settings = { address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url };
let worker = await startWorker(settings);

/** Counts the queries that go to Temporal, and holds their answers back until it is told to give them. */
function heldQueries() {
  let give = (): void => undefined;
  const given = new Promise<void>((resolve) => (give = resolve));
  const seen = { queries: 0, atOnce: 0, inFlight: 0, sent: 0 };
  const wrapClient = (real: CountersignClient): CountersignClient => ({
    ...real,
    async sendDecision(...args) {
      const sent = await real.sendDecision(...args);
      seen.sent += 1;
      return sent;
    },
    async queryReceipts(...args) {
      seen.queries += 1;
      seen.inFlight += 1;
      seen.atOnce = Math.max(seen.atOnce, seen.inFlight);
      try {
        return await real.queryReceipts(...args);
      } finally {
        await given;
        seen.inFlight -= 1;
      }
    },
  });
  return { seen, wrapClient, give };
}

test('50 deciders on one run cause two queries: one that was under way, and one for all who came meanwhile', async () => {
  const { seen, wrapClient, give } = heldQueries();
  const api = await startApi(temporal, { secretsFile, people, wrapClient, receiptBudgetMs: patientMs });
  const gate = await startGate(temporal, countersign, 'runSpec', temporal.id('shared'), { stayOpen: true });
  const wrong = `sha256:${'0'.repeat(64)}`;
  // refused by its hash, each is a decision of its own, and the gate takes all of them
  const answers = people.map((as) => api.reject(gate, { as, body: { payloadHash: wrong } }));
  await eventually(() => seen.sent === people.length, { message: 'all decisions are in history' });
  await eventually(
    async () => {
      const trail = await looker.readTrail(gate.runId);
      return trail.filter(({ type }) => type === 'decision_refused').length === people.length;
    },
    { message: 'all decisions are judged', pauseMs: 250, timeoutMs: patientMs },
  );
  assert.deepEqual([seen.queries, seen.inFlight], [1, 1]);
  give();
  for (const { status, text } of await Promise.all(answers)) assert.equal(status, 412, text);
  assert.deepEqual([seen.queries, seen.atOnce], [2, 1]);

  // and the race of all of them for the gate: whoever is judged late is asked for again, never one by one
  const decided = await Promise.all(people.map((as) => api.reject(gate, { as })));
  const statuses = decided.map(({ status }) => status);
  assert.equal(statuses.filter((status) => status === 200).length, 1);
  assert.equal(statuses.filter((status) => status === 409).length, people.length - 1);
  assert.equal(seen.atOnce, 1);
  // a rejection ends a run of a spec
  await temporal.client.workflow.getHandle(gate.runId).result();
});

test('without a worker all 50 are told 202 within their own budget, while the one query still hangs', async () => {
  const { seen, wrapClient, give } = heldQueries();
  const api = await startApi(temporal, { secretsFile, people, wrapClient, receiptBudgetMs: 300 });
  const gate = await startGate(temporal, countersign, 'oneGated', temporal.id('nobody'), { stayOpen: true });
  await worker.stop();
  const answers = await Promise.all(people.map((as) => api.reject(gate, { as })));
  // the query has not come back to this process: no answer can have waited for it
  assert.deepEqual([seen.queries, seen.inFlight], [1, 1]);
  for (const { status, text, headers } of answers) {
    assert.equal(status, 202, text);
    assert.ok(headers.get('location') !== null);
  }
  give();
  worker = await startWorker(settings);
  const finals = await Promise.all(answers.map((answer, index) => api.final(answer, { as: people[index]! })));
  const statuses = finals.map(({ status }) => status);
  assert.equal(statuses.filter((status) => status === 200).length, 1);
  assert.equal(statuses.filter((status) => status === 409).length, people.length - 1);
  await temporal.client.workflow.getHandle(gate.runId).terminate();
});
