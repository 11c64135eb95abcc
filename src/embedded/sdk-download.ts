// The Temporal SDK's own download of the CLI. The SDK offers it only as part of starting a server, and that
// cannot be given up once begun; so it is begun in a child process, watched by what it writes, and ended as
// soon as the file is there, or when no answer comes.
import { spawn } from 'node:child_process';
import { mkdir, readdir, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

// A machine without open internet often drops packets instead of refusing them.
const silenceBoundMs = 5000;
// Loading the SDK takes a second, many on a crowded machine, and says nothing about the line.
const loadBoundMs = 30_000;

// `--help` makes the server that the SDK starts after the download end at once.
const script = `
const { Runtime } = require(process.argv[1]);
const [sdkVersion, downloadDir] = process.argv.slice(2);
const exe = { type: 'cached-download', downloadDir, version: 'default', ttl: 86400000, sdkName: 'sdk-typescript', sdkVersion };
const log = { format: 'pretty', level: 'error' };
console.log('asking');
Runtime.instance()
  .createEphemeralServer({ type: 'dev-server', exe, namespace: 'default', ip: '127.0.0.1', port: null, uiPort: null,
    dbFilename: null, ui: false, log, extraArgs: ['--help'] })
  .catch((error) => { console.error(error.message); process.exit(1); });
`;

/** Downloads into `folder` and gives the path of the CLI in it. @throws Error saying why it cannot */
export async function downloadBySdk(folder: string, env: NodeJS.ProcessEnv): Promise<string> {
  const require = createRequire(import.meta.url);
  const { version } = require('@temporalio/worker/package.json') as { version: string };
  const target = join(folder, 'sdk');
  await mkdir(target);
  const child = spawn(
    process.execPath,
    ['-e', script, require.resolve('@temporalio/worker'), version, target],
    {
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  let heardAt = performance.now();
  let bound = loadBoundMs;
  let fault = '';
  child.stdout.once('data', () => {
    heardAt = performance.now();
    bound = silenceBoundMs;
  });
  child.stderr.on('data', (chunk: Buffer) => (fault += chunk.toString()));
  const ended = new Promise<'ended'>((resolve) => child.once('close', () => resolve('ended')));
  try {
    for (let size = 0; ;) {
      const file = await newestFile(target);
      if (file?.whole) return file.path;
      if (file !== undefined && file.size > size) heardAt = performance.now();
      size = file?.size ?? size;
      if (performance.now() - heardAt > bound) throw new Error(`no answer for ${bound / 1000} seconds`);
      if ((await Promise.race([ended, delay(50)])) === 'ended') {
        const last = await newestFile(target);
        if (last?.whole) return last.path;
        throw new Error(fault.trim() || 'the SDK gave no reason');
      }
    }
  } finally {
    child.kill('SIGKILL');
    await ended;
  }
}

// The SDK writes into `<name>.downloading` and renames it when it is whole.
async function newestFile(
  folder: string,
): Promise<{ path: string; size: number; whole: boolean } | undefined> {
  const [name] = await readdir(folder);
  if (name === undefined) return undefined;
  const path = join(folder, name);
  const stats = await stat(path).catch(() => undefined);
  return stats && { path, size: stats.size, whole: !name.endsWith('.downloading') };
}
