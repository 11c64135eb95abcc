// P7: every snippet of docs/doors.md, taken from the page and run against a gate that waits. Whatever the door, the
// decision is the one signal, judged by the one check, and recorded as unverified, since nobody signed it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { delimiter, dirname } from 'node:path';
import { describe, test } from 'node:test';
import { outcomeText } from '../src/cli/case-text.ts';
import { findTemporalCli } from '../src/embedded/find-temporal-cli.ts';
import { startApi } from './support/api-server.ts';
import { eventually } from './support/eventually.ts';
import { clientOf, factsOf, type SeenGate } from './support/gates.ts';
import { startGate } from './support/kinds.ts';
import { startLedger } from './support/ledger.ts';
import { skipWithoutCache as skip } from './support/project.ts';
import { makeSecrets } from './support/secrets.ts';
import {
  goProblem,
  pythonProblem,
  readSnippets,
  runGo,
  runPython,
  runShell,
  writeModule,
} from './support/snippets.ts';
import { bundleFromSource } from './support/source-bundle.ts';
import { ownServer } from './support/temporal.ts';
import { startWorker } from './support/worker.ts';

const page = readFileSync(new URL('../docs/doors.md', import.meta.url), 'utf8');
const snippets = readSnippets(page);
const ran = ['read-http.sh', 'read-temporal.sh', 'approve.sh', 'fraud-check.ts', 'decide.py', 'main.go'];

function snippet(name: string): string {
  const code = snippets.get(name);
  assert.ok(code !== undefined, `docs/doors.md has no snippet ${name}`);
  return code;
}

async function openDoors() {
  const temporal = await ownServer({ keepHistories: false }); // one type of it is in no bundle of the tests
  const { address, namespace, taskQueue } = temporal;
  const ledger = await startLedger();
  const { path: secretsFile, adminToken } = await makeSecrets();
  const api = await startApi(temporal, { secretsFile });
  await startWorker({ address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url });
  const cli = await findTemporalCli();
  const countersign = clientOf(temporal);
  return {
    temporal,
    secretsFile,
    ask: (name: string): Promise<SeenGate> =>
      startGate(temporal, countersign, 'oneGated', temporal.id(name), { stayOpen: true }),
    /** What a reader of the page has in the shell. */
    shell: (gate: SeenGate): Record<string, string> => ({
      API: api.url,
      COUNTERSIGN_TOKEN: adminToken,
      TEMPORAL_ADDRESS: address,
      PATH: `${dirname(cli.path)}${delimiter}${process.env['PATH'] ?? ''}`,
      RUN_ID: gate.runId,
      POSITION: gate.position,
      KEY: gate.key,
      ROOT: gate.root,
      HASH: gate.hash,
      SEEN_HASH: gate.hash,
    }),
    /** The one decision, as trail and API tell it, and whether it was carried out. */
    async assertDecided(gate: SeenGate, kind: 'approve' | 'reject', by: string): Promise<void> {
      const type = kind === 'approve' ? 'approval_granted' : 'approval_rejected';
      const [fact] = await eventually(async () => {
        const facts = await factsOf(countersign, gate.runId, type);
        return facts.length > 0 && facts;
      });
      assert.deepEqual(
        [fact?.decision?.decision, fact?.decision?.via, fact?.decision?.payloadHash, fact?.by],
        [kind, 'signal', gate.hash, { id: by, verified: false }],
      );
      const { body } = await api.call('GET', `/approvals/${gate.key}`);
      assert.match(
        outcomeText(body['outcome'] as { at: string }),
        new RegExp(`^by ${by} \\(unverified\\) at .* via signal`),
      );
      const results = kind === 'approve' ? 1 : 0;
      await eventually(
        async () => (await factsOf(countersign, gate.runId, 'tool_result')).length === results,
      );
      const lines = (await ledger.lines()).filter(({ key }) => key?.startsWith(gate.root));
      assert.equal(lines.length, results);
      assert.deepEqual(await factsOf(countersign, gate.runId, 'decision_refused'), []);
    },
  };
}

// Before the first test: what is registered before a wait at the top is all that the runner waits for.
const doors = skip === false ? await openDoors() : undefined;

