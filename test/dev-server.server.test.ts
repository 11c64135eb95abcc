// The embedded Temporal server: what it holds survives SIGKILL, it has countersign's attributes, limits and
// retention, and two never share a file.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Client, Connection, isGrpcServiceError } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import { DevServerError, startDevServer, type DevServer } from '../src/embedded/dev-server.ts';
import { findTemporalCli, type TemporalCli } from '../src/embedded/find-temporal-cli.ts';
import { connectTemporal, connectWorker } from '../src/temporal-connection.ts';
import { ensureNamespaceReady, ensureSearchAttributes, TemporalSetupError } from '../src/temporal-setup.ts';
import { eventually } from './support/eventually.ts';
import { endOnSignals, spawnProcess } from './support/processes.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

const folder = temporaryFolder();
let cli: TemporalCli;
let server: DevServer;
let connection: Connection;
let client: Client;

before(async () => {
  endOnSignals();
  cli = await findTemporalCli();
  server = await startDevServer({ cli, folder });
  ({ connection } = connectTemporal({ address: server.address, env: {} }));
  client = new Client({ connection, namespace: server.namespace });
});

after(async () => {
  await connection.close();
  await server.stop();
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function setupError(pattern: RegExp): (error: unknown) => true {
  return (error) => {
    assert.ok(error instanceof TemporalSetupError, String(error));
    assert.match(error.message, pattern);
    return true;
  };
}

describe('the server', () => {
  for (const end of ['kill', 'stop'] as const) {
    test(`keeps a waiting workflow over ${end} and a restart on its file, at the same ports`, async () => {
      const handle = await client.workflow.start('waits', {
        workflowId: `survives-${end}`,
        taskQueue: 'nobody',
      });
      const ended = server;
      await ended[end]();
      assert.equal(isAlive(ended.pid), false);
      await assert.rejects(fetch(ended.uiUrl));
      server = await startDevServer({ cli, folder, port: ended.port, uiPort: ended.uiPort });
      assert.deepEqual([server.address, server.uiUrl], [ended.address, ended.uiUrl]);
      assert.notEqual(server.pid, ended.pid);
      const { status, runId } = await handle.describe();
      assert.deepEqual([status.name, runId], ['RUNNING', handle.firstExecutionRunId]);
      await handle.terminate('the test is over');
    });
  }

  test('keeps closed runs for 30 days, also after a restart', async () => {
    const { config } = await connection.workflowService.describeNamespace({ namespace: server.namespace });
    assert.equal(Number(config?.workflowExecutionRetentionTtl?.seconds), 30 * 24 * 3600);
  });

  test('has a Web UI', async () => {
    const answer = await fetch(server.uiUrl);
    assert.equal(answer.status, 200);
    assert.match(await answer.text(), /<html/);
  });

  test('takes workflow ids of 255 bytes and no longer ones, as production does', async () => {
    const start = (length: number) =>
      client.workflow.start('waits', { workflowId: 'w'.repeat(length), taskQueue: 'nobody' });
    await (await start(255)).terminate();
    await assert.rejects(start(256), (error: Error) => {
      assert.ok(isGrpcServiceError(error.cause));
      assert.match(error.cause.details, /256\/255/);
      return true;
    });
  });

  test('takes many lists, and many queries of one run, at once', async () => {
    // no retries: they would hide a refusal
    const impatient = Connection.lazy({ address: server.address, interceptors: [] });
    const codeOf = (call: Promise<unknown>): Promise<unknown> =>
      call.then(
        () => 'ok',
        (error: Error) => (isGrpcServiceError(error) ? error : (error.cause as { code?: number })).code,
      );
    try {
      const namespace = server.namespace;
      const lists = Array.from({ length: 60 }, () =>
        impatient.workflowService.listWorkflowExecutions({ namespace }),
      );
      assert.deepEqual(new Set(await Promise.all(lists.map(codeOf))), new Set(['ok']));
      const handle = await client.workflow.start('waits', { workflowId: 'queried', taskQueue: 'nobody' });
      const asking = new Client({ connection: impatient, namespace }).workflow.getHandle('queried');
      const queries = Array.from({ length: 5 }, () =>
        impatient.withDeadline(Date.now() + 2000, () => asking.query('state')),
      );
      // nobody answers: the deadline passes at the client (4) or, a moment sooner, at the server (1); a refusal is 8
      const [cancelled, deadlineExceeded] = [1, 4];
      const codes = await Promise.all(queries.map(codeOf));
      for (const code of codes) assert.ok(code === cancelled || code === deadlineExceeded, String(code));
      await handle.terminate();
    } finally {
      await impatient.close();
    }
  });

  test('takes a worker', async () => {
    const worker = await connectWorker({ address: server.address, env: {} });
    await ensureNamespaceReady(worker.connection, worker.namespace);
    await ensureSearchAttributes(worker.connection, worker.namespace);
    await worker.connection.close();
  });
});

describe('a server is not started', () => {
  test('on a file that another one uses; the error says which one', async () => {
    await assert.rejects(startDevServer({ cli, folder }), (error: Error) => {
      assert.ok(error instanceof DevServerError);
      assert.ok(error.message.includes(`(process ${server.pid}, at ${server.address})`), error.message);
      assert.match(error.message, /temporal\.db is in use by another .*COUNTERSIGN_DATA_DIR/);
      return true;
    });
    await ensureNamespaceReady(connection, server.namespace);
  });

  test('at a port that is in use; the error names it', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    for (const ports of [{ port }, { uiPort: port }]) {
      await assert.rejects(
        startDevServer({ cli, folder: temporaryFolder(), ...ports }),
        new RegExp(`port ${port} is in use: stop what listens there`),
      );
    }
    taken.close();
  });

  test('by a program that is no Temporal CLI; the error has its last words', async () => {
    const lines: string[] = [];
    await assert.rejects(
      startDevServer({
        cli: { path: process.execPath },
        folder: temporaryFolder(),
        log: (line) => lines.push(line),
      }),
      (error: Error) =>
        error instanceof DevServerError && /did not start: .*(bad option|Cannot find)/s.test(error.message),
    );
    assert.ok(lines.length > 0);
    await assert.rejects(
      startDevServer({ cli: { path: '/nonexistent/temporal' }, folder: temporaryFolder() }),
      /did not start: .*ENOENT/,
    );
  });
});

test('a server ends with the process that started it, and its file can be used again', async () => {
  const own = temporaryFolder();
  const parent = await spawnProcess('test/support/dev-server-main.ts', { args: [own] });
  const pid = parent.ready['server'] as number;
  assert.equal(isAlive(pid), true);
  await parent.stop();
  await eventually(() => !isAlive(pid));
  const again = await startDevServer({ cli, folder: own });
  await again.stop();
  assert.match(readFileSync(join(own, 'temporal.log'), 'utf8'), /Temporal CLI/);
});

describe('the search attributes', () => {
  async function newNamespace(name: string): Promise<void> {
    await connection.workflowService.registerNamespace({
      namespace: name,
      workflowExecutionRetentionPeriod: msToTs('1d'),
    });
    await ensureNamespaceReady(connection, name);
  }
  const attributes = async (namespace: string): Promise<Record<string, number>> => {
    const answer = await connection.operatorService.listSearchAttributes({ namespace });
    return Object.fromEntries(
      Object.entries(answer.customAttributes).filter(([name]) => name.startsWith('Countersign')),
    );
  };
  const all = {
    CountersignStatus: 2,
    CountersignSpec: 2,
    CountersignTools: 7,
    CountersignRoles: 7,
    CountersignExpiresAt: 6,
  };

  test('are there from the start on the embedded server', async () => {
    assert.deepEqual(await attributes(server.namespace), all);
  });

  test('are registered where they are missing, by ten workers that start at once', async () => {
    await newNamespace('bare');
    await connection.operatorService.addSearchAttributes({
      namespace: 'bare',
      searchAttributes: { CountersignStatus: 2 },
    });
    await Promise.all(Array.from({ length: 10 }, () => ensureSearchAttributes(connection, 'bare')));
    assert.deepEqual(await attributes('bare'), all);
  });

  test('of another kind are an error with the commands that cure it', async () => {
    await newNamespace('odd');
    await connection.operatorService.addSearchAttributes({
      namespace: 'odd',
      searchAttributes: { CountersignRoles: 2 },
    });
    await assert.rejects(
      ensureSearchAttributes(connection, 'odd'),
      setupError(
        /CountersignRoles .* must be a KeywordList[^]*search-attribute remove --namespace odd --name CountersignRoles --yes\n +temporal operator search-attribute create --namespace odd --name CountersignRoles --type KeywordList/,
      ),
    );
  });

  // As on Temporal Cloud, which has no operator service.
  test('are looked for by counting runs where they can be neither listed nor added', async () => {
    const refuse = (): Promise<never> => Promise.reject(new Error('unimplemented'));
    const cloud = {
      workflowService: connection.workflowService,
      withDeadline: connection.withDeadline.bind(connection),
      operatorService: { listSearchAttributes: refuse, addSearchAttributes: refuse },
    } as unknown as Connection;
    await ensureSearchAttributes(cloud, server.namespace);
    await newNamespace('cloud');
    await assert.rejects(
      ensureSearchAttributes(cloud, 'cloud'),
      setupError(
        /lacks CountersignStatus, .*CountersignExpiresAt[^]*create --namespace cloud --name CountersignExpiresAt --type Datetime$/,
      ),
    );
  });

  test('that may be listed but not added are an error with the commands', async () => {
    await newNamespace('denied');
    const denied = {
      workflowService: connection.workflowService,
      withDeadline: connection.withDeadline.bind(connection),
      operatorService: {
        listSearchAttributes: (request: object) => connection.operatorService.listSearchAttributes(request),
        addSearchAttributes: () => Promise.reject(new Error('Request unauthorized.')),
      },
    } as unknown as Connection;
    await assert.rejects(
      ensureSearchAttributes(denied, 'denied'),
      setupError(
        /cannot be registered from here \(Error: Request unauthorized\.\)\. Run[^]*create --namespace denied --name CountersignStatus --type Keyword\n/,
      ),
    );
  });
});

describe('a namespace', () => {
  test('that is not there is an error with the command that makes it', async () => {
    await assert.rejects(
      ensureNamespaceReady(connection, 'nowhere', { timeoutMs: 300 }),
      setupError(/no namespace "nowhere": set TEMPORAL_NAMESPACE[^]*namespace create --namespace nowhere/),
    );
  });

  test('of a server that does not answer is an error that names TEMPORAL_ADDRESS', async () => {
    const nowhere = connectTemporal({
      env: { TEMPORAL_ADDRESS: '127.0.0.1:1', TEMPORAL_NAMESPACE: 'payments' },
    });
    assert.equal(nowhere.namespace, 'payments');
    await assert.rejects(
      ensureNamespaceReady(nowhere.connection, nowhere.namespace, { timeoutMs: 300 }),
      setupError(/does not answer for namespace "payments" .*TEMPORAL_ADDRESS/),
    );
    await nowhere.connection.close();
  });

  test('of an embedded server is not mixed up with the one in the environment', async () => {
    const env = {
      TEMPORAL_ADDRESS: '127.0.0.1:1',
      TEMPORAL_NAMESPACE: 'payments',
      TEMPORAL_API_KEY: 'SECRET',
    };
    const embedded = connectTemporal({ address: server.address, env });
    assert.equal(embedded.namespace, 'default');
    await ensureNamespaceReady(embedded.connection, embedded.namespace);
    await embedded.connection.close();
  });
});
