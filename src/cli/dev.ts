// `countersign dev`: everything on one machine in one terminal: a Temporal dev server (or the one at
// TEMPORAL_ADDRESS), a worker and the API, each a process of its own with a prefix to its lines.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { findTemporalCli } from '../embedded/find-temporal-cli.ts';
import { startDevServer } from '../embedded/dev-server.ts';
import { openProject, openProjectSecrets, UsageProblem } from './open-project.ts';
import { stopWish } from './stop.ts';
import { log, reportReady, say } from './talk.ts';

interface Part {
  name: string;
  child: ChildProcess;
  ready: Promise<Record<string, unknown>>;
  /** resolves with how it ended */
  ended: Promise<string>;
}

export async function runDev(options: { config?: string }): Promise<void> {
  const stop = stopWish();
  const { config, specs } = await openProject(options);
  specs.close(); // only checked here; worker and API read their own
  const { token } = await openProjectSecrets(config, true);
  const given = process.env['TEMPORAL_ADDRESS'];
  const server = given === undefined || given === '' ? await startEmbedded(config.dataDir) : undefined;
  const address = server?.address ?? given ?? '';
  const parts: Part[] = [];
  try {
    const env = { TEMPORAL_ADDRESS: address, COUNTERSIGN_END_WITH_STDIN: '1' };
    const api = startPart('api', config.file, env);
    parts.push(api);
    const { url } = await readyOrEnd(api);
    const worker = startPart('worker', config.file, {
      COUNTERSIGN_URL: config.baseUrl ?? String(url),
      ...env,
    });
    parts.push(worker);
    await readyOrEnd(worker);
    say('');
    say(`API          ${String(url)}`);
    say(`Temporal     ${address}`);
    if (server !== undefined) say(`Temporal UI  ${server.uiUrl}`);
    if (token === undefined)
      say(`API token    as printed at the first start (hashed in ${config.secretsFile})`);
    else say(`API token    ${token}   (shown once; its hash is in ${config.secretsFile})`);
    say('');
    reportReady({ url, address, ...(server === undefined ? {} : { uiUrl: server.uiUrl }) });
    const why = await Promise.race([
      stop,
      ...parts.map(({ name, ended }) => ended.then((how) => `${name} ended: ${how}`)),
      ...(server === undefined ? [] : [server.exited.then(() => 'the Temporal server ended')]),
    ]);
    if (why.includes('ended')) throw new UsageProblem(`${why}; its lines above say why`);
  } finally {
    await Promise.all(parts.map(stopPart));
    await server?.stop();
  }
}

async function startEmbedded(dataDir: string) {
  const cli = await findTemporalCli({ log: (line) => log(line) });
  log('starting the Temporal dev server', { cli: cli.path, version: cli.version, data: dataDir });
  return startDevServer({ cli, folder: dataDir, ownProcessGroup: true });
}

/** Runs this same program with another command. */
function startPart(name: string, configFile: string, env: Record<string, string>): Part {
  const script = process.argv[1] ?? '';
  const child = spawn(process.execPath, [...process.execArgv, script, name, '--config', configFile], {
    env: { ...process.env, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true, // Ctrl-C reaches only us, so that the parts end before the server
  });
  const ended = once(child, 'exit').then(([code, signal]) => String(signal ?? `code ${String(code)}`));
  const ready = new Promise<Record<string, unknown>>((resolve) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      resolve(JSON.parse(line) as Record<string, unknown>);
    });
  });
  createInterface({ input: child.stderr }).on('line', (line) => say(`[${name}] ${line}`));
  return { name, child, ready, ended };
}

async function readyOrEnd({ name, ready, ended }: Part): Promise<Record<string, unknown>> {
  const failed = ended.then((how): never => {
    throw new UsageProblem(`${name} did not start (${how}); its lines above say why`);
  });
  failed.catch(() => undefined); // when it ends later, runDev hears of it in its own way
  return Promise.race([ready, failed]);
}

/** Effects in flight get the worker's grace time (10 s); what has not ended after that is killed. */
async function stopPart({ child, ended }: Part): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), 15_000);
  await ended;
  clearTimeout(timer);
}
