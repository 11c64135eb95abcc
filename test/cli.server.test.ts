// `countersign dev`, `worker` and `api` as processes: what they refuse to start on, what they say, how they
// end. What dev does when it does start is in countersign-dev.server.test.ts.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { eventually } from './support/eventually.ts';
import {
  call,
  countersign,
  goodSpec,
  makeProject,
  ready,
  skipWithoutCache as skip,
} from './support/project.ts';
import { commandOf, descendantsOf, isRunning, startScript, type Script } from './support/script.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

const temporal = await openTemporal();
const { path: secretsFile, adminToken } = await makeSecrets();

/** What worker and api have on top of a project: the server of the tests, and secrets. */
const withTemporal = {
  TEMPORAL_ADDRESS: temporal.address,
  TEMPORAL_NAMESPACE: temporal.namespace,
  COUNTERSIGN_TASK_QUEUE: temporal.taskQueue,
  COUNTERSIGN_SECRETS_FILE: secretsFile,
};

async function answers(url: string): Promise<boolean> {
  return fetch(url).then(
    () => true,
    () => false,
  );
}

describe('a bad spec folder', { concurrency: true, skip }, () => {
  const project = makeProject({
    'good.yaml': goodSpec,
    'no-yaml.yaml': 'version: 1\nname: [',
    'unknown-key.yaml': goodSpec.replace('name: refund', 'name: unknown-key\ncolour: red'),
    'twice.yaml': `${goodSpec.replace('name: refund', 'name: twice')}  - id: refund\n    tool: payments.refund\n    with: {}\n`,
    'unknown-tool.yaml': goodSpec
      .replace('name: refund', 'name: unknown-tool')
      .replace('payments.refund', 'payments.refnd'),
    'bad-name.yaml': goodSpec.replace('name: refund', 'name: "re fund"'),
  });

  for (const command of ['dev', 'worker', 'api']) {
    test(`ends ${command} with code 1, every place by file:line:col, and nothing started`, async () => {
      const script = countersign(command, project, command === 'dev' ? {} : withTemporal);
      assert.equal(await script.ended, 1);
      const said = script.stderr();
      const place = (file: string, line: number, col: number, what: RegExp) =>
        assert.match(said, new RegExp(`${file}:${line}:${col} error .*${what.source}`));
      place('no-yaml.yaml', 2, 8, /./);
      place('unknown-key.yaml', 3, 1, /colour/);
      place('twice.yaml', 12, 9, /refund/);
      place('unknown-tool.yaml', 9, 11, /payments\.refnd/);
      place('bad-name.yaml', 2, 7, /re fund/);
      assert.doesNotMatch(said, /good\.yaml/);
      assert.doesNotMatch(said, /\n +at /, 'no stack: it is the user who can mend it');
      assert.doesNotMatch(script.stdout(), /"ready"/);
      assert.equal(existsSync(project.dataDir), false, 'neither secrets nor a database were made');
    });
  }
});

describe('worker and api', { skip }, () => {
  let worker: Script;
  let api: Script;
  let url: string;
  const project = makeProject();

  before(async () => {
    worker = countersign('worker', project, withTemporal);
    api = countersign('api', project, withTemporal);
    assert.equal((await ready(worker))['taskQueue'], temporal.taskQueue);
    url = (await ready(api))['url'] ?? '';
  });

  const start = (order: string) =>
    call(url, adminToken, '/runs', {
      spec: 'refund',
      id: temporal.id(order),
      input: { order, amount: '1.00' },
    });

  test('say what they do, and serve', async () => {
    assert.match(url, /^http:\/\/127\.0\.0\.1:\d+$/);
    assert.match(
      worker.stderr(),
      new RegExp(`^\\S+Z worker polls namespace=\\S+ taskQueue=${temporal.taskQueue}$`, 'm'),
    );
    assert.match(api.stderr(), new RegExp(`^\\S+Z API listens url=${url}$`, 'm'));
    const { status, body } = await start('served');
    assert.equal(status, 201);
    const asked = await eventually(async () => {
      const page = await call(url, adminToken, `/approvals?run=${String(body['id'])}`);
      return (page.body['approvals'] as { title: string }[])[0];
    });
    assert.equal(asked.title, 'Refund served');
  });

  test('log a spec that goes bad later, refuse its starts, and take them again when it is mended', async () => {
    project.writeSpec('refund.yaml', goodSpec.replace('tool: payments', 'tol: payments'));
    for (const script of [worker, api]) {
      await script.says(/spec problem, its starts are refused: refund\.yaml:9:5 error .*tol/);
    }
    const refused = await start('bad');
    assert.equal(refused.status, 400);
    assert.equal(refused.body['code'], 'invalid_request');
    assert.match(String(refused.body['detail']), /refund\.yaml:8:5 error/);

    project.writeSpec('refund.yaml', goodSpec);
    await eventually(async () => (await start('mended')).status === 201);
  });

  test('end by SIGTERM with code 0', async () => {
    for (const script of [worker, api]) script.signal('SIGTERM');
    assert.equal(await worker.ended, 0, worker.stderr());
    assert.equal(await api.ended, 0, api.stderr());
    assert.equal(await answers(`${url}/livez`), false);
  });
});

