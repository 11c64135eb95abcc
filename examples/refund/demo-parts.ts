// The processes of the demo: Temporal, the API, a worker and the ledger, each one of its own, on free ports,
// with all that they keep in one folder. `stop` ends whatever is running, in the right order.
import { createWriteStream } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startPart, type Part } from '../../src/cli/part.ts';
import { startDevServer, type DevServer } from '../../src/embedded/dev-server.ts';
import { withoutTemporalSettings } from '../../src/embedded/environment.ts';
import { findTemporalCli } from '../../src/embedded/find-temporal-cli.ts';
import { addToken, openSecrets } from '../../src/secrets.ts';
import { apiClient, type ApiClient } from './api-client.ts';
import { ledgerClient, type LedgerClient } from './ledger-client.ts';

export interface Demo {
  ledger: LedgerClient;
  /** the API, by the token of each */
  shop: ApiClient;
  anna: ApiClient;
  ben: ApiClient;
  temporal: { address: string; uiUrl: string };
  workerPid(): number | undefined;
  /** SIGKILL; resolves when it is gone, with the signal that ended it */
  killWorker(): Promise<string>;
  startWorker(): Promise<void>;
  /** SIGKILL; resolves when it is gone */
  killTemporal(): Promise<void>;
  /** on the same database file, at the same ports */
  restartTemporal(): Promise<void>;
}

/** What runs; filled while things start, so that it can be stopped at any moment. */
export interface Running {
  server?: DevServer;
  ledger?: Part;
  api?: Part;
  worker?: Part;
  /** nothing is started any more */
  ending?: true;
}

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
/** The command line of the package that this example imports: built, or from source where node is told so. */
const entry = import.meta.resolve('countersign');
const countersign = fileURLToPath(new URL(`./cli/main${extname(entry)}`, entry));
const config = here('./countersign.config.ts');

export async function startDemo(
  folder: string,
  running: Running,
  say: (line: string) => void,
): Promise<Demo> {
  const secretsFile = join(folder, 'secrets.json');
  const logFile = createWriteStream(join(folder, 'parts.log'));
  const start = (name: string, args: string[], env: NodeJS.ProcessEnv): Part => {
    if (running.ending) throw new Error('the demo is ending');
    const log = (line: string): void => void logFile.write(`[${name}] ${line}\n`);
    return startPart({ name, args: [...process.execArgv, ...args], env, say: log });
  };

  const cli = await findTemporalCli({ log: say });
  running.server = await startDevServer({ cli, folder, ownProcessGroup: true });
  const { address, uiUrl, port, uiPort } = running.server;

  const ledgerFlags = ['--end-with-stdin', '--port', '0', '--file', join(folder, 'ledger.jsonl')];
  running.ledger = start('ledger', [here('./ledger.ts'), ...ledgerFlags], process.env);
  const ledger = ledgerClient(String((await running.ledger.ready)['url']));

  await openSecrets({ path: secretsFile, create: true });
  const shop = await addToken(secretsFile, { id: 'shop', name: 'The shop', roles: [], kind: 'service' });
  const anna = await addToken(secretsFile, { id: 'anna', name: 'Anna', roles: ['finance'] });
  const ben = await addToken(secretsFile, { id: 'ben', name: 'Ben', roles: ['finance'] });

  const env = {
    ...ownEnvironment(),
    TEMPORAL_ADDRESS: address,
    COUNTERSIGN_SECRETS_FILE: secretsFile,
    COUNTERSIGN_PORT: '0',
    LEDGER_URL: ledger.url,
  };
  running.api = start('api', [countersign, 'api', '--config', config], env);
  const url = String((await running.api.ready)['url']);

  const startWorker = async (): Promise<void> => {
    const withLinks = { ...env, COUNTERSIGN_URL: url };
    running.worker = start('worker', [countersign, 'worker', '--config', config], withLinks);
    await running.worker.ready;
  };
  await startWorker();

  return {
    ledger,
    shop: apiClient(url, shop),
    anna: apiClient(url, anna),
    ben: apiClient(url, ben),
    temporal: { address, uiUrl },
    workerPid: () => running.worker?.pid,
    killWorker: async () => (await running.worker?.kill()) ?? 'there was none',
    startWorker,
    killTemporal: async () => running.server?.kill(),
    async restartTemporal() {
      running.server = await startDevServer({ cli, folder, port, uiPort, ownProcessGroup: true });
    },
  };
}

/** Nothing of the user's own Temporal and countersign gets into the demo. */
function ownEnvironment(): NodeJS.ProcessEnv {
  const others = Object.entries(withoutTemporalSettings(process.env));
  return Object.fromEntries(others.filter(([name]) => !name.startsWith('COUNTERSIGN_')));
}

/** Those who talk to Temporal and the ledger end first. */
export async function stopDemo(running: Running): Promise<void> {
  running.ending = true;
  await Promise.all([running.api?.stop(), running.worker?.stop()]);
  await Promise.all([running.ledger?.stop(), running.server?.stop()]);
}
