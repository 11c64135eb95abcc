// The processes of the demo: Temporal, the API, a worker and the ledger, each one of its own, on free ports,
// with all that they keep in one folder. `stop` ends whatever is running, in the right order.
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
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
}

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const countersign = here('../../dist/cli/main.js');
const config = here('./countersign.config.ts');

export async function startDemo(
  folder: string,
  running: Running,
  say: (line: string) => void,
): Promise<Demo> {
  const logFile = createWriteStream(join(folder, 'parts.log'));
  const log = (name: string) => (line: string) => void logFile.write(`[${name}] ${line}\n`);
  const secretsFile = join(folder, 'secrets.json');

  const cli = await findTemporalCli({ log: say });
  running.server = await startDevServer({ cli, folder, ownProcessGroup: true });
  const { address, uiUrl, port, uiPort } = running.server;

  running.ledger = startPart({
    name: 'ledger',
    args: [
      ...['--import', 'tsx', here('./ledger.ts'), '--end-with-stdin'],
      ...['--port', '0', '--file', join(folder, 'ledger.jsonl')],
    ],
    env: process.env,
    say: log('ledger'),
  });
  const ledger = ledgerClient(String((await running.ledger.ready)['url']));

  // What a deployment has in its environment; nothing of the user's own Temporal or countersign.
  const env = {
    ...Object.fromEntries(
      Object.entries(withoutTemporalSettings(process.env)).filter(
        ([name]) => !name.startsWith('COUNTERSIGN_'),
      ),
    ),
    TEMPORAL_ADDRESS: address,
    COUNTERSIGN_SECRETS_FILE: secretsFile,
    COUNTERSIGN_PORT: '0',
    LEDGER_URL: ledger.url,
  };
  const startCountersign = (name: 'api' | 'worker', more = {}): Part =>
    startPart({
      name,
      args: [countersign, name, '--config', config],
      env: { ...env, ...more },
      say: log(name),
    });

  await openSecrets({ path: secretsFile, create: true });
  const tokens = {
    shop: await addToken(secretsFile, { id: 'shop', name: 'The shop', roles: [], kind: 'service' }),
    anna: await addToken(secretsFile, { id: 'anna', name: 'Anna', roles: ['finance'] }),
    ben: await addToken(secretsFile, { id: 'ben', name: 'Ben', roles: ['finance'] }),
  };
  running.api = startCountersign('api');
  const url = String((await running.api.ready)['url']);

  const startWorker = async (): Promise<void> => {
    running.worker = startCountersign('worker', { COUNTERSIGN_URL: url });
    await running.worker.ready;
  };
  await startWorker();

  return {
    ledger,
    shop: apiClient(url, tokens.shop),
    anna: apiClient(url, tokens.anna),
    ben: apiClient(url, tokens.ben),
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

/** Those who talk to Temporal and the ledger first. */
export async function stopDemo({ api, worker, ledger, server }: Running): Promise<void> {
  await Promise.all([api?.stop(), worker?.stop()]);
  await Promise.all([ledger?.stop(), server?.stop()]);
}
