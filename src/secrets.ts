// The deployment's secrets file as a running process sees it: API tokens (only their hashes), the keys that sign
// decisions, the keys that make grants. How keys follow each other is in secret-keys.ts.
import { statSync } from 'node:fs';
import { link, rm } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { GrantKey } from './core/grant.ts';
import type { ProofKey, SigningKey } from './core/proof.ts';
import { makePrivateFolder } from './embedded/private-folder.ts';
import { grantKeysAt, newGrantKey, newSigningKey, proofKeysOf, signingKeyAt } from './secret-keys.ts';
import { editSecretsFile } from './secrets-edit.ts';
import { hasCode, readSecretsFile, writeBeside, type SecretsFile } from './secrets-file.ts';
import { defaultScopes, scopes, type Scope } from './scopes.ts';
import { hashToken, makeToken, type TokenKind, type TokenRecord } from './tokens.ts';

/** The file as it is now: each call sees a change within a second of it, `proofKeys` and `grantKeys` at once. */
export interface Secrets {
  path: string;
  tokens(): readonly TokenRecord[];
  /** @throws SecretsError when no key may sign now */
  signingKey(): SigningKey;
  /** What another process on this file has signed with is in here: it saw the key in the file before. */
  proofKeys(): readonly ProofKey[];
  /** the one that makes grants now first */
  grantKeys(): readonly GrantKey[];
}

export interface OpenSecretsOptions {
  path: string;
  /** Make the file when it is not there, with one admin token. */
  create: boolean;
  /** Told when a changed file cannot be used; then the last good one stays in force. */
  warn?: (message: string) => void;
}

export interface NewToken {
  id: string;
  name: string;
  roles: string[];
  /** Default `person`. */
  kind?: TokenKind;
  /** Default: start, read and decide. */
  scopes?: Scope[];
  /** ISO 8601 */
  expiresAt?: string;
}

// A look at the file costs 10 µs, a decision a hundred times that; once a second is never felt.
const lookEveryMs = 1000;

/** @throws SecretsError when the file is missing (and not to be made), readable by others, or not valid */
export async function openSecrets(
  options: OpenSecretsOptions,
): Promise<{ secrets: Secrets; createdToken?: { id: string; token: string } }> {
  const path = resolve(options.path);
  const createdToken = options.create ? await createSecretsFile(path) : undefined;
  const current = watchedFile(path, options.warn ?? (() => undefined));
  const secrets: Secrets = {
    path,
    tokens: () => current().tokens,
    signingKey: () => signingKeyAt(current(), Date.now()),
    proofKeys: () => proofKeysOf(current('look')),
    grantKeys: () => grantKeysAt(current('look'), Date.now()),
  };
  return createdToken === undefined ? { secrets } : { secrets, createdToken };
}

/** Adds a token to an existing file and gives the plain token, which is kept nowhere. @throws SecretsError */
export async function addToken(path: string, token: NewToken): Promise<string> {
  return (await makeTokenIn(path, token)).token;
}

/** As `addToken`, with what the file has of it now. */
export async function makeTokenIn(
  path: string,
  token: NewToken,
  now = Date.now(),
): Promise<{ token: string; record: TokenRecord }> {
  const plain = makeToken();
  const record = tokenRecord(token, plain, now);
  await editSecretsFile(path, (file) => void file.tokens.push(record), now);
  return { token: plain, record };
}

function tokenRecord(token: NewToken, plain: string, now: number): TokenRecord {
  return {
    id: token.id,
    name: token.name,
    roles: token.roles,
    kind: token.kind ?? 'person',
    scopes: token.scopes ?? [...defaultScopes],
    sha256: hashToken(plain),
    createdAt: new Date(now).toISOString(),
    ...(token.expiresAt === undefined ? {} : { expiresAt: token.expiresAt }),
  };
}

// Of several processes that start together one makes the file: `link` fails where the name is taken, and
// the file has its whole content before it has its name.
async function createSecretsFile(path: string): Promise<{ id: string; token: string } | undefined> {
  if (statSync(path, { throwIfNoEntry: false }) !== undefined) return undefined;
  await makePrivateFolder(dirname(path));
  const token = makeToken();
  const admin = { id: 'admin', name: 'Admin', roles: ['admin'], scopes: [...scopes] };
  const temporary = await writeBeside(path, {
    v: 1,
    tokens: [tokenRecord(admin, token, Date.now())],
    signingKeys: [await newSigningKey()],
    grantKeys: [newGrantKey()],
  });
  try {
    await link(temporary, path);
    return { id: 'admin', token };
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return undefined;
    throw error;
  } finally {
    await rm(temporary, { force: true });
  }
}

/** With `look` the file is looked at whenever it was last looked at. */
function watchedFile(path: string, warn: (message: string) => void): (look?: 'look') => SecretsFile {
  let seen = fingerprint(path);
  let file = readSecretsFile(path);
  let lookedAt = performance.now();
  return (look) => {
    const now = performance.now();
    if (look === undefined && now - lookedAt < lookEveryMs) return file;
    lookedAt = now;
    const print = fingerprint(path);
    if (print === seen) return file;
    // taken before the file is read: when it changes while it is read, it is read again next time
    seen = print;
    try {
      file = readSecretsFile(path);
    } catch (error) {
      warn(`${(error as Error).message}. The secrets read before stay in force`);
    }
    return file;
  };
}

function fingerprint(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats === undefined ? 'absent' : [stats.ino, stats.size, stats.mtimeMs, stats.ctimeMs].join(' ');
}
