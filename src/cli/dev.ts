// `countersign dev`: everything on one machine in one terminal: a Temporal dev server (or the one at
// TEMPORAL_ADDRESS), a worker and the API, each a process of its own with a prefix to its lines.
import type { Config } from '../config.ts';
import { findTemporalCli } from '../embedded/find-temporal-cli.ts';
import { startDevServer, type DevServer } from '../embedded/dev-server.ts';
import { withoutTemporalSettings } from '../embedded/environment.ts';
import { openProject, openProjectSecrets, UsageProblem } from './open-project.ts';
import { startPart, type Part } from './part.ts';
import { stopWish } from './stop.ts';
import { log, reportReady, say } from './talk.ts';

/** What was started so far, to be ended in this order. */
interface Whole {
  parts: Part[];
  server?: DevServer;
}

export async function runDev(options: { config?: string }): Promise<void> {
  const stop = stopWish();
  const { config, specs } = await openProject(options);
  specs.close(); // only checked here; worker and API read their own
  const { token } = await openProjectSecrets(config, true);
  // at once, and not only when all is up: no later start can show it
  if (token !== undefined) log('made an API token; no later start shows it', { token });
  const whole: Whole = { parts: [] };
  try {
    await Promise.race([stop, startAll(whole, config, token).then(() => firstEnd(whole))]);
  } finally {
    await Promise.all(whole.parts.map((part) => part.stop()));
    await whole.server?.stop();
  }
}

async function startAll(whole: Whole, config: Config, token: string | undefined): Promise<void> {
  const given = process.env['TEMPORAL_ADDRESS'] || undefined;
  if (given === undefined) whole.server = await startEmbedded(config.dataDir);
  const { server, parts } = whole;
  const address = server?.address ?? given ?? '';
  const env = server === undefined ? process.env : withoutTemporalSettings(process.env);
  const start = async (name: string, more: NodeJS.ProcessEnv = {}) => {
    // this same program with another command
    const args = [...process.execArgv, process.argv[1] ?? '', name, '--config', config.file];
    const part = startPart({
      name,
      args,
      env: { ...env, TEMPORAL_ADDRESS: address, ...more },
      say: (line) => say(`[${name}] ${line}`),
    });
    parts.push(part);
    return part.ready;
  };
  const { url } = await start('api');
  await start('worker', { COUNTERSIGN_URL: config.baseUrl ?? String(url) });
  say('');
  say(`API          ${String(url)}`);
  say(`API token    ${token ?? `as printed at the first start (its hash is in ${config.secretsFile})`}`);
  say(`Temporal     ${address}`);
  if (server !== undefined) say(`Temporal UI  ${server.uiUrl}`);
  say('');
  reportReady({ url, address, ...(server === undefined ? {} : { uiUrl: server.uiUrl }) });
}

/** @throws UsageProblem as soon as one of them ends by itself */
async function firstEnd({ parts, server }: Whole): Promise<never> {
  const why = await Promise.race([
    ...parts.map(({ name, ended }) => ended.then((how) => `${name} ended: ${how}`)),
    ...(server === undefined ? [] : [server.exited.then(() => 'the Temporal server ended')]),
  ]);
  throw new UsageProblem(`${why}; its lines above say why`);
}

async function startEmbedded(dataDir: string) {
  const cli = await findTemporalCli({ log: (line) => log(line) });
  log('starting the Temporal dev server', { cli: cli.path, version: cli.version, data: dataDir });
  return startDevServer({ cli, folder: dataDir, ownProcessGroup: true });
}
