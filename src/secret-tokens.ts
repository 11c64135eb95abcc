// The API tokens of a secrets file, changed and told. A token has no name of its own: its id says whose it is,
// and one person has two while the new one replaces the old. The first characters of its hash tell them apart.
import { SecretsError, type SecretsFile } from './secrets-file.ts';
import { defaultScopes, type Scope } from './scopes.ts';
import type { TokenKind, TokenRecord } from './tokens.ts';

/** 48 bits: nobody has a million tokens, and from a hash of 256 random bits nothing can be guessed. */
const hashLength = 12;

export interface TokenRow {
  id: string;
  /** the first 12 hex digits of its SHA-256 */
  hash: string;
  name: string;
  kind: TokenKind;
  roles: string[];
  scopes: readonly Scope[];
  createdAt: string;
  expiresAt?: string;
  expired: boolean;
}

export function tokenRow(token: TokenRecord, now: number): TokenRow {
  const { id, name, kind, roles, scopes = defaultScopes, createdAt, expiresAt, sha256 } = token;
  return {
    ...{ id, hash: sha256.slice(0, hashLength), name, kind, roles, scopes, createdAt },
    ...(expiresAt === undefined ? {} : { expiresAt }),
    expired: expiresAt !== undefined && Date.parse(expiresAt) <= now,
  };
}

/**
 * Takes out the one token of `id`, the one with `hash`, or all of them, and gives what it took.
 * @throws SecretsError when there is none, or more than one and none is named
 */
export function revokeTokens(
  file: SecretsFile,
  id: string,
  which: { hash?: string; all?: boolean },
): TokenRecord[] {
  const own = file.tokens.filter((token) => token.id === id);
  const { hash = '', all = false } = which;
  const meant = own.filter(({ sha256 }) => sha256.startsWith(hash));
  const known = own.map(({ sha256 }) => sha256.slice(0, hashLength)).join(', ');
  if (own.length === 0) throw new SecretsError(`there is no token of "${id}": \`countersign tokens list\``);
  if (meant.length === 0)
    throw new SecretsError(`no token of "${id}" has the hash ${hash}; there are: ${known}`);
  if (meant.length > 1 && !all) {
    throw new SecretsError(
      `"${id}" has ${meant.length} tokens (${known}): name one with --hash, or all with --all`,
    );
  }
  file.tokens = file.tokens.filter((token) => !meant.includes(token));
  return meant;
}
