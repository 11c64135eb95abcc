// Reads a JSON body: bytes are counted while they come, so that no header can lie about their number, and
// the strict reader sees the text before anything else does.
import type { MiddlewareHandler } from 'hono';
import type { Json } from '../core/json.ts';
import { JsonProblemError, parseStrictJson } from '../core/strict-json.ts';
import type { ApiEnv } from './deps.ts';
import { ApiProblem } from './problem.ts';

/** 512 KiB: a run's input of 256 KiB canonical, written with whitespace and escapes, and an inline spec. */
export const runBodyLimitBytes = 512 * 1024;

/** 512 KiB: Standard Webhooks advises 20 KB; what is mapped out of it may be an input of 256 KiB. */
export const hookBodyLimitBytes = 512 * 1024;

/** The limit of a decision (DESIGN §6), of which the body is the part that the caller writes. */
export const decisionBodyLimitBytes = 16 * 1024;

/** Puts the body where the route's own validator looks for it; an empty body counts as `{}`. */
export function jsonBody(limitBytes: number): MiddlewareHandler<ApiEnv> {
  return async (c, next) => {
    const bytes = await readBytes(c.req.raw, limitBytes);
    if (bytes.length > 0) {
      checkMediaType(c.req.raw.headers, ['application/json']);
      parseBody(bytes);
    }
    const typed = c.req.header('content-type') !== undefined;
    const text = new TextDecoder().decode(bytes);
    // what hono's own readers would have put there; it must not read the stream a second time
    const held = Promise.resolve(text === '' && typed ? '{}' : text);
    Object.assign(c.req.bodyCache, { text: held });
    await next();
  };
}

/** @throws ApiProblem invalid_request, with the place */
export function parseBody(bytes: Uint8Array): Json {
  try {
    return parseStrictJson(bytes);
  } catch (error) {
    if (!(error instanceof JsonProblemError)) throw error;
    const { pointer, line, column, message } = error;
    throw new ApiProblem('invalid_request', `the body is refused: ${message}`, { pointer, line, column });
  }
}

/** @throws ApiProblem unsupported_media_type */
export function checkMediaType(headers: Headers, types: readonly string[]): void {
  const given = headers.get('content-type') ?? '';
  const encoding = headers.get('content-encoding') ?? 'identity';
  const [, type = '', rest = ''] = /^([^;]*)(.*)$/s.exec(given.trim()) ?? [];
  const isUtf8 = /^\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?$/i.test(rest);
  if (!types.includes(type.trim().toLowerCase()) || !isUtf8) {
    const shown = given === '' ? 'none' : `"${given.slice(0, 100)}"`;
    throw new ApiProblem(
      'unsupported_media_type',
      `Content-Type must be ${types.join(' or ')}, got ${shown}`,
    );
  }
  if (encoding.toLowerCase() !== 'identity') {
    throw new ApiProblem(
      'unsupported_media_type',
      `Content-Encoding must be identity, got "${encoding.slice(0, 100)}"`,
    );
  }
}

/** @throws ApiProblem too_large */
export async function readBytes(request: Request, limitBytes: number): Promise<Uint8Array> {
  const announced = Number(request.headers.get('content-length') ?? 0);
  if (announced > limitBytes) throw tooLarge(limitBytes);
  if (request.body === null) return new Uint8Array();
  const chunks: Uint8Array[] = [];
  let length = 0;
  const reader = (request.body as ReadableStream<Uint8Array>).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.byteLength;
    if (length > limitBytes) {
      // not awaited: a sender that goes on sending must not hold the answer back
      reader.cancel().catch(() => undefined);
      throw tooLarge(limitBytes);
    }
    chunks.push(value);
  }
  return Buffer.concat(chunks);
}

function tooLarge(limitBytes: number): ApiProblem {
  return new ApiProblem('too_large', `the body is longer than ${limitBytes} bytes`, { limitBytes });
}
