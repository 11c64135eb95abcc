// `countersign dev`: all of it starts, all of it ends, and the next one goes on where it was.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { eventually } from './support/eventually.ts';
import { keepHistories } from './support/kept-histories.ts';
import { call, countersign, makeProject, ready, skipWithoutCache as skip } from './support/project.ts';
import { commandOf, descendantsOf, isRunning, type Script } from './support/script.ts';

describe('countersign dev', { skip }, () => {
  const project = makeProject();
  let dev: Script;
  let token: string;
  let runId: string;

  test('starts Temporal, api and worker, says where, and shows a token once', async () => {
    dev = countersign('dev', project);
    const { url = '', uiUrl = '' } = await ready(dev);
    const said = dev.stderr();
    [, token = ''] = /^API token +(csn_\S+)$/m.exec(said) ?? [];
    for (const line of [`API +${url}`, `Temporal UI +${uiUrl}`, 'Temporal +127\\.0\\.0\\.1:\\d+']) {
      assert.match(said, new RegExp(`^${line}$`, 'm'));
    }
    assert.match(said, /^\[api\] \S+ API listens /m);
    assert.match(said, /^\[worker\] \S+ worker polls /m);
    assert.equal((await fetch(uiUrl)).status, 200);

    const input = { order: 'ord-1', amount: '1.00' };
    const started = await call(url, token, '/runs', { spec: 'refund', input });
    assert.equal(started.status, 201);
    runId = String(started.body['id']);
    await eventually(async () => {
      const { body } = await call(url, token, `/runs/${runId}`);
      return body['status'] === 'awaiting_approval';
    });
  });

  test('refuses a second one on the same folder, and names the first', async () => {
    const second = countersign('dev', project);
    assert.equal(await second.ended, 1);
    assert.match(second.stderr(), /^countersign: \S+temporal\.db is in use by another .*process \d+/m);
  });

  test('ends by SIGTERM with code 0, all its processes with it, and the next one goes on from there', async () => {
    const parts = descendantsOf(dev.pid);
    assert.ok(parts.length >= 3, `Temporal, api and worker run, and these do: ${parts.join()}`);
    dev.signal('SIGTERM');
    assert.equal(await dev.ended, 0, dev.stderr());
    assert.deepEqual(parts.filter(isRunning), []);

    dev = countersign('dev', project);
    const { url = '' } = await ready(dev);
    assert.match(dev.stderr(), /^API token +as printed at the first start/m);
    const { body } = await call(url, token, `/runs/${runId}`);
    assert.equal(body['status'], 'awaiting_approval');
  });

  test('ends all when one of its processes is killed, and says which', async () => {
    const parts = descendantsOf(dev.pid);
    const [victim] = parts.filter((pid) => commandOf(pid).includes(' worker '));
    assert.ok(victim !== undefined);
    process.kill(victim, 'SIGKILL');
    assert.equal(await dev.ended, 1);
    assert.match(dev.stderr(), /^countersign: worker ended: SIGKILL; its lines above say why$/m);
    assert.deepEqual(parts.filter(isRunning), []);
    await keepHistories(project.dataDir);
  });
});
