// Ports are asked from the system. Between the answer and its use another process can take the port, so a
// caller must be ready to ask again.
import { once } from 'node:events';
import { createServer } from 'node:net';

/** A TCP port that is free on `host` at this moment, and not `other`. */
export async function freePort(host: string, other?: number): Promise<number> {
  for (;;) {
    const server = createServer().listen(0, host);
    await once(server, 'listening');
    const address = server.address();
    server.close();
    await once(server, 'close');
    if (typeof address === 'object' && address !== null && address.port !== other) return address.port;
  }
}

/** Whether `port` can be listened on. */
export async function portIsFree(host: string, port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port, host);
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
