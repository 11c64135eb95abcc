// The real Temporal server of the *.server.test.ts files: the one that `npm test` started for all of them,
// or, when a file is run alone, one of its own. Every file has its own task queue and its own workflow ids,
// so that files can run side by side on one server.
import { randomBytes } from 'node:crypto';
import { basename } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { findTemporalCli } from '../../src/embedded/find-temporal-cli.ts';
import { startDevServer, type DevServer } from '../../src/embedded/dev-server.ts';
import { largeMessages } from '../../src/temporal-connection.ts';
import { closeAfterFile } from './cleanup.ts';
import { exportHistories } from './history.ts';
import { endOnSignals } from './processes.ts';
import { temporaryFolder } from './temporary-folder.ts';

export interface TestTemporal {
  address: string;
  namespace: string;
  connection: Connection;
  client: Client;
  /** of this test file alone */
  taskQueue: string;
  /** A workflow id that nobody has used: `<name>-<random>`. */
  id(name: string): string;
}

/** A server of one test, to be killed and started again on its file, at the same address. */
export interface OwnServer extends TestTemporal {
  /** of its Web UI */
  uiUrl: string;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** After `kill`. */
  restart(): Promise<void>;
  /** Keeps the histories for the replay at the end of the run, and ends it. Also done after the file. */
  stop(): Promise<void>;
}

/** What the servers of tests have beyond the embedded default: days may pass in a moment. */
export const testDynamicConfig = { 'frontend.WorkflowTimeSkippingEnabled': 'true' };

/** Connects this test file. Call it once, at the top of the file; what it opened is closed after the file. */
export async function openTemporal(): Promise<TestTemporal> {
  const address = process.env['COUNTERSIGN_TEST_ADDRESS'];
  if (address) {
    const connected = await connect(address, process.env['COUNTERSIGN_TEST_NAMESPACE'] ?? 'default');
    closeAfterFile(() => connected.connection.close());
    return connected;
  }
  return ownServer();
}

/**
 * Starts a server of its own, whatever else runs. Without `keepHistories` its runs are not replayed at the
 * end: for types that are in a test's own bundle only.
 */
export async function ownServer({ keepHistories = true } = {}): Promise<OwnServer> {
  endOnSignals();
  const cli = await findTemporalCli();
  const folder = temporaryFolder();
  let server: DevServer | undefined = await startDevServer({ cli, folder, dynamicConfig: testDynamicConfig });
  const { port, uiPort, uiUrl } = server;
  const connected = await connect(server.address, server.namespace);

  const restart = async (): Promise<void> => {
    server = await startDevServer({ cli, folder, port, uiPort, dynamicConfig: testDynamicConfig });
  };
  const stop = async (): Promise<void> => {
    const exportFolder = process.env['COUNTERSIGN_TEST_HISTORIES'];
    if (exportFolder && keepHistories) {
      // A test that ended with its server killed still made histories, and they are in the file.
      if (!server) await restart();
      await exportHistories(connected.client, exportFolder);
    }
    await connected.connection.close();
    await server?.stop();
    server = undefined;
  };
  let stopped: Promise<void> | undefined;
  const stopOnce = (): Promise<void> => (stopped ??= stop());
  closeAfterFile(stopOnce);

  return {
    ...connected,
    uiUrl,
    async kill() {
      if (!server) throw new Error('the server was killed already: restart() it first');
      await server.kill();
      server = undefined;
    },
    restart,
    stop: stopOnce,
  };
}

async function connect(address: string, namespace: string): Promise<TestTemporal> {
  const connection = await Connection.connect({ address, channelArgs: largeMessages });
  const unique = (name: string): string => `${name}-${randomBytes(6).toString('hex')}`;
  return {
    address,
    namespace,
    connection,
    client: new Client({ connection, namespace }),
    taskQueue: unique(basename(process.argv[1] ?? 'test', '.test.ts')),
    id: unique,
  };
}
