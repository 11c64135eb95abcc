// `countersign doctor`: each thing that can be wrong is found, says what to do, and changes nothing.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { checkNode, clockFinding } from '../src/cli/doctor-local.ts';
import { checkTemporal, type TemporalCheck } from '../src/cli/doctor-temporal.ts';
import { savedViews } from '../src/cli/doctor.ts';
import { searchAttributeKinds } from '../src/core/names.ts';
import { editSecretsFile } from '../src/secrets-edit.ts';
import { createApiHarness, serveApp } from './support/api-harness.ts';
import { runCommand } from './support/fake-terminal.ts';
import { makeSecrets } from './support/secrets.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

const folder = temporaryFolder();

interface FakeTemporal {
  /** milliseconds that its clock is ahead */
  ahead?: number;
  registered?: string[];
  pollers?: { identity: string; ageMs: number }[];
}

/** As much of Temporal as doctor asks. */
function fakeTemporal({ ahead = 0, pollers = [], ...more }: FakeTemporal = {}) {
  const registered = new Set(more.registered ?? Object.keys(searchAttributeKinds));
  const calls: string[] = [];
  const timestamp = (ms: number) => ({ seconds: Math.floor(ms / 1000), nanos: (ms % 1000) * 1e6 });
  const ownPolls = new Map<string, number>();
  const workflowService = {
    describeNamespace: async () => ({}),
    async countWorkflowExecutions({ query }: { query: string }) {
      const [name = ''] = query.split(' ');
      if (!registered.has(name)) throw grpcError(3, `unknown attribute ${name}`);
      return {};
    },
    async pollWorkflowTaskQueue({ taskQueue }: { taskQueue: { name: string } }) {
      ownPolls.set(taskQueue.name, Date.now() + ahead);
      return new Promise((resolve) => setTimeout(resolve, 200));
    },
    async describeTaskQueue({ taskQueue }: { taskQueue: { name: string } }) {
      const own = ownPolls.get(taskQueue.name);
      if (own !== undefined) return { pollers: [{ identity: 'doctor', lastAccessTime: timestamp(own) }] };
      if (taskQueue.name !== 'countersign') return { pollers: [] };
      return {
        pollers: pollers.map(({ identity, ageMs }) => ({
          identity,
          lastAccessTime: timestamp(Date.now() - ageMs),
        })),
      };
    },
  };
  const operatorService = {
    async listSearchAttributes() {
      const values = { KEYWORD: 2, DATETIME: 6, KEYWORD_LIST: 7 } as const;
      const kinds = Object.entries(searchAttributeKinds).filter(([name]) => registered.has(name));
      return { customAttributes: Object.fromEntries(kinds.map(([name, kind]) => [name, values[kind]])) };
    },
    async addSearchAttributes({ searchAttributes }: { searchAttributes: Record<string, number> }) {
      calls.push('addSearchAttributes');
      for (const name of Object.keys(searchAttributes)) registered.add(name);
      return {};
    },
  };
  const connection = {
    workflowService,
    operatorService,
    withDeadline: (_deadline: number, call: () => Promise<unknown>) => call(),
    withAbortSignal: (_signal: AbortSignal, call: () => Promise<unknown>) => call(),
  } as unknown as TemporalCheck['connection'];
  return { connection, calls };
}

function grpcError(code: number, details: string): Error {
  return Object.assign(new Error(details), { code, details, metadata: {} });
}

async function check(fake: { connection: TemporalCheck['connection'] }, more: Partial<TemporalCheck> = {}) {
  const { connection } = fake;
  const base = { namespace: 'default', address: 'host:7233', fix: false, now: Date.now };
  const findings = await checkTemporal({ connection, ...base, ...more });
  return Object.fromEntries(findings.map(({ check: name, ...rest }) => [name, rest]));
}

test('a Temporal that is as it should be has no finding but ok', async () => {
  const found = await check(fakeTemporal({ pollers: [{ identity: 'worker-1', ageMs: 30_000 }] }));
  assert.deepEqual(
    Object.entries(found).map(([name, { result }]) => `${name}: ${result}`),
    [
      ...['temporal: ok', 'search attributes: ok', 'workflow pollers: ok', 'activity pollers: ok'],
      'clock (temporal): ok',
    ],
  );
  assert.match(found['workflow pollers']?.text ?? '', /worker-1/);
});

test('missing search attributes fail with the commands; only --fix registers them', async () => {
  const fake = fakeTemporal({ registered: ['CountersignStatus'] });
  const before = await check(fake);
  assert.equal(before['search attributes']?.result, 'fail');
  assert.match(before['search attributes']?.text ?? '', /search-attribute create .*CountersignSpec/);
  assert.match(before['search attributes']?.text ?? '', /doctor --fix/);
  assert.deepEqual(fake.calls, []);
  const after = await check(fake, { fix: true });
  assert.equal(after['search attributes']?.result, 'ok');
  assert.deepEqual(fake.calls, ['addSearchAttributes']);
});

