// Where Temporal is: TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE and the rest of the environment and the profile
// file that every Temporal tool reads, or the address of an embedded server. Nothing here waits for a server.
import { Connection } from '@temporalio/client';
import { loadClientConnectConfig, type ClientConnectConfig } from '@temporalio/envconfig';
import type { NativeConnection } from '@temporalio/worker';

export interface TemporalTarget {
  /**
   * host:port of an embedded server: without TLS and keys, whatever the environment says of another one.
   * Default: as the environment says, else localhost:7233.
   */
  address?: string;
  /** Default: `default` with an address; else as the environment says, else `default`. */
  namespace?: string;
  /** Default: the environment of this process. */
  env?: NodeJS.ProcessEnv;
}

// A client that comes back as soon as the server does: gRPC's own waits grow from 1 s to 2 min.
const reconnect = { 'grpc.initial_reconnect_backoff_ms': 100, 'grpc.max_reconnect_backoff_ms': 1000 };

/**
 * gRPC's own limit of 4 MB is two of the largest signals that anyone may send: a page of such a history
 * could not be read any more. A whole history is at most 50 MiB. (The SDK means to set 128 MB, under a name
 * that gRPC does not know.)
 */
export const largeMessages = { 'grpc.max_receive_message_length': 128 * 1024 * 1024 };

/**
 * A connection for clients, such as that of the `Client` for `createClient`: one that reads the largest
 * histories there are, and is back as soon as the server is. It connects with the first call, so an API can start before Temporal; calls
 * have no deadline of their own: give each one with `connection.withDeadline`.
 */
export function connectTemporal(target: TemporalTarget = {}): { connection: Connection; namespace: string } {
  const { connectionOptions, namespace } = resolveTarget(target);
  const { address, apiKey, tls, metadata } = connectionOptions;
  const connection = Connection.lazy({
    ...(address === undefined ? {} : { address }),
    ...(apiKey === undefined ? {} : { apiKey }),
    ...(tls === undefined ? {} : { tls }),
    ...(metadata === undefined ? {} : { metadata }),
    channelArgs: { ...reconnect, ...largeMessages },
  });
  return { connection, namespace };
}

/** A connection for workers. @throws TransportError when no server answers */
export async function connectWorker(
  target: TemporalTarget = {},
): Promise<{ connection: NativeConnection; namespace: string }> {
  const { connectionOptions, namespace } = resolveTarget(target);
  // the native SDK core is 30 MB of code that an API process never needs
  const { NativeConnection } = await import('@temporalio/worker');
  return { connection: await NativeConnection.connect(connectionOptions), namespace };
}

/** host:port as it would be connected to, for messages. */
export function temporalAddress(target: TemporalTarget = {}): string {
  return resolveTarget(target).connectionOptions.address ?? 'localhost:7233';
}

function resolveTarget(target: TemporalTarget): Required<ClientConnectConfig> {
  const { address, env } = target;
  const { connectionOptions, namespace }: ClientConnectConfig =
    address === undefined
      ? loadClientConnectConfig(env === undefined ? {} : { overrideEnvVars: definedOnly(env) })
      : { connectionOptions: { address } };
  return { connectionOptions, namespace: target.namespace ?? namespace ?? 'default' };
}

function definedOnly(env: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter((entry): entry is [string, string] => !!entry[1]));
}
