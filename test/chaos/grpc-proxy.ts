// A proxy that understands HTTP/2 as far as gRPC needs it, so that single calls can be held: a list answered
// late, signals that overtake each other, a worker's answer that waits until something else has happened.
import {
  connect,
  constants,
  createServer,
  type ClientHttp2Session,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo } from 'node:net';

/** Called with a method's name, such as `SignalWorkflowExecution`; what it returns is waited for. */
export type GrpcHook = (method: string) => Promise<void> | undefined;

export interface GrpcProxy {
  port: number;
  /** before a call is passed on */
  onCall: GrpcHook | undefined;
  /** before its answer is passed back */
  onAnswer: GrpcHook | undefined;
  close(): Promise<void>;
}

const host = '127.0.0.1';

export async function openGrpcProxy(upstreamPort: () => number): Promise<GrpcProxy> {
  const upstreams = new Map<ServerHttp2Session, ClientHttp2Session>();
  const server = createServer();
  const proxy: GrpcProxy = {
    port: 0,
    onCall: undefined,
    onAnswer: undefined,
    async close() {
      for (const [session, upstream] of upstreams) {
        session.destroy();
        upstream.destroy();
      }
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };

  // one upstream connection each: the end of one is the end of the other, as if there were no proxy
  server.on('session', (session) => {
    const upstream = connect(`http://${host}:${upstreamPort()}`);
    upstreams.set(session, upstream);
    upstream.on('error', () => undefined);
    session.on('error', () => undefined);
    upstream.once('close', () => session.destroy());
    session.once('close', () => {
      upstreams.delete(session);
      upstream.destroy();
    });
  });
  server.on('stream', (stream, headers) => {
    stream.on('error', () => undefined);
    const upstream =
      stream.session === undefined ? undefined : upstreams.get(stream.session as ServerHttp2Session);
    if (upstream === undefined) stream.close(constants.NGHTTP2_REFUSED_STREAM);
    else void pass(proxy, upstream, stream, headers).catch(() => stream.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  proxy.port = (server.address() as AddressInfo).port;
  return proxy;
}

async function pass(
  proxy: GrpcProxy,
  upstream: ClientHttp2Session,
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
): Promise<void> {
  const method = headers[':path']?.split('/').at(-1) ?? '';
  const held = proxy.onCall?.(method);
  if (held !== undefined) await held;
  if (stream.destroyed || upstream.destroyed) {
    stream.close(constants.NGHTTP2_CANCEL);
    return;
  }
  const call = upstream.request(headers);
  call.on('error', () => undefined);
  stream.pipe(call);
  let trailers: IncomingHttpHeaders = {};
  call.on('trailers', (got) => (trailers = got));
  stream.once('wantTrailers', () => stream.sendTrailers(withoutStatus(trailers)));
  stream.once('close', () => call.close(stream.rstCode));
  call.once('close', () => {
    if (!stream.closed && call.rstCode !== constants.NGHTTP2_NO_ERROR) stream.close(call.rstCode);
  });
  const [answer, isLast] = await new Promise<[IncomingHttpHeaders, boolean]>((resolve, reject) => {
    call.once('response', (got, flags) => {
      resolve([got, (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0]);
    });
    call.once('close', () => reject(new Error('it ended without an answer')));
  });
  const later = proxy.onAnswer?.(method);
  if (later !== undefined) await later;
  if (stream.destroyed || stream.closed) return;
  stream.respond(answer, isLast ? { endStream: true } : { waitForTrailers: true });
  if (isLast) call.resume();
  else call.pipe(stream);
}

function withoutStatus(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !name.startsWith(':')));
}
