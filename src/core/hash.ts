// Hashes of what is approved. A payload hash is `sha256:<hex>` over the UTF-8 bytes of the canonical
// text; whoever has the payload can check it with any RFC 8785 library and `sha256sum`.
import { createHash } from 'node:crypto';
import { freeze } from './canonical.ts';
import type { Json } from './json.ts';

/** SHA-256 of the UTF-8 bytes of `text`, 64 hex digits. */
export function sha256Hex(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}

/** `sha256:<hex>` of a text. */
export function hashText(text: string): string {
  return `sha256:${sha256Hex(text)}`;
}

/** The hash of a payload, and the payload as the hash knows it: go on with that one only. @throws ValueProblemError */
export function hashPayload(payload: unknown): { hash: string; payload: Json } {
  const frozen = freeze(payload);
  return { hash: hashText(frozen.text), payload: frozen.value };
}

export function isPayloadHash(text: unknown): text is string {
  return typeof text === 'string' && /^sha256:[0-9a-f]{64}$/.test(text);
}

/** The first 12 hex digits, for people to compare; never compared by code. */
export function shortHash(hash: string): string {
  return hash.replace(/^sha256:/, '').slice(0, 12);
}

/**
 * An idempotency key for a target that takes only short ones: base64url of its SHA-256, which is
 * 43 characters, all 256 bits.
 */
export function shortKey(key: string): string {
  return createHash('sha256').update(key, 'utf8').digest('base64url').slice(0, 43);
}
