// A real Temporal dev server with a database file, as a child process. It is ready when it answers, not
// after a time; it can be stopped or killed and started again on the same file, and a second one on a
// file that is in use is refused by the operating system's lock on it.
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { searchAttributeArguments } from '../temporal-setup.ts';
import { launchChild } from './child.ts';
import { prepareNamespace } from './dev-namespace.ts';
import { withoutTemporalSettings } from './environment.ts';
import { freePort, portIsFree } from './ports.ts';
import { makePrivateFolder } from './private-folder.ts';

export interface DevServerOptions {
  /** as findTemporalCli gives it */
  cli: { path: string };
  /** for the database, the log and the lock; made when it is not there */
  folder: string;
  /** Default: one that is free. */
  port?: number;
  uiPort?: number;
  /** key → JSON text of the value; added to the limits that countersign sets, or instead of them */
  dynamicConfig?: Record<string, string>;
  /** Gets each line of the server's log; without it they go to `temporal.log` in the folder. */
  log?: (line: string) => void;
  /**
   * Own process group: Ctrl-C in a terminal then reaches only the caller, who can stop the workers first.
   * Only for a caller that handles its signals, else the server outlives it.
   */
  ownProcessGroup?: boolean;
}

export interface DevServer {
  /** host:port of its gRPC door */
  address: string;
  namespace: string;
  uiUrl: string;
  port: number;
  uiPort: number;
  pid: number;
  /** SIGTERM, and SIGKILL when it has not ended in time. Resolves when it has ended. */
  stop(): Promise<void>;
  /** SIGKILL. Resolves when it has ended. */
  kill(): Promise<void>;
  /** Resolves when it has ended, for whatever reason. Never rejects. */
  exited: Promise<void>;
}

/** The dev server did not start; the message says why. */
export class DevServerError extends Error {
  override readonly name = 'DevServerError';
}

const host = '127.0.0.1';
const namespace = 'default';

// What the dev server's defaults would refuse, or let pass where a production database does not.
const limits: Record<string, string> = {
  'limit.maxIDLength': '255', // PostgreSQL's visibility loses longer ids; the default of 1,000 would hide it
  'history.MaxBufferedQueryCount': '100', // default 1: others who ask the same run meanwhile are refused
  'frontend.namespaceRPS.visibility': '1000', // default 10 lists a second for everybody together
};

// The WAL needs no sync per transaction and loses nothing when a process is killed (a power cut may take
// the last moment). The exclusive lock is the kernel's, so a killed server leaves none behind: without it
// two servers share one file, and each overwrites what the other holds in memory.
const pragmas = ['journal_mode=wal', 'synchronous=normal', 'locking_mode=exclusive'];

// Another process may take a port between our look and the server's; five such misses in a row do not happen.
const portAttempts = 5;

// It takes 0.3–4 s on a free machine, several times that on a crowded one.
const startBoundMs = 60_000;

/** @throws DevServerError */
export async function startDevServer(options: DevServerOptions): Promise<DevServer> {
  await makePrivateFolder(options.folder);
  for (const port of [options.port, options.uiPort]) {
    if (port !== undefined && !(await portIsFree(host, port))) {
      throw new DevServerError(`port ${port} is in use: stop what listens there, or take another one`);
    }
  }
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await startOnce(options);
    } catch (error) {
      const raced = error instanceof DevServerError && error.message.includes('address already in use');
      if (!raced || attempt === portAttempts) throw error;
    }
  }
}

async function startOnce(options: DevServerOptions): Promise<DevServer> {
  const port = options.port ?? (await freePort(host));
  const uiPort = options.uiPort ?? (await freePort(host, port));
  const address = `${host}:${port}`;
  const child = launchChild({
    command: options.cli.path,
    args: serverArguments(options, port, uiPort),
    // a profile of the user's is for another server
    env: withoutTemporalSettings(process.env),
    log: options.log ?? join(options.folder, 'temporal.log'),
    ownProcessGroup: options.ownProcessGroup ?? false,
  });
  const abort = new AbortController();
  void child.exited.then(() => abort.abort());
  try {
    await prepareNamespace(address, namespace, { timeoutMs: startBoundMs, signal: abort.signal });
  } catch (error) {
    const diedBefore = abort.signal.aborted;
    await child.end('SIGKILL');
    throw diedBefore ? startProblem(options, child.lastWords()) : error;
  }
  const { exited } = child;
  const pid = child.pid!;
  await writeFile(ownerFile(options.folder), `${JSON.stringify({ pid, address })}\n`);
  return {
    address,
    namespace,
    uiUrl: `http://${host}:${uiPort}`,
    port,
    uiPort,
    pid,
    exited,
    stop: () => child.end('SIGTERM'),
    kill: () => child.end('SIGKILL'),
  };
}

function serverArguments(options: DevServerOptions, port: number, uiPort: number): string[] {
  const dynamicConfig = Object.entries({ ...limits, ...options.dynamicConfig });
  return [
    ...['server', 'start-dev', '--ip', host, '--port', String(port), '--ui-port', String(uiPort)],
    ...['--db-filename', databaseFile(options.folder)],
    ...pragmas.flatMap((pragma) => ['--sqlite-pragma', pragma]),
    ...searchAttributeArguments().flatMap((attribute) => ['--search-attribute', attribute]),
    ...dynamicConfig.flatMap(([key, value]) => ['--dynamic-config-value', `${key}=${value}`]),
  ];
}

function startProblem(options: DevServerOptions, lastWords: string): DevServerError {
  if (/database is locked|SQLITE_BUSY/.test(lastWords)) {
    return new DevServerError(
      `${databaseFile(options.folder)} is in use by another Temporal dev server${ownerText(options.folder)}: ` +
        'stop it, use it by TEMPORAL_ADDRESS, or take another folder (COUNTERSIGN_DATA_DIR)',
    );
  }
  return new DevServerError(`the Temporal dev server (${options.cli.path}) did not start: ${lastWords}`);
}

function ownerText(folder: string): string {
  try {
    const owner = JSON.parse(readFileSync(ownerFile(folder), 'utf8')) as { pid: number; address: string };
    process.kill(owner.pid, 0);
    return ` (process ${owner.pid}, at ${owner.address})`;
  } catch {
    return '';
  }
}

function databaseFile(folder: string): string {
  return join(folder, 'temporal.db');
}

function ownerFile(folder: string): string {
  return join(folder, 'temporal.owner.json');
}
