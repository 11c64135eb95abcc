// The deployment's secrets file: API tokens (only their hashes), the keys that sign decisions, the keys
// that make grants. The first key of a list is used, all of them verify, so that each can be rotated.
import { randomBytes, randomUUID } from 'node:crypto';
import { statSync } from 'node:fs';
import { link, mkdir, rename, rm, rmdir } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { exportJWK, generateKeyPair } from 'jose';
import type { GrantKey } from './core/grant.ts';
import type { ProofKey, SigningKey } from './core/proof.ts';
import { makePrivateFolder } from './embedded/private-folder.ts';
import {
  checkSecretsFile,
  hasCode,
  missingSecrets,
  readSecretsFile,
  SecretsError,
  writeBeside,
  type SecretsFile,
} from './secrets-file.ts';
import { defaultScopes, scopes, type Scope } from './scopes.ts';
import { hashToken, makeToken, type TokenKind, type TokenRecord } from './tokens.ts';

/** The file as it is now: each call sees a change within a second of it. */
export interface Secrets {
  path: string;
  tokens(): readonly TokenRecord[];
  signingKey(): SigningKey;
  proofKeys(): readonly ProofKey[];
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
    signingKey: () => current().signingKeys[0]!,
    proofKeys: () => current().signingKeys,
    grantKeys: () => current().grantKeys,
  };
  return createdToken === undefined ? { secrets } : { secrets, createdToken };
}

/** Adds a token to an existing file and gives the plain token, which is kept nowhere. @throws SecretsError */
export async function addToken(path: string, token: NewToken): Promise<string> {
  const plain = makeToken();
  await withLock(path, async () => {
    const file = readSecretsFile(path);
    file.tokens.push(tokenRecord(token, plain));
    const temporary = await writeBeside(path, checkSecretsFile(path, file));
    await rename(temporary, path);
  });
  return plain;
}

function tokenRecord(token: NewToken, plain: string): TokenRecord {
  return {
    id: token.id,
    name: token.name,
    roles: token.roles,
    kind: token.kind ?? 'person',
    scopes: token.scopes ?? [...defaultScopes],
    sha256: hashToken(plain),
    createdAt: new Date().toISOString(),
    ...(token.expiresAt === undefined ? {} : { expiresAt: token.expiresAt }),
  };
}

// Of several processes that start together one makes the file: `link` fails where the name is taken, and
// the file has its whole content before it has its name.
async function createSecretsFile(path: string): Promise<{ id: string; token: string } | undefined> {
  if (statSync(path, { throwIfNoEntry: false }) !== undefined) return undefined;
  await makePrivateFolder(dirname(path));
  const token = makeToken();
  const { privateKey, publicKey } = await generateKeyPair('EdDSA', { extractable: true });
  const kid = randomUUID().slice(0, 8);
  const temporary = await writeBeside(path, {
    v: 1,
    tokens: [tokenRecord({ id: 'admin', name: 'Admin', roles: ['admin'], scopes: [...scopes] }, token)],
    signingKeys: [{ kid, privateJwk: await exportJWK(privateKey), publicJwk: await exportJWK(publicKey) }],
    grantKeys: [{ kid, secret: randomBytes(32).toString('base64url') }],
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

// A change takes milliseconds; a lock that is older was left by a process that was killed.
const lockBoundMs = 5000;

async function withLock(path: string, change: () => Promise<void>): Promise<void> {
  const lock = `${path}.lock`;
  const giveUpAt = Date.now() + lockBoundMs;
  for (;;) {
    try {
      await mkdir(lock);
      break;
    } catch (error) {
      if (hasCode(error, 'ENOENT')) throw missingSecrets(path);
      if (!hasCode(error, 'EEXIST')) throw error;
      if (Date.now() > giveUpAt) {
        throw new SecretsError(
          `${lock} is in the way: another process is changing the file, or died at it; remove it`,
        );
      }
      await delay(20);
    }
  }
  try {
    await change();
  } finally {
    await rmdir(lock);
  }
}

function watchedFile(path: string, warn: (message: string) => void): () => SecretsFile {
  let seen = fingerprint(path);
  let file = readSecretsFile(path);
  let lookedAt = performance.now();
  return () => {
    const now = performance.now();
    if (now - lookedAt < lookEveryMs) return file;
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
