// Request headers with a grammar: Idempotency-Key (draft-ietf-httpapi-idempotency-key-header), If-Match (RFC
// 9110) with a payload hash for its ETag, and Last-Event-ID (WHATWG HTML).
import { isPayloadHash } from '../core/hash.ts';
import { ApiProblem } from './problem.ts';

/** Characters; longer than any UUID, hash or URL that people take for it, short enough for a log line. */
const maxKeyLength = 255;

/** Of an Item (RFC 8941 §3.1.2). The draft defines none, and what is not known of an Item is passed over. */
const itemParameters = /(?: *; *[a-z*][a-z0-9_.*-]*(?:=(?:"(?:[^"\\]|\\.)*"|[^\s";,]+))?)*$/;
const quotedKey = new RegExp(/^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"/.source + itemParameters.source);

/**
 * The draft's form is a quoted string (RFC 8941 sf-string), and most clients send it bare: both name the
 * same key. Undefined without the header.
 */
export function readIdempotencyKey(header: string | undefined): string | undefined {
  if (header === undefined) return undefined;
  const text = header.trim();
  const quoted = quotedKey.exec(text)?.[1];
  const key = quoted?.replace(/\\(["\\])/g, '$1') ?? /^[\x21\x23-\x2b\x2d-\x3a\x3c-\x7e]+$/.exec(text)?.[0];
  if (key === undefined || key === '') {
    throw malformed('Idempotency-Key must be a string of visible ASCII characters, such as "8e03978e-40d5"');
  }
  if (key.length > maxKeyLength) {
    throw malformed(`Idempotency-Key has ${key.length} characters, the limit is ${maxKeyLength}`);
  }
  return key;
}

/** The hash in If-Match; `*` is no hash: it would approve whatever is there. */
export function readIfMatch(header: string | undefined): string | undefined {
  const text = header?.trim();
  if (text === undefined || text === '*') return undefined;
  const hash = /^"(.*)"$/.exec(text)?.[1] ?? text;
  if (!isPayloadHash(hash)) {
    throw malformed('If-Match must be the ETag of the approval: "sha256:" and 64 hex digits, in quotes');
  }
  return hash;
}

/** What the caller says to have seen, from header and body together. */
export function readPayloadHash(ifMatch: string | undefined, inBody: string | undefined): string | undefined {
  const inHeader = readIfMatch(ifMatch);
  if (inHeader !== undefined && inBody !== undefined && inHeader !== inBody) {
    throw malformed(`If-Match has ${inHeader}, payloadHash in the body is ${inBody}; send one of them`);
  }
  return inHeader ?? inBody;
}

/** The `seq` of the last fact that a listener of a run has; undefined for one that comes first. */
export function readLastSeq(header: string | undefined): number | undefined {
  if (header === undefined || header.trim() === '') return undefined;
  const seq = /^(0|[1-9]\d{0,8})$/.exec(header.trim())?.[0];
  if (seq === undefined) throw malformed('Last-Event-ID must be the id of an event of this run: its `seq`');
  return Number(seq);
}

function malformed(detail: string): ApiProblem {
  return new ApiProblem('invalid_request', detail);
}
