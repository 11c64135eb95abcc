// Sends one HTTP request, to addresses that were checked before: the name is not resolved again, so it cannot
// come to mean another machine in between. No redirects, no connection reuse, no decompression, a bounded body.
import {
  request as requestPlain,
  type ClientRequest,
  type IncomingMessage,
  type RequestOptions,
} from 'node:http';
import { request as requestTls } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { hostAddress, portOf } from './host-guard.ts';

/** As node:dns gives it. */
export interface ResolvedAddress {
  address: string;
  family: number;
}

export interface HttpRequest {
  method: string;
  url: URL;
  headers: Record<string, string>;
  body?: string;
  /** where to connect to; for a host that is an address itself: that one */
  addresses: readonly ResolvedAddress[];
  signal: AbortSignal;
  maxResponseBytes: number;
}

export interface HttpAnswer {
  status: number;
  headers: IncomingMessage['headers'];
  body: Buffer;
  /** `body` is not all of it: over the limit, or cut by the target or a time-out */
  incomplete?: 'too large' | 'cut';
}

/** The connection never stood: the target has not seen a byte of the request. */
export class NotSentError extends Error {
  override readonly name = 'NotSentError';
}

/** @throws NotSentError; or Error when the request may have been received and no answer came */
export async function sendRequest(call: HttpRequest): Promise<HttpAnswer> {
  const what = `${call.method} ${call.url.host}`;
  const connection = { stands: false };
  try {
    const { response, reading } = await firstResponse(call, connection);
    return { status: response.statusCode ?? 0, headers: response.headers, ...(await reading) };
  } catch (error) {
    const problem = `${what}: ${reasonOf(error as Error)}`;
    if (!connection.stands) throw new NotSentError(`${problem}; nothing was sent`);
    throw new Error(`${problem}, after the request was sent`);
  }
}

interface Response {
  response: IncomingMessage;
  /** begun at once: an event of the body that nobody listens to would be lost, or end the process */
  reading: ReturnType<typeof readBody>;
}

function firstResponse(call: HttpRequest, connection: { stands: boolean }): Promise<Response> {
  const isTls = call.url.protocol === 'https:';
  return new Promise((resolve, reject) => {
    const request = openRequest(call, isTls);
    request.on('socket', (socket) => {
      // Over TLS nothing is written before the certificate was found good.
      socket.once(isTls ? 'secureConnect' : 'connect', () => (connection.stands = true));
    });
    request.on('response', (response) => {
      resolve({ response, reading: readBody(response, call.maxResponseBytes) });
    });
    request.on('error', reject);
    // such as after a 101, which nobody asked for
    request.on('close', () => reject(new Error('the connection was closed without an answer')));
    request.end(call.body);
  });
}

function openRequest(call: HttpRequest, isTls: boolean): ClientRequest {
  const { method, url, headers, body, addresses, signal } = call;
  const host = hostAddress(url);
  const options: RequestOptions & { servername?: string } = {
    method,
    host,
    port: portOf(url),
    path: `${url.pathname}${url.search}`,
    headers: body === undefined ? headers : { ...headers, 'content-length': Buffer.byteLength(body) },
    agent: false,
    lookup: pinned(addresses),
    signal,
  };
  if (!isTls) return requestPlain(options);
  // The certificate is checked against the name, not against the address that was connected to.
  return requestTls({ ...options, servername: isIP(host) === 0 ? host : '' });
}

function pinned(addresses: readonly ResolvedAddress[]): LookupFunction {
  return (_hostname, { all }, callback) => {
    const [first] = addresses;
    if (first === undefined) callback(new Error('no address'), '', 0);
    else if (all === true) callback(null, [...addresses]);
    else callback(null, first.address, first.family);
  };
}

function readBody(
  response: IncomingMessage,
  limit: number,
): Promise<Pick<HttpAnswer, 'body' | 'incomplete'>> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    // The status stands whatever becomes of the body, so a body never fails.
    const end = (incomplete?: HttpAnswer['incomplete']) => {
      resolve({ body: Buffer.concat(chunks), ...(incomplete === undefined ? {} : { incomplete }) });
    };
    response.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= limit) return void chunks.push(chunk);
      end('too large');
      response.destroy();
    });
    response.on('end', () => end(response.complete ? undefined : 'cut'));
    response.on('error', () => end('cut'));
    response.on('close', () => end('cut'));
  });
}

/** Several addresses give one error with the single ones in it, and an empty message. */
function reasonOf(error: Error): string {
  if (error.name === 'AbortError') return 'the time was up, or the run or the worker stopped';
  const errors = error instanceof AggregateError ? (error.errors as Error[]) : [error];
  return errors.map(({ message }) => message).join('; ');
}
