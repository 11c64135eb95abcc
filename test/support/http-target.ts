// Targets of the http tool on loopback, and one call of it.
import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import type { TestContext } from 'node:test';
import type { Json } from '../../src/core/json.ts';
import {
  ToolInDoubtError,
  ToolRefusedError,
  ToolRetryError,
  type Tool,
  type ToolContext,
} from '../../src/tool.ts';
import type { HttpOutput } from '../../src/tools/http-answer.ts';
import type { ResolvedAddress } from '../../src/tools/http-request.ts';
import { httpTool, type HttpToolOptions } from '../../src/tools/http-tool.ts';
import { position, root } from './activity.ts';

export interface Received {
  method: string;
  url: string;
  headers: IncomingMessage['headers'];
  body: string;
}

export interface Target {
  host: string;
  port: number;
  received: Received[];
}

export type Answer = (response: ServerResponse, request: IncomingMessage) => void;

export const idempotencyKey = `${root}:${position}`;

/** A server on 127.0.0.1 that notes what it gets. */
export async function target(t: TestContext, answer: Answer = json({ ok: true })): Promise<Target> {
  const received: Received[] = [];
  const listener: RequestListener = (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url = '', headers } = request;
      received.push({ method, url, headers, body: Buffer.concat(chunks).toString('utf8') });
      answer(response, request);
    });
  };
  const server = createServer(listener);
  t.after(() => server.closeAllConnections());
  const port = await listen(t, server);
  return { host: `127.0.0.1:${port}`, port, received };
}

export async function listen(t: TestContext, server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

export function json(body: unknown, status = 200, headers: Record<string, string> = {}): Answer {
  return text(JSON.stringify(body), status, { 'content-type': 'application/json', ...headers });
}

export function text(body: string | Buffer, status = 200, headers: Record<string, string> = {}): Answer {
  return (response) => {
    response.writeHead(status, headers);
    response.end(body);
  };
}

/** A tool that may call `host` on loopback. */
export function toolFor(host: string, more: Partial<HttpToolOptions> = {}): Tool {
  return httpTool({ allowHosts: [host], allowPrivate: ['127.0.0.1'], env: {}, ...more });
}

export interface Call {
  method?: string;
  url: string;
  headers?: Record<string, string>;
  body?: Json;
}

/** Freezes the arguments as freezeCase does, and runs the tool once. */
export async function call(
  tool: Tool,
  args: Call,
  signal = new AbortController().signal,
): Promise<HttpOutput> {
  const frozen = tool.arguments.parse({ method: 'POST', ...args });
  const context: ToolContext = {
    idempotencyKey,
    signal,
    attempt: 1,
    log: () => undefined,
    heartbeat: () => undefined,
  };
  return (await tool.run(context, frozen)) as HttpOutput;
}

/** How a call failed, in a word, and its message. */
export async function failed(running: Promise<unknown>): Promise<[kind: string, message: string]> {
  try {
    await running;
  } catch (error) {
    if (error instanceof ToolRefusedError) return ['refused', error.message];
    if (error instanceof ToolInDoubtError) return ['in doubt', error.message];
    if (error instanceof ToolRetryError)
      return [error.clear ? 'clear retry' : 'unclear retry', error.message];
    return ['unclear', (error as Error).message];
  }
  assert.fail('the call did not fail');
}

export function freezeProblems(tool: Tool, args: unknown): string {
  const parsed = tool.arguments.safeParse(args);
  assert.ok(!parsed.success, `it was frozen: ${JSON.stringify(args)}`);
  return parsed.error.issues.map(({ message }) => message).join('; ');
}

/** Answers for a fake name service, in order; one question more fails. */
export function resolver(answers: ResolvedAddress[][]) {
  const asked: string[] = [];
  const resolve = (hostname: string): Promise<readonly ResolvedAddress[]> => {
    asked.push(hostname);
    const answer = answers.shift();
    return answer === undefined ? Promise.reject(new Error('asked too often')) : Promise.resolve(answer);
  };
  return { resolve, asked };
}

export const loopback: ResolvedAddress = { address: '127.0.0.1', family: 4 };
export const publicAddress: ResolvedAddress = { address: '203.0.114.7', family: 4 };
