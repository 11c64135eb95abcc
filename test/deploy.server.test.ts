// The parts of docker-compose.yml that can run without an engine, on a real server: the namespace job, and
// the worker's health check.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { hostname } from 'node:os';
import { dirname } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { msToTs } from '@temporalio/common/lib/time.js';
import { findTemporalCli } from '../src/embedded/find-temporal-cli.ts';
import { eventually } from './support/eventually.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { startWorker } from './support/worker.ts';

const temporal = await openTemporal();
const { address, connection, namespace, taskQueue } = temporal;
const root = fileURLToPath(new URL('../', import.meta.url));
const month = 30 * 24 * 3600;
/** temporal.api.enums.v1.IndexedValueType */
const indexedValueTypes = { KEYWORD: 2, DATETIME: 6, KEYWORD_LIST: 7 };

interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs a program with nothing of this process's environment but what it is given, and PATH. */
function run(file: string, args: string[], env: Record<string, string>): Promise<Ended> {
  return new Promise((resolve) => {
    const settings = { cwd: root, env: { PATH: process.env['PATH'], TZ: 'UTC', ...env } };
    const child = execFile(file, args, settings, (_error, stdout, stderr) => {
      resolve({ code: child.exitCode ?? -1, stdout, stderr });
    });
  });
}

async function runNamespaceJob(name: string): Promise<Ended> {
  const cli = await findTemporalCli();
  return run('sh', ['deploy/temporal/namespace.sh'], {
    PATH: `${dirname(cli.path)}:${process.env['PATH']}`,
    TEMPORAL_ADDRESS: address,
    TEMPORAL_NAMESPACE: name,
  });
}

test('the namespace job makes what a worker needs, and changes nothing when it runs again', async () => {
  const name = temporal.id('namespace');
  const first = await runNamespaceJob(name);
  assert.equal(first.code, 0, first.stderr);
  assert.equal(first.stdout, `namespace ${name} is ready\n`);

  const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace: name });
  const ours = Object.entries(customAttributes).filter(([attribute]) => attribute.startsWith('Countersign'));
  const { KEYWORD, KEYWORD_LIST, DATETIME } = indexedValueTypes;
  assert.deepEqual(Object.fromEntries(ours), {
    CountersignStatus: KEYWORD,
    CountersignSpec: KEYWORD,
    CountersignTools: KEYWORD_LIST,
    CountersignRoles: KEYWORD_LIST,
    CountersignExpiresAt: DATETIME,
  });
  const retention = async () => {
    const { config } = await connection.workflowService.describeNamespace({ namespace: name });
    return Number(config?.workflowExecutionRetentionTtl?.seconds);
  };
  assert.equal(await retention(), month);

  // an administrator's own retention stays
  await connection.workflowService.updateNamespace({
    namespace: name,
    config: { workflowExecutionRetentionTtl: msToTs(3 * month * 1000) },
  });
  const second = await runNamespaceJob(name);
  assert.equal(second.code, 0, second.stderr);
  assert.equal(await retention(), 3 * month);
});

test('the worker’s health check passes while this host’s worker polls its queue, and only then', async () => {
  const check = (queue: string, at = address) =>
    run(process.execPath, ['deploy/worker-health.mjs'], {
      TEMPORAL_ADDRESS: at,
      TEMPORAL_NAMESPACE: namespace,
      COUNTERSIGN_TASK_QUEUE: queue,
    });

  // asked until it says so: on a crowded machine it may first say that Temporal is slow
  const nobody = `no worker of ${hostname()} has asked for work on "${taskQueue}"`;
  const unhealthy = await eventually(
    async () => {
      const { code, stderr } = await check(taskQueue);
      return stderr.includes(nobody) ? { code } : undefined;
    },
    { message: 'the check misses the worker' },
  );
  assert.equal(unhealthy.code, 1);

  const { path: secretsFile } = await makeSecrets();
  const worker = await startWorker({ address, namespace, taskQueue, secretsFile });
  await eventually(async () => (await check(taskQueue)).code === 0, { message: 'the check sees the worker' });
  await worker.stop();

  const elsewhere = await check(taskQueue, '127.0.0.1:9');
  assert.equal(elsewhere.code, 1, 'Temporal is out of reach');
});
