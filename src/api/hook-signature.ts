// Standard Webhooks (standardwebhooks.com): HMAC-SHA256 over `<id>.<timestamp>.<body>` of the bytes as they
// came, before anything reads them. On node:crypto and not by the npm library, which has its own clock, parses
// the body itself, and computes SHA-256 in JavaScript.
import { createHmac, timingSafeEqual } from 'node:crypto';

/** 5 minutes, as Standard Webhooks' own libraries take it: clocks differ, and a caught delivery is soon of no use. */
export const toleranceSeconds = 5 * 60;

export interface SignedDelivery {
  id: string;
  /** seconds since the epoch, as sent */
  timestamp: string;
  /** `v1,<base64>`, several with spaces between: a sender that rotates signs with both */
  signature: string;
  body: Uint8Array;
}

/** Undefined: signed with one of the keys, and of now. `stale` is said only of what is truly signed. */
export function signatureProblem(
  { id, timestamp, signature, body }: SignedDelivery,
  keys: readonly Uint8Array[],
  nowMs: number,
): 'invalid' | 'stale' | undefined {
  if (id === '' || !/^\d{1,12}$/.test(timestamp)) return 'invalid';
  const given = signature.split(' ').flatMap((part) => /^v1,(.+)$/.exec(part)?.[1] ?? []);
  // all of them, whatever was found: the time tells nothing of which one it was
  const matches = keys.map((key) => {
    const expected = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64');
    return given.filter((text) => isEqual(text, expected)).length > 0;
  });
  if (!matches.includes(true)) return 'invalid';
  return Math.abs(nowMs - Number(timestamp) * 1000) > toleranceSeconds * 1000 ? 'stale' : undefined;
}

function isEqual(text: string, expected: string): boolean {
  const [a, b] = [Buffer.from(text), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}