describe('what is missing or taken', { concurrency: 3, skip }, () => {
  test('a worker without secrets ends with code 1 and says how to get some', async () => {
    const missing = join(temporaryFolder(), 'none.json');
    const script = countersign('worker', makeProject(), {
      ...withTemporal,
      COUNTERSIGN_SECRETS_FILE: missing,
    });
    assert.equal(await script.ended, 1);
    assert.match(script.stderr(), /^countersign: \S+none\.json is not there: .*COUNTERSIGN_SECRETS_FILE/m);
  });

  test('a worker without Temporal ends with code 69', async () => {
    const script = countersign('worker', makeProject(), { ...withTemporal, TEMPORAL_ADDRESS: '127.0.0.1:9' });
    assert.equal(await script.ended, 69, script.stderr());
    assert.match(script.stderr(), /127\.0\.0\.1:9/);
  });

  test('an unknown command or option ends with code 64', async () => {
    const [command, option] = [['wrok'], ['worker', '--colour', 'red']].map((args) =>
      startScript('src/cli/main.ts', { args }),
    );
    assert.deepEqual([await command?.ended, await option?.ended], [64, 64]);
  });

  test('no Temporal CLI, and no way to get one: dev ends with code 1, what was tried and what to do', async () => {
    const home = temporaryFolder();
    // the SDK's download is given up after 5 s at the latest
    const nowhere = { PATH: home, HOME: home, XDG_CACHE_HOME: home, COUNTERSIGN_CACHE_DIR: home };
    const noNetwork = { HTTPS_PROXY: 'http://127.0.0.1:9', https_proxy: 'http://127.0.0.1:9' };
    const project = makeProject();
    const script = countersign('dev', project, { ...nowhere, ...noNetwork, TEMPORAL_CLI: undefined });
    assert.equal(await script.ended, 1);
    const said = script.stderr();
    assert.match(said, /^countersign: There is no Temporal CLI, .* What was tried:$/m);
    for (const tried of ['TEMPORAL_CLI is not set', 'on PATH', 'no cached copy', 'download', 'pip']) {
      assert.match(said, new RegExp(`^  - .*${tried}`, 'm'));
    }
    assert.match(said, /set TEMPORAL_ADDRESS to its host:port$/m);
    assert.doesNotMatch(said, /\n +at /);
    assert.doesNotMatch(script.stdout(), /"ready"/);
  });

  describe('a port in use', () => {
    const holder = createServer();
    let port: string;
    before(async () => {
      await once(holder.listen(0, '127.0.0.1'), 'listening');
      port = String((holder.address() as AddressInfo).port);
    });
    after(() => void holder.close());

    test('ends api with code 1 and its number', async () => {
      const script = countersign('api', makeProject(), { ...withTemporal, COUNTERSIGN_PORT: port });
      assert.equal(await script.ended, 1);
      assert.match(
        script.stderr(),
        new RegExp(`^countersign: port ${port} of 127\\.0\\.0\\.1 is in use; set COUNTERSIGN_PORT`, 'm'),
      );
    });

    test('ends dev, and the Temporal that it had started', async () => {
      const script = countersign('dev', makeProject(), { COUNTERSIGN_PORT: port });
      await script.says(/starting the Temporal dev server/);
      const server = await eventually(() =>
        descendantsOf(script.pid).find((pid) => commandOf(pid).includes(' start-dev ')),
      );
      assert.equal(await script.ended, 1);
      assert.equal(isRunning(server), false);
      assert.match(script.stderr(), /^\[api\] countersign: port \d+ of 127\.0\.0\.1 is in use/m);
      assert.match(script.stderr(), /^countersign: api did not start \(code 1\); its lines above say why$/m);
    });
  });
});
