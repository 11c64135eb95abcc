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
  /** when the last piece in each direction is due */
  due: Map<Socket, number>;
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
    // behind what is still on its way, or the order would change
    const delay = typeof mode === 'object' && 'delayMs' in mode ? mode.delayMs : 0;
    const now = performance.now();
    const due = Math.max(now + delay, pair.due.get(to) ?? 0);
    if (delay > 0) hits += 1;
    if (due <= now && pair.kept.every((kept) => kept.to !== to)) {
      to.write(piece);
      return;
    }
    pair.due.set(to, due);
    setTimeout(() => {
      if (to.writable) to.write(piece);
    }, due - now);
  };

  /** One side has closed: the other is closed behind what is still on its way to it. */
  const finish = (pair: Pair, other: Socket): void => {
    if (pair.kept.some(({ to }) => to === other)) return; // heal() does
    setTimeout(() => other.end(), (pair.due.get(other) ?? 0) - performance.now());
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
    const pair: Pair = { client, upstream, kept: [], due: new Map() };
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
