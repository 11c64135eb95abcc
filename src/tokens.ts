// API tokens: who a caller is. A token is shown once, when it is made; what is kept is its SHA-256. It has
// 256 random bits, so a plain hash is enough: there is nothing to guess, and no salt or slow hash helps.
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Scope } from './scopes.ts';

export const tokenKinds = ['person', 'service'] as const;
export type TokenKind = (typeof tokenKinds)[number];

export interface TokenRecord {
  /** whose token it is: the id in decisions and trails. Two tokens may share it while one replaces the other */
  id: string;
  name: string;
  roles: string[];
  kind: TokenKind;
  /** absent: `defaultScopes` */
  scopes?: Scope[] | undefined;
  /** hex SHA-256 of the token */
  sha256: string;
  /** ISO 8601 */
  createdAt: string;
  /** ISO 8601; not valid from then on */
  expiresAt?: string | undefined;
}

/** A new token: `csn_`, so that secret scanners can find a leaked one, and 32 random bytes in base64url. */
export function makeToken(): string {
  return `csn_${randomBytes(32).toString('base64url')}`;
}

/** Hex SHA-256 of a token, as kept in the secrets file. */
export function hashToken(token: string): string {
  return createHash('sha256').update(token, 'utf8').digest('hex');
}

/**
 * The record of a presented token, in time that does not depend on which one matched or how far.
 * `now` in milliseconds since the epoch.
 */
export function findToken(
  tokens: readonly TokenRecord[],
  presented: string,
  now: number = Date.now(),
): TokenRecord | undefined {
  const hash = Buffer.from(hashToken(presented), 'hex');
  let found: TokenRecord | undefined;
  for (const token of tokens) {
    const kept = Buffer.from(token.sha256, 'hex');
    const matches = kept.length === hash.length && timingSafeEqual(kept, hash);
    if (matches && (token.expiresAt === undefined || now < Date.parse(token.expiresAt))) found ??= token;
  }
  return found;
}
