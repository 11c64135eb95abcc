// The dev server's namespace as countersign wants it. `start-dev` has no flag for the retention (it is one
// day), so it is set when the server answers; it stays in the database file.
import { Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import { ensureNamespaceReady } from '../temporal-setup.ts';

// An approval may wait for weeks, and its trail is looked up later than that.
const retentionMs = 30 * 24 * 3600 * 1000;

/** Waits until the server at `address` answers for the namespace, and sets its retention to 30 days. */
export async function prepareNamespace(
  address: string,
  namespace: string,
  options: { timeoutMs: number; signal: AbortSignal },
): Promise<void> {
  const connection = Connection.lazy({
    address,
    // no retries of the client's own, and quick looks: the server is on this machine and just starting
    interceptors: [],
    channelArgs: { 'grpc.initial_reconnect_backoff_ms': 100, 'grpc.max_reconnect_backoff_ms': 100 },
  });
  try {
    await ensureNamespaceReady(connection, namespace, options);
    await setRetention(connection, namespace);
  } finally {
    await connection.close();
  }
}

async function setRetention({ workflowService }: Connection, namespace: string): Promise<void> {
  const { config } = await workflowService.describeNamespace({ namespace });
  if (Number(config?.workflowExecutionRetentionTtl?.seconds) * 1000 === retentionMs) return;
  await workflowService.updateNamespace({
    namespace,
    config: { workflowExecutionRetentionTtl: msToTs(retentionMs) },
  });
}
