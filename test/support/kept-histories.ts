// The histories of an embedded server that a program of ours had started and ended.
import { Client, Connection } from '@temporalio/client';
import { startDevServer } from '../../src/embedded/dev-server.ts';
import { findTemporalCli } from '../../src/embedded/find-temporal-cli.ts';
import { exportHistories } from './history.ts';

/** Hands over what is in the server's folder to the replay at the end of `npm test`. */
export async function keepHistories(folder: string): Promise<void> {
  const exportFolder = process.env['COUNTERSIGN_TEST_HISTORIES'];
  if (!exportFolder) return;
  const server = await startDevServer({ cli: await findTemporalCli(), folder });
  const connection = await Connection.connect({ address: server.address });
  try {
    await exportHistories(new Client({ connection, namespace: server.namespace }), exportFolder);
  } finally {
    await connection.close();
    await server.stop();
  }
}
