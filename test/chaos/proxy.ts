// A TCP proxy between two processes: it can cut what is open and refuse what is new, let only one direction
// through, or be slow. It knows nothing of what it carries, and counts what it did to whom, so that a fault that
// met nobody is seen.
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface TcpProxy {
  port: number;
  /** where it leads from now on */
  setUpstream(port: number): void;
  /** Ends every connection and refuses new ones until `heal`. */
  cut(): void;
  /** What this side sends is kept back until `heal`; the other side still gets through. */
  oneWay(silenced: 'client' | 'upstream'): void;
  /** Each piece comes so many milliseconds later, until `heal`. */
  slow(ms: number): void;
  /** As it was. With `drop`, connections with something kept back are ended, and that is lost. */
  heal(drop?: boolean): void;
  /** connections and pieces that met with a fault since it was opened */
  hits(): number;
  close(): Promise<void>;
}

interface Pair {
  client: Socket;
  upstream: Socket;
  kept: { to: Socket; piece: Buffer }[];
  /** on their way, by whom they go to */
  queues: Map<Socket, Due[]>;
  /** to be closed behind what is on its way to them */
  finished: Set<Socket>;
}

interface Due {
  piece: Buffer;
  /** of performance.now() */
  due: number;
}

const host = '127.0.0.1';

export async function openProxy(upstreamPort: number): Promise<TcpProxy> {
  let leadsTo = upstreamPort;
  let mode: 'open' | 'cut' | { silenced: 'client' | 'upstream' } | { delayMs: number } = 'open';
  let hits = 0;
  const pairs = new Set<Pair>();

  const end = (pair: Pair): void => {
    pairs.delete(pair);
    pair.client.destroy();
    pair.upstream.destroy();
  };
  const pass = (pair: Pair, from: 'client' | 'upstream', piece: Buffer): void => {
    const to = from === 'client' ? pair.upstream : pair.client;
    if (typeof mode === 'object' && 'silenced' in mode && mode.silenced === from) {
      hits += 1;
      pair.kept.push({ to, piece });
      return;
    }
    const delay = typeof mode === 'object' && 'delayMs' in mode ? mode.delayMs : 0;
    if (delay > 0) hits += 1;
    const queue = pair.queues.get(to) ?? [];
    pair.queues.set(to, queue);
    // behind what is still on its way, or the order would change
    queue.push({ piece, due: Math.max(performance.now() + delay, queue.at(-1)?.due ?? 0) });
    if (queue.length === 1) deliver(pair, to, queue);
  };
  const deliver = (pair: Pair, to: Socket, queue: Due[]): void => {
    while (queue[0] !== undefined && queue[0].due <= performance.now()) {
      if (to.writable) to.write(queue[0].piece);
      queue.shift();
    }
    if (queue[0] !== undefined) setTimeout(deliver, queue[0].due - performance.now(), pair, to, queue);
    else if (pair.finished.has(to)) to.end();
  };

  /** One side has closed: the other is closed behind what is still on its way to it. */
  const finish = (pair: Pair, other: Socket): void => {
    if (pair.kept.some(({ to }) => to === other)) return; // heal() does
    pair.finished.add(other);
    if ((pair.queues.get(other) ?? []).length === 0) other.end();
    if (pair.client.destroyed && pair.upstream.destroyed) pairs.delete(pair);
  };

  const server = createServer((client) => {
    if (mode === 'cut') {
      hits += 1;
      client.destroy();
      return;
    }
    client.setNoDelay(true);
    const upstream = connect({ host, port: leadsTo, noDelay: true });
    const pair: Pair = { client, upstream, kept: [], queues: new Map(), finished: new Set() };
    pairs.add(pair);
    client.on('data', (piece: Buffer) => pass(pair, 'client', piece));
    upstream.on('data', (piece: Buffer) => pass(pair, 'upstream', piece));
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      socket.on('error', () => undefined);
      socket.once('close', () => finish(pair, other));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));

  return {
    port: (server.address() as AddressInfo).port,
    setUpstream(port) {
      leadsTo = port;
    },
    cut() {
      mode = 'cut';
      hits += pairs.size;
      for (const pair of [...pairs]) end(pair);
    },
    oneWay(silenced) {
      mode = { silenced };
    },
    slow(ms) {
      mode = { delayMs: ms };
    },
    heal(drop = false) {
      mode = 'open';
      for (const pair of [...pairs]) {
        if (drop && pair.kept.length > 0) end(pair);
        for (const { to, piece } of pair.kept.splice(0)) if (to.writable) to.write(piece);
        if (pair.client.destroyed) finish(pair, pair.upstream);
        if (pair.upstream.destroyed) finish(pair, pair.client);
      }
    },
    hits: () => hits,
    async close() {
      for (const pair of [...pairs]) end(pair);
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
