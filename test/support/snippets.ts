// The snippets of a document, run: each begins with a comment that names its file. What a snippet's language needs
// is pinned in test/doors and fetched once, into the user's cache; a machine that lacks the language itself skips
// with the reason, a CI machine fails.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { access, copyFile, mkdir, mkdtemp, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { cachedCliPath } from '../../src/embedded/find-temporal-cli.ts';
import { temporaryFolder } from './temporary-folder.ts';

const run = promisify(execFile);
const repository = fileURLToPath(new URL('../../', import.meta.url));

/** Go compiles Temporal's SDK the first time: a minute and a half on two cores, more on busy ones. */
const boundMs = 800_000;

/** Code by the name in its first line, of every fenced block that has one. */
export function readSnippets(text: string): Map<string, string> {
  const found = [...text.matchAll(/^```\w+\n((?:\/\/|#) ([\w-]+\.\w+):[^]*?)^```$/gm)];
  return new Map(found.map(([, code = '', name = '']) => [name, code]));
}

export async function runShell(code: string, env: Record<string, string>): Promise<string> {
  const { stdout } = await run('bash', ['-euo', 'pipefail', '-c', code], {
    cwd: temporaryFolder(),
    env: { ...process.env, ...env },
    timeout: boundMs,
  });
  return stdout;
}

/** Why no Python snippet can run here; undefined when it can. */
export async function pythonProblem(): Promise<string | undefined> {
  return missing('Python 3.10 with pip', [
    ['python3', '-c', 'import sys; sys.exit(sys.version_info < (3, 10))'],
    ['python3', '-m', 'pip', '--version'],
  ]);
}

export async function runPython(code: string, env: Record<string, string>): Promise<void> {
  const file = join(temporaryFolder(), 'snippet.py');
  await writeFile(file, code);
  const PYTHONPATH = await pythonPackages(join(repository, 'test/doors/requirements.txt'));
  await run('python3', [file], { env: { ...process.env, ...env, PYTHONPATH }, timeout: boundMs });
}

/** Why no Go snippet can run here; undefined when it can. */
export async function goProblem(): Promise<string | undefined> {
  return missing('Go', [['go', 'version']]);
}

export async function runGo(code: string, env: Record<string, string>): Promise<void> {
  const folder = temporaryFolder();
  await writeFile(join(folder, 'main.go'), code);
  for (const file of ['go.mod', 'go.sum'])
    await copyFile(join(repository, 'test/doors', file), join(folder, file));
  await run('go', ['run', '.'], { cwd: folder, env: { ...process.env, ...env }, timeout: boundMs });
}

/** Writes a TypeScript snippet where it can be bundled: this repository's packages are found from there. */
export async function writeModule(name: string, code: string): Promise<string> {
  const folder = temporaryFolder();
  await symlink(join(repository, 'node_modules'), join(folder, 'node_modules'));
  await writeFile(join(folder, name), code);
  return join(folder, name);
}

/** A folder for PYTHONPATH with these packages in these versions: the cached one, or a new one. */
async function pythonPackages(requirements: string): Promise<string> {
  const { stdout } = await run('python3', ['-c', 'import sys; print("%d.%d" % sys.version_info[:2])']);
  const hash = createHash('sha256')
    .update(await readFile(requirements))
    .digest('hex')
    .slice(0, 12);
  const name = `python${stdout.trim()}-${process.platform}-${process.arch}-${hash}`;
  const cached = join(dirname(dirname(cachedCliPath(process.env))), name);
  const there = await access(cached).then(
    () => true,
    () => false,
  );
  if (there) return cached;
  await mkdir(dirname(cached), { recursive: true });
  const folder = await mkdtemp(`${cached}-`);
  const quiet = ['--quiet', '--disable-pip-version-check', '--no-input', '--retries', '2'];
  try {
    const install = ['-m', 'pip', 'install', '--no-deps', '--target', folder, '-r', requirements];
    await run('python3', [...install, ...quiet], { timeout: boundMs });
    // whole, or not there; of two that install at the same time one stays
    await rename(folder, cached).catch(() => access(cached));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return cached;
}

async function missing(what: string, commands: readonly (readonly string[])[]): Promise<string | undefined> {
  for (const [command = '', ...args] of commands) {
    try {
      await run(command, args);
    } catch {
      if (process.env['CI'] === 'true') throw new Error(`this CI machine lacks ${what}: it is needed here`);
      return `there is no ${what} on this machine`;
    }
  }
  return undefined;
}
