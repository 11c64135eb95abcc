// Schemathesis (a Python program that reads an OpenAPI document and sends what it allows and what it forbids),
// installed once for this user beside the cached Temporal CLI, by pip, at the versions that are pinned here.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { cachedCliPath } from '../../src/embedded/find-temporal-cli.ts';

const requirements = fileURLToPath(new URL('schemathesis.txt', import.meta.url));
const run = promisify(execFile);

/** 20 MB of wheels on a slow line. */
const installMs = 5 * 60_000;
/** A run takes about a minute on two cores. */
const runMs = 10 * 60_000;

export interface Schemathesis {
  /** Runs it with these arguments; what it printed, and how it ended. */
  run(args: readonly string[], env?: Record<string, string>): Promise<{ code: number; output: string }>;
}

/** The program, or why there is none on this machine. */
export async function findSchemathesis(): Promise<Schemathesis | { missing: string }> {
  let python: string;
  try {
    const { stdout } = await run('python3', [
      '-c',
      'import sys, pip; assert sys.version_info >= (3, 10); print(sys.executable)',
    ]);
    python = stdout.trim();
  } catch {
    return { missing: 'it needs python3 (3.10 or newer) with pip on PATH, to install schemathesis' };
  }
  const wanted = createHash('sha256').update(python).update(readFileSync(requirements)).digest('hex');
  const cache = dirname(dirname(cachedCliPath(process.env)));
  const folder = join(cache, `schemathesis-${wanted.slice(0, 16)}`);
  if (!existsSync(folder)) {
    try {
      await install(python, cache, folder);
    } catch (error) {
      return { missing: `pip could not install schemathesis: ${String(error).slice(0, 500)}` };
    }
  }
  return {
    run: (args, env = {}) =>
      new Promise((resolve) => {
        const main = ['-c', 'from schemathesis.cli import schemathesis; schemathesis()', ...args];
        execFile(
          python,
          main,
          {
            env: { ...process.env, PYTHONPATH: folder, PYTHONDONTWRITEBYTECODE: '1', ...env },
            timeout: runMs,
            maxBuffer: 64 * 1024 * 1024,
          },
          (error, stdout, stderr) => {
            const code = error === null ? 0 : typeof error.code === 'number' ? error.code : -1;
            resolve({ code, output: stdout + stderr });
          },
        );
      }),
  };
}

/** Under its name only when it is whole, so that one that was cut off is no install. */
async function install(python: string, cache: string, folder: string): Promise<void> {
  mkdirSync(cache, { recursive: true });
  const made = mkdtempSync(join(cache, 'schemathesis-new-'));
  try {
    await run(
      python,
      [
        ...['-m', 'pip', 'install', '--target', made, '--requirement', requirements],
        ...['--retries', '1', '--progress-bar', 'off', '--disable-pip-version-check', '--no-input'],
      ],
      { timeout: installMs, maxBuffer: 16 * 1024 * 1024 },
    );
    renameSync(made, folder);
  } catch (error) {
    rmSync(made, { recursive: true, force: true });
    // another test process was faster
    if (!existsSync(folder)) throw error;
  }
}
