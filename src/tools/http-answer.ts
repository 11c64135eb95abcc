// What an HTTP answer means: it happened, it surely did not, later perhaps, or nobody can know (RFC 9110 §15).
import { freeze, ValueProblemError } from '../core/canonical.ts';
import { decodeUtf8 } from '../core/decode-utf8.ts';
import type { Json } from '../core/json.ts';
import { printable } from '../core/json-value.ts';
import { JsonProblemError, parseStrictJson } from '../core/strict-json.ts';
import { ToolInDoubtError, ToolRefusedError, ToolRetryError } from '../tool.ts';
import type { HttpAnswer } from './http-request.ts';
import type { Redactor } from './redactor.ts';
import { retryAfterMs } from './retry-after.ts';

/** The output of the http tool. */
export interface HttpOutput {
  status: number;
  headers: Record<string, string>;
  /** JSON, or text; null for none, and where `bodyProblem` says why it was not kept */
  body: Json;
  bodyProblem?: string;
}

export interface HttpExchange {
  /** `POST https://api.example.com/refunds`: no query, which may hold what belongs in no log */
  what: string;
  /** GET and HEAD: nothing happens by them */
  isSafe: boolean;
  targetTakesKey: boolean;
  maxResponseBytes: number;
}

/** What later steps and people use; the rest of the headers is of the connection, or a target's own cookies. */
const keptHeaders = [
  ...['content-type', 'etag', 'last-modified', 'location'],
  ...['request-id', 'x-request-id', 'idempotent-replayed'],
];

/** "Not now" rather than "no". */
const passing = [408, 409, 425, 429];

/** @throws ToolRefusedError, ToolRetryError or ToolInDoubtError for every answer but 2xx (and 304 to GET, HEAD) */
export function readAnswer(exchange: HttpExchange, answer: HttpAnswer, redact: Redactor): HttpOutput {
  const { status } = answer;
  const isFresh = exchange.isSafe && status === 304;
  if ((status >= 200 && status < 300) || isFresh) {
    const mayAsk = exchange.isSafe || exchange.targetTakesKey;
    // A second attempt brings the whole answer, where it is harmless; else what the status says is enough.
    if (answer.incomplete === 'cut' && mayAsk) {
      throw new ToolRetryError(`${exchange.what} answered ${status}, and its body broke off`);
    }
    return output(exchange, answer, redact);
  }
  throw failureOf(exchange, answer, redact);
}

function failureOf(exchange: HttpExchange, answer: HttpAnswer, redact: Redactor): Error {
  const { status, headers } = answer;
  const told = `${exchange.what} answered ${status}${excerpt(answer, redact)}`;
  if (status >= 300 && status < 400) {
    const to = headers.location === undefined ? '' : ` (to ${printable(redact.text(headers.location), 200)})`;
    const redirected = `${exchange.what} answered ${status}${to}: redirects are not followed; call the final address`;
    // 307 and 308 ask for the same request elsewhere, so it was not carried out here. The others may be how
    // a target says that it was.
    const isClear = exchange.isSafe || status === 307 || status === 308;
    return isClear ? new ToolRefusedError(redirected) : new ToolInDoubtError(redirected);
  }
  if (passing.includes(status) || status >= 500) {
    // 425 and 429 turn a request away unread. 409 does without a key; with one it may also mean that an
    // earlier attempt is still under way.
    const isClear = status === 425 || status === 429 || (status === 409 && !exchange.targetTakesKey);
    const after = retryAfterMs(headers['retry-after'], Date.now());
    return new ToolRetryError(told, { clear: isClear, retryAfterMs: after });
  }
  return status >= 400 ? new ToolRefusedError(told) : new Error(told);
}

/** The effect happened: whatever is wrong with the body is told beside the status, and fails nothing. */
function output(exchange: HttpExchange, answer: HttpAnswer, redact: Redactor): HttpOutput {
  const { status, headers } = answer;
  const kept = keptHeaders.flatMap((name) => {
    const value = headers[name];
    return typeof value === 'string' ? [[name, redact.text(value)]] : [];
  });
  const whole = { status, headers: Object.fromEntries(kept) as Record<string, string> };
  const result = { ...whole, ...readBody(exchange, answer, redact) };
  try {
    freeze(result);
    return result;
  } catch (error) {
    if (!(error instanceof ValueProblemError)) throw error;
    return { ...whole, body: null, bodyProblem: `not kept: ${error.message}` };
  }
}

function readBody(
  { maxResponseBytes }: HttpExchange,
  { headers, body, incomplete }: HttpAnswer,
  redact: Redactor,
): { body: Json; bodyProblem?: string } {
  const notKept = (why: string) => ({ body: null, bodyProblem: `not kept: ${why}` });
  // Half a JSON text is none, and a cut could leave half a secret, which nothing would find.
  if (incomplete === 'too large') return notKept(`it is over ${maxResponseBytes} bytes`);
  if (incomplete === 'cut') return notKept('the connection ended in it');
  if (body.length === 0) return { body: null };
  const encoding = headers['content-encoding'] ?? 'identity';
  if (encoding !== 'identity')
    return notKept(`it is ${printable(redact.text(encoding), 40)}, which was not asked for`);
  const decoded = decodeUtf8(body);
  if (!('text' in decoded)) return notKept('it is not UTF-8 text');
  if (!/^[^;]*[/+]json\s*(?:;|$)/i.test(headers['content-type'] ?? ''))
    return { body: redact.text(decoded.text) };
  const read = readJson(decoded.text);
  if ('value' in read) return { body: redact.json(read.value) };
  // Such as an integer beyond 2^53: as text it is exact. What is wrong is told of the text without secrets,
  // since it quotes the place, and half a secret is found by nobody.
  const text = redact.text(decoded.text);
  const again = text === decoded.text ? read : readJson(text);
  return {
    body: text,
    bodyProblem: `kept as text: ${'problem' in again ? again.problem : 'it is not JSON'}`,
  };
}

function readJson(text: string): { value: Json } | { problem: string } {
  try {
    return { value: parseStrictJson(text) };
  } catch (error) {
    if (!(error instanceof JsonProblemError)) throw error;
    return { problem: error.message };
  }
}

/** What a target says to a refusal, for the person who reads it. */
function excerpt({ body, incomplete }: HttpAnswer, redact: Redactor): string {
  const decoded = incomplete === undefined ? decodeUtf8(body) : undefined;
  if (decoded === undefined || !('text' in decoded) || decoded.text.trim() === '') return '';
  return `: ${printable(redact.text(decoded.text.trim()), 300)}`;
}