test('nobody polling, and somebody who stopped, are a warning that names the queue', async () => {
  for (const pollers of [[], [{ identity: 'gone', ageMs: 200_000 }]]) {
    const found = await check(fakeTemporal({ pollers }));
    assert.equal(found['workflow pollers']?.result, 'warn');
    assert.match(found['activity pollers']?.text ?? '', /nobody polls task queue "countersign"/);
  }
});

test('a clock that differs by more than two seconds fails, ahead or behind', async () => {
  const at = Date.parse('2026-11-02T10:00:00.000Z');
  const date = (ms: number) => new Date(at + ms).toUTCString();
  assert.equal(clockFinding('c', date(0), at + 100, at + 200)?.result, 'ok');
  assert.equal(clockFinding('c', date(2000), at, at + 100)?.result, 'ok');
  assert.match(clockFinding('c', date(60_000), at, at)?.text ?? '', /^60 s ahead/);
  assert.match(clockFinding('c', date(-61_000), at, at)?.text ?? '', /^60 s behind/);
  assert.equal(clockFinding('c', null, at, at), undefined);
  const found = await check(fakeTemporal({ ahead: 60_000 }));
  assert.equal(found['clock (temporal)']?.result, 'fail');
});

test('a Node that is too old fails', () => {
  const results = ['18.20.0', '20.18.9', '20.19.0', '22.1.0'].map((version) => checkNode(version).result);
  assert.deepEqual(results, ['fail', 'fail', 'ok', 'ok']);
});

test('the views are links that the Temporal Web UI opens', () => {
  for (const { url } of savedViews('https://ui.example/', 'pay/ments')) {
    assert.match(url, /^https:\/\/ui\.example\/namespaces\/pay%2Fments\/workflows\?query=/);
    assert.match(new URL(url).searchParams.get('query') ?? '', /^\w+(=| IN )/);
  }
});

/** A config that is as it should be, the API, and no Temporal. */
async function doctor(env: NodeJS.ProcessEnv, ...args: string[]) {
  const config = join(folder, 'countersign.config.mjs');
  writeFileSync(config, 'export const config = { tools: [] };\n');
  const outcome = await runCommand(['doctor', '--config', config, '--json', ...args], {
    env: { TEMPORAL_ADDRESS: '127.0.0.1:1', ...env },
  });
  const { findings } = JSON.parse(outcome.stdout) as { findings: { check: string; result: string }[] };
  return { ...outcome, found: Object.fromEntries(findings.map((one) => [one.check, one.result])) };
}

test('without Temporal doctor still looks at the rest, and is 69', async () => {
  const { app } = createApiHarness();
  const server = await serveApp(app);
  const { path } = await makeSecrets();
  try {
    const env = { COUNTERSIGN_URL: server.url, COUNTERSIGN_SECRETS_FILE: path };
    const good = await doctor({ ...env, COUNTERSIGN_TOKEN: 'token-ann' });
    assert.equal(good.exitCode, 69);
    // the clock of the fake terminal is its own
    const { 'clock (api)': _clock, ...found } = good.found;
    const ok = { node: 'ok', config: 'ok', secrets: 'ok', api: 'ok', token: 'ok' };
    assert.deepEqual(found, { ...ok, temporal: 'fail' });
    const bad = await doctor({ ...env, COUNTERSIGN_TOKEN: 'wrong', COUNTERSIGN_SECRETS_FILE: folder });
    assert.deepEqual([bad.found['token'], bad.found['secrets']], ['fail', 'fail']);
    assert.ok(!bad.stdout.includes('wrong'), 'no token is printed');
    await editSecretsFile(
      path,
      ({ signingKeys }) => void (signingKeys[0]!.validUntil = '2026-01-01T00:00:00Z'),
    );
    assert.equal((await doctor(env)).found['secrets'], 'fail', 'no key may sign');
  } finally {
    server.close();
  }
});

test('a token that is for other things than reading is taken', async () => {
  const { app } = createApiHarness({
    authenticate: () => ({ id: 'shop', name: 'Shop', roles: [], kind: 'service', scopes: ['start'] }),
  });
  const server = await serveApp(app);
  try {
    const { found } = await doctor({ COUNTERSIGN_URL: server.url, COUNTERSIGN_TOKEN: 'token-shop' });
    assert.equal(found['token'], 'ok');
  } finally {
    server.close();
  }
});

test('config print shows what is in force, and no secret', async () => {
  const config = join(folder, 'printed.config.mjs'); // a module is loaded once
  writeFileSync(config, 'export const config = { tools: [], unsigned: "refuse" };\n');
  const { exitCode, stdout } = await runCommand(['config', 'print', '--redacted', '--config', config]);
  assert.equal(exitCode, 0);
  const printed = JSON.parse(stdout);
  assert.deepEqual([printed.file, printed.unsigned, printed.tools], [config, 'refuse', []]);
});
