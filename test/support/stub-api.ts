// An HTTP server that answers what a test tells it, and keeps what it was asked.
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { closeAfterFile } from './cleanup.ts';

export interface StubRequest {
  method: string;
  /** with the query */
  path: string;
  headers: IncomingHttpHeaders;
  body: unknown;
}

export interface StubAnswer {
  status?: number;
  body?: unknown;
  headers?: Record<string, string>;
  /** the connection ends without an answer */
  breakOff?: boolean;
}

export interface StubApi {
  url: string;
  requests: StubRequest[];
  /** Default: 200 and `{}`. */
  answer: (request: StubRequest) => StubAnswer;
}

export async function startStubApi(): Promise<StubApi> {
  const stub: StubApi = { url: '', requests: [], answer: () => ({}) };
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      const text = Buffer.concat(chunks).toString();
      const { method = '', url: path = '', headers } = incoming;
      const request = { method, path, headers, body: text === '' ? undefined : JSON.parse(text) };
      stub.requests.push(request);
      const { status = 200, body = {}, headers: more = {}, breakOff } = stub.answer(request);
      if (breakOff === true) return incoming.socket.destroy();
      response.writeHead(status, { 'content-type': 'application/json', ...more });
      response.end(typeof body === 'string' ? body : JSON.stringify(body));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closeAfterFile(async () => {
    server.closeAllConnections();
    server.close();
  });
  stub.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return stub;
}