test('every snippet of docs/doors.md is run here', () => {
  assert.deepEqual([...snippets.keys()].sort(), ran.toSorted());
  const blocks = [...page.matchAll(/^```\w+$/gm)].length;
  assert.equal(blocks, ran.length + 1, 'and one is the JSON that the Web UI shows');
});

describe('docs/doors.md', { concurrency: 2, skip }, () => {
  const { temporal, secretsFile, ask, shell, assertDecided } = doors ?? ({} as NonNullable<typeof doors>);

  test('what to read first, by HTTP and from Temporal alone, has key, root and hash', async () => {
    const gate = await ask('read');
    const asked = JSON.parse(await runShell(snippet('read-http.sh'), shell(gate))) as Record<string, unknown>;
    assert.deepEqual(
      [asked['key'], asked['root'], asked['payloadHash'], asked['arguments']],
      [gate.key, gate.root, gate.hash, { order: gate.runId, amount: '10.00', currency: 'EUR' }],
    );
    const read = await runShell(snippet('read-temporal.sh'), shell(gate));
    for (const part of [gate.key, gate.root, gate.hash, `approval/${gate.position}`]) {
      assert.ok(read.includes(part), `${part} is in what the Temporal CLI says:\n${read}`);
    }
  });

  test('P7: a decision by the Temporal CLI', async () => {
    const gate = await ask('cli');
    await runShell(snippet('approve.sh'), shell(gate));
    await assertDecided(gate, 'approve', 'ann');
  });

  test('P7: a decision by the dialog of the Temporal Web UI, with the JSON of its page', async () => {
    const gate = await ask('web-ui');
    const { definition, currentDetails = '' } = await temporal.client.workflow
      .getHandle(gate.runId)
      .query<{ definition: { signalDefinitions: { name: string }[] }; currentDetails?: string }, []>(
        '__temporal_workflow_metadata',
      );
    assert.ok(
      definition.signalDefinitions.some(({ name }) => name === 'decide'),
      'the dialog offers it',
    );
    const shown = [...currentDetails.matchAll(/```json\n([^]*?)\n```/g)].at(-1)?.[1] ?? '';
    const decision = { ...(JSON.parse(shown) as object), by: { id: 'ann' } };
    await sendAsWebUi(temporal, gate.runId, JSON.stringify(decision));
    await assertDecided(gate, 'approve', 'ann');
  });

  test('P7: a decision by another Temporal workflow, an approval and a rejection', async () => {
    const checks = `${temporal.taskQueue}-checks`;
    const bundle = await bundleFromSource(await writeModule('fraud-check.ts', snippet('fraud-check.ts')));
    const { address, namespace } = temporal;
    await startWorker({ address, namespace, taskQueue: checks, secretsFile }, { bundle });
    for (const [amount, kind] of [
      ['10.00', 'approve'],
      ['1000.00', 'reject'],
    ] as const) {
      const gate = await ask('workflow');
      const { runId, key, root, hash: payloadHash } = gate;
      await temporal.client.workflow.execute('fraudCheck', {
        workflowId: temporal.id('check'),
        taskQueue: checks,
        args: [{ runId, key, root, payloadHash, amount }],
      });
      await assertDecided(gate, kind, 'fraud-check');
    }
  });

  test('P7: a decision from Python, and none on another payload than the one seen', async (t) => {
    const problem = await pythonProblem();
    if (problem !== undefined) return t.skip(problem);
    const gate = await ask('python');
    const code = snippet('decide.py');
    await assert.rejects(
      runPython(code, { ...shell(gate), SEEN_HASH: `sha256:${'0'.repeat(64)}` }),
      /another payload waits/,
    );
    await runPython(code, shell(gate));
    await assertDecided(gate, 'approve', 'ann');
  });

  test('P7: a decision from Go', async (t) => {
    const problem = await goProblem();
    if (problem !== undefined) return t.skip(problem);
    const gate = await ask('go');
    await runGo(snippet('main.go'), shell(gate));
    await assertDecided(gate, 'reject', 'ben');
  });
});

/** What the Web UI's server is sent by the dialog: its own HTTP door, with its token against forged requests. */
async function sendAsWebUi(
  { uiUrl, namespace }: { uiUrl: string; namespace: string },
  runId: string,
  json: string,
): Promise<void> {
  const first = await fetch(`${uiUrl}/api/v1/settings`);
  const cookies = first.headers.getSetCookie().map((cookie) => cookie.split(';')[0] ?? '');
  const token = cookies.find((cookie) => cookie.startsWith('_csrf='))?.slice('_csrf='.length) ?? '';
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  const payload = { metadata: { encoding: base64('json/plain') }, data: base64(json) };
  const answer = await fetch(`${uiUrl}/api/v1/namespaces/${namespace}/workflows/${runId}/signal/decide`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', cookie: cookies.join('; '), 'x-csrf-token': token },
    body: JSON.stringify({ signalName: 'decide', input: { payloads: [payload] } }),
  });
  assert.equal(answer.status, 200, await answer.text());
}
