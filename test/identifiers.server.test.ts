// P6 and P8 on a real server over real HTTP: ids and reasons of any text arrive as they were sent, in URL,
// key, signal and trail.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertInHistory, startApi } from './support/api-server.ts';
import { clientOf, decisionOn, factsOf, openGate } from './support/gates.ts';
import { startLedger } from './support/ledger.ts';
import { linesOf, refundSpec } from './support/refund-gates.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { startWorker } from './support/worker.ts';
import { runCommand } from './support/fake-terminal.ts';
import { parseApprovalKey } from '../src/core/approval-key.ts';

const temporal = await openTemporal();
const { client, address, namespace, taskQueue } = temporal;
const countersign = clientOf(temporal);
const ledger = await startLedger();
const { path: secretsFile, adminToken } = await makeSecrets();
const api = await startApi(temporal, { secretsFile });
await startWorker({ address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url });

const limitBytes = 255;

/** Fills up with `filler` to exactly 255 bytes, the last bytes with `x`. */
function full(id: string, filler: string): string {
  const room = limitBytes - Buffer.byteLength(id);
  const size = Buffer.byteLength(filler);
  return id + filler.repeat(Math.floor(room / size)) + 'x'.repeat(room % size);
}

/** Made after `unique`, which nobody else has: two passes of this file meet on one server. */
const ids: [string, (unique: string) => string][] = [
  ['reserved characters', (unique) => `${unique}+/=%#&?~`],
  ['the same ones escaped', (unique) => `${unique}%2B%2F%3D%25%23%26%3F%7E`],
  ['spaces', (unique) => ` ${unique}  with spaces `],
  ['path segments', (unique) => `../${unique}/./../%2e%2e/`],
  ['quotes and backslashes', (unique) => `${unique}'"\\'\\"\``],
  ['markup', (unique) => `${unique}<script>&amp;</script>`],
  ['an emoji of several parts', (unique) => `${unique}-👩🏽‍🚒-🏴󠁧󠁢󠁷󠁬󠁳󠁿`],
  ['right-to-left text', (unique) => `\u202e${unique}-שלום-مرحبا\u202c`],
  ['composed and decomposed', (unique) => `${unique}-é-e\u0301`],
  ['what looks like a key', (unique) => `${unique}.refund.046acc729732`],
  ['dots and tildes', (unique) => `~~${unique}..~..`],
  ['255 bytes, plain', (unique) => full(unique, 'x')],
  ['255 bytes, two a character', (unique) => full(unique, 'é')],
  ['255 bytes, four a character', (unique) => full(unique, '🦊')],
  ['255 bytes that are all escaped', (unique) => full(unique, '/')],
];

for (const [title, idOf] of ids) {
  test(`P6: a run id with ${title} is intact from start to trail (case 48)`, async () => {
    const id = idOf(temporal.id('id'));
    const body = { spec: refundSpec, input: { order: id }, id };
    const started = await api.call('POST', '/runs', { body });
    assert.equal(started.status, 201, started.text);
    assert.equal(started.body['id'], id);
    const location = started.headers.get('location') ?? '';
    assert.equal(decodeURIComponent(location), `/runs/${id}`);
    const again = await api.call('POST', '/runs', { body });
    assert.deepEqual([again.status, again.body['id']], [200, id]);

    const gate = await openGate(countersign, id);
    assert.match(gate.key, /^[A-Za-z0-9._~-]{1,640}$/);
    assert.equal(parseApprovalKey(gate.key)?.workflowId, id);
    const run = await api.call('GET', location);
    assert.deepEqual([run.status, run.body['id'], run.body['status']], [200, id, 'awaiting_approval']);
    const rows = await api.call('GET', `/approvals?run=${encodeURIComponent(id)}`);
    const [row] = rows.body['approvals'] as { key: string; runId: string; links: { run: string } }[];
    assert.deepEqual([row?.key, row?.runId, row?.links.run], [gate.key, id, location]);
    const view = await api.call('GET', `/approvals/${gate.key}`);
    assert.deepEqual(
      [view.body['runId'], view.body['arguments']],
      [id, { order: id, amount: '10.00', currency: 'EUR' }],
    );

    const reason = `about ${id}`;
    const answer = await api.approve(gate, { body: { reason } });
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual([answer.body['runId'], answer.body['key']], [id, gate.key]);
    assert.deepEqual(await client.workflow.getHandle(id).result(), { status: 'completed' });
    await assertInHistory(client, id, [answer]);
    const looked = await api.call(
      'GET',
      `/approvals/${gate.key}/decisions/${String(answer.body['decisionId'])}`,
    );
    assert.deepEqual([looked.status, looked.body], [200, answer.body]);
    const trail = await api.call('GET', `${location}/trail`);
    assert.equal(trail.body['runId'], id);
    const [granted] = await factsOf(countersign, id, 'approval_granted');
    assert.deepEqual([granted?.key, granted?.decision.reason], [gate.key, reason]);
    assert.deepEqual(
      (await linesOf(ledger, id)).map(({ key }) => key),
      [`${gate.root}:refund`],
    );
  });
}

