// `countersign doctor` against a real server: all well with a worker there, missing search attributes told and
// with --fix registered, the clocks compared, the views printed.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { msToTs } from '@temporalio/common/lib/time.js';
import { searchAttributeKinds } from '../src/core/names.ts';
import { runDoctor } from '../src/cli/doctor.ts';
import { processTerminal } from '../src/cli/terminal.ts';
import { startApi } from './support/api-server.ts';
import { eventually } from './support/eventually.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { temporaryFolder } from './support/temporary-folder.ts';
import { startWorker } from './support/worker.ts';

const temporal = await openTemporal();
const { client, address, namespace, taskQueue } = temporal;
const { path: secretsFile, adminToken } = await makeSecrets();
const folder = temporaryFolder();
const config = join(folder, 'countersign.config.mjs');
writeFileSync(config, 'export const config = { tools: [] };\n');
const api = await startApi(temporal, { secretsFile });

interface Report {
  findings: { check: string; result: string; text: string }[];
  views: { name: string; url: string }[];
}

async function doctor(env: Record<string, string>, options: { fix?: boolean } = {}) {
  let said = '';
  const environment = {
    TEMPORAL_ADDRESS: address,
    TEMPORAL_NAMESPACE: namespace,
    COUNTERSIGN_TASK_QUEUE: taskQueue,
    COUNTERSIGN_SECRETS_FILE: secretsFile,
    COUNTERSIGN_URL: api.url,
    COUNTERSIGN_TOKEN: adminToken,
    ...env,
  };
  const out = (text: string) => void (said += text);
  const terminal = { ...processTerminal(), env: environment, out, err: () => undefined };
  const exitCode = await runDoctor(terminal, { config, json: true, ui: 'http://localhost:8233', ...options });
  const { findings, views } = JSON.parse(said) as Report;
  return { exitCode, views, found: new Map(findings.map((one) => [one.check, one])), said };
}

test('with a worker there doctor finds nothing wrong and is 0; without one it says so, and is 0 too', async () => {
  const without = await doctor({});
  assert.equal(without.exitCode, 0, without.said);
  assert.equal(without.found.get('workflow pollers')?.result, 'warn');
  assert.match(
    without.found.get('workflow pollers')?.text ?? '',
    new RegExp(`"${taskQueue}": start a worker`),
  );

  const worker = await startWorker({ address, namespace, taskQueue, secretsFile });
  const well = await eventually(async () => {
    const report = await doctor({});
    // Temporal tells of a poller when its first poll has come
    return report.found.get('activity pollers')?.result === 'ok' ? report : undefined;
  });
  assert.equal(well.exitCode, 0, well.said);
  for (const { check, result, text } of well.found.values()) assert.equal(result, 'ok', `${check}: ${text}`);
  for (const clock of ['clock (api)', 'clock (temporal)']) {
    assert.equal(well.found.get(clock)?.text, 'agrees with this machine within 2 s');
  }
  assert.ok(!well.said.includes(adminToken));
  await worker.stop();
});

test('each view that doctor prints is a query that Temporal takes', async () => {
  const { views } = await doctor({});
  assert.deepEqual(
    views.map(({ name }) => name),
    ['awaiting approval', 'in doubt', 'rejected', 'failed'],
  );
  for (const { url } of views) {
    const query = new URL(url).searchParams.get('query') ?? '';
    await client.workflowService.countWorkflowExecutions({ namespace, query });
  }
});

test('missing search attributes are told with the commands, changed by nobody, and registered by --fix', async () => {
  const own = temporal.id('doctor');
  await temporal.connection.workflowService.registerNamespace({
    namespace: own,
    workflowExecutionRetentionPeriod: msToTs('1d'),
  });
  const registered = async () => {
    const { customAttributes } = await temporal.connection.operatorService.listSearchAttributes({
      namespace: own,
    });
    return Object.keys(searchAttributeKinds).filter((name) => customAttributes[name] !== undefined);
  };
  const missing = await eventually(async () => {
    const report = await doctor({ TEMPORAL_NAMESPACE: own });
    // a new namespace is known to the server's parts some seconds later
    return report.found.get('temporal')?.result === 'ok' ? report : undefined;
  });
  assert.equal(missing.exitCode, 1, missing.said);
  const finding = missing.found.get('search attributes');
  assert.equal(finding?.result, 'fail');
  assert.match(finding.text, /temporal operator search-attribute create/);
  assert.match(finding.text, /countersign doctor --fix$/);
  assert.deepEqual(await registered(), []);

  const fixed = await doctor({ TEMPORAL_NAMESPACE: own }, { fix: true });
  assert.equal(fixed.found.get('search attributes')?.result, 'ok', fixed.said);
  assert.equal(fixed.exitCode, 0, fixed.said);
  assert.deepEqual(await registered(), Object.keys(searchAttributeKinds));
});