test('P8: a run id of 256 bytes, or that no URL path can hold, is refused before anything starts', async () => {
  const refused = [
    `${full(temporal.id('id'), 'x')}x`,
    `${full(temporal.id('id'), 'é')}é`,
    '',
    '.',
    '..',
    'a\nb',
    'a\u0000b',
  ];
  for (const id of refused) {
    const answer = await api.call('POST', '/runs', { body: { spec: refundSpec, input: { order: 'x' }, id } });
    assert.equal(
      `${answer.status} ${String(answer.body['code'])}`,
      '400 invalid_request',
      JSON.stringify(id),
    );
  }
  for (const id of refused.slice(0, 2)) assert.equal(await countersign.describeRun(id), undefined);
  const half = await api.call('POST', '/runs', { body: '{"spec":"refund","id":"a\\ud83e"}' });
  assert.equal(half.status, 400);
});

const reasons: [string, string][] = [
  [
    'lines, a dash, a hard space and a direction override',
    'Nein – Betrag falsch: 1\u00a0000 € ≠ 100 €\n\u202eabc',
  ],
  ['reserved characters', '+/=%#&?~ %2F %% \\u0041 \\ " \' ` ${{ input.order }} <b>&amp;'],
  ['emoji and right-to-left text', '👩🏽‍🚒 שלום مرحبا e\u0301 é'],
  ['control characters', '\u0001\t\r\n\u001b[31mred\u001b[0m\u0000'],
  ['nothing but spaces', '  '],
  ['4 KiB', '🦊'.repeat(1_024)],
];

for (const [title, reason] of reasons) {
  test(`P6: a reason with ${title} is recorded to the character, by HTTP and by signal (case 48)`, async () => {
    for (const door of ['http', 'signal']) {
      const runId = temporal.id('reason');
      const body = { spec: refundSpec, input: { order: runId }, id: runId };
      assert.equal((await api.call('POST', '/runs', { body })).status, 201);
      const gate = await openGate(countersign, runId);
      if (door === 'http') assert.equal((await api.reject(gate, { body: { reason } })).status, 200);
      else await countersign.sendDecision(runId, decisionOn(gate, 'reject', { reason }));
      assert.equal(
        ((await client.workflow.getHandle(runId).result()) as { status: string }).status,
        'rejected',
      );
      const [rejected] = await factsOf(countersign, runId, 'approval_rejected');
      assert.equal(rejected?.decision.reason, reason);
      const view = await api.call('GET', `/approvals/${gate.key}`);
      assert.equal((view.body['outcome'] as { reason: string }).reason, reason);
      const lines = await api.call('GET', `/runs/${runId}/trail`, {
        headers: { accept: 'application/jsonl' },
      });
      const facts = lines.text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as { decision?: { reason?: string } });
      assert.deepEqual(
        facts.flatMap(({ decision }) => decision?.reason ?? []),
        [reason],
      );
      assert.deepEqual(await linesOf(ledger, runId), []);
    }
  });
}

test('P7: by the command line too, every run id is intact: shown, listed, decided by its key, told in its trail (case 48)', async () => {
  const env = { COUNTERSIGN_URL: api.url, COUNTERSIGN_TOKEN: adminToken };
  const cli = async (...args: string[]): Promise<unknown> => {
    const { exitCode, stdout, stderr } = await runCommand([...args, '--json'], { env });
    assert.equal(exitCode, 0, `${args.join(' ')}: ${stderr}`);
    return JSON.parse(stdout);
  };
  for (const [title, idOf] of ids) {
    const id = idOf(temporal.id('cli'));
    const started = await api.call('POST', '/runs', { body: { spec: refundSpec, input: { order: id }, id } });
    assert.equal(started.status, 201, started.text);
    const gate = await openGate(countersign, id);
    const { approvals } = (await cli('approvals', 'list', '--run', id)) as { approvals: { key: string }[] };
    assert.deepEqual(
      approvals.map(({ key }) => key),
      [gate.key],
      title,
    );
    const answer = (await cli('approve', gate.key, '--yes', '--hash', gate.hash)) as { runId: string };
    assert.equal(answer.runId, id, title);
    await client.workflow.getHandle(id).result();
    const run = (await cli('runs', 'show', id)) as { id: string; status: string };
    assert.deepEqual([run.id, run.status], [id, 'completed'], title);
    const { trail } = (await cli('trail', id)) as { trail: { type: string }[] };
    assert.ok(
      trail.some(({ type }) => type === 'approval_granted'),
      title,
    );
    assert.equal((await linesOf(ledger, id)).length, 1, title);
  }
});
