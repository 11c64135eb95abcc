// The keys of a secrets file: which one signs now, which ones verify, and how they are changed. Of those that
// may sign at a moment the newest does, so that a new key can be handed to every process before it is used.
import { randomBytes, randomUUID } from 'node:crypto';
import { exportJWK, generateKeyPair, type JWK_OKP_Private } from 'jose';
import type { GrantKey } from './core/grant.ts';
import type { ProofKey, SigningKey } from './core/proof.ts';
import {
  SecretsError,
  type GrantKeyRecord,
  type SecretsFile,
  type SigningKeyRecord,
} from './secrets-file.ts';

export type KeyUse = 'signing' | 'grant';

/** `signs`: used now. `next`: used from its time on. `verifies`: what was made with it holds. */
export type KeyState = 'signs' | 'next' | 'verifies';

export interface KeyRow {
  use: KeyUse;
  kid: string;
  state: KeyState;
  validFrom?: string;
  validUntil?: string;
  /** of a signing key: whether this file could still sign with it */
  hasPrivatePart?: boolean;
}

/**
 * How long proofs of a replaced key still hold after the new one begins: an API process that cannot read the
 * changed file goes on signing with the old key, and ten minutes are enough to see that in its log.
 */
const overlapMs = 10 * 60_000;

/** Times in milliseconds since the epoch. @throws SecretsError when no key may sign at that moment */
export function signingKeyAt(file: SecretsFile, now: number): SigningKey {
  const key = newest(file.signingKeys.filter((one) => maySign(one, now)));
  if (key?.privateJwk !== undefined) return { kid: key.kid, privateJwk: key.privateJwk };
  throw new SecretsError(
    'no signing key may sign now: make one with `countersign keys rotate --signing --now`',
  );
}

export function proofKeysOf(file: SecretsFile): ProofKey[] {
  return file.signingKeys.map(({ kid, publicJwk, validFrom, validUntil }) => ({
    kid,
    publicJwk,
    ...(validFrom === undefined ? {} : { validFrom: Date.parse(validFrom) }),
    ...(validUntil === undefined ? {} : { validUntil: Date.parse(validUntil) }),
  }));
}

/** The one that makes grants at that moment first. */
export function grantKeysAt({ grantKeys }: SecretsFile, now: number): GrantKey[] {
  const first = newest(grantKeys.filter((key) => startOf(key) <= now));
  return [...(first === undefined ? [] : [first]), ...grantKeys.filter((key) => key !== first)];
}

export function keyRows(file: SecretsFile, now: number): KeyRow[] {
  const signer = newest(file.signingKeys.filter((key) => maySign(key, now)));
  const [granter] = grantKeysAt(file, now);
  const state = (key: { kid: string; validFrom?: string | undefined }, used: boolean): KeyState =>
    used ? 'signs' : startOf(key) > now ? 'next' : 'verifies';
  return [
    ...file.signingKeys.map((key) => ({
      use: 'signing' as const,
      kid: key.kid,
      state: state(key, key === signer),
      ...times(key),
      hasPrivatePart: key.privateJwk !== undefined,
    })),
    ...file.grantKeys.map((key) => ({
      use: 'grant' as const,
      kid: key.kid,
      state: state(key, key === granter),
      ...times(key),
    })),
  ];
}

export async function newSigningKey(): Promise<SigningKeyRecord> {
  const { privateKey } = await generateKeyPair('EdDSA', { extractable: true });
  const { x, d } = (await exportJWK(privateKey)) as JWK_OKP_Private;
  const publicJwk = { kty: 'OKP', crv: 'Ed25519', x } as const;
  return { kid: newId(), privateJwk: { ...publicJwk, d }, publicJwk };
}

export function newGrantKey(): GrantKeyRecord {
  return { kid: newId(), secret: randomBytes(32).toString('base64url') };
}

/** A new key that signs from `from` on; the ones before it sign until then, and their proofs hold a while more. */
export async function rotateSigningKey(
  file: SecretsFile,
  { now, from }: { now: number; from: number },
): Promise<SigningKeyRecord> {
  const key = { ...(await newSigningKey()), validFrom: iso(from) };
  // one that would have begun later has signed nothing, and would take over from this one
  const before = file.signingKeys.filter((one) => startOf(one) <= from);
  for (const one of before) {
    const until = one.validUntil === undefined ? Infinity : Date.parse(one.validUntil);
    one.validUntil = iso(Math.min(until, from + overlapMs));
  }
  file.signingKeys = [key, ...before];
  dropSpentPrivateParts(file, now);
  return key;
}

/** A new key that makes grants from `from` on. What was made with the ones before it holds until they are removed. */
export function rotateGrantKey(file: SecretsFile, { from }: { from: number }): GrantKeyRecord {
  const key = { ...newGrantKey(), validFrom: iso(from) };
  file.grantKeys = [key, ...file.grantKeys.filter((one) => startOf(one) <= from)];
  return key;
}

/** What was made with it holds no more. @throws SecretsError for an unknown one, and for the one that is used */
export function removeKey(file: SecretsFile, use: KeyUse, kid: string, now: number): void {
  const rows = keyRows(file, now).filter((row) => row.use === use);
  const row = rows.find((one) => one.kid === kid);
  if (row === undefined) {
    const known = rows.map((one) => one.kid).join(', ');
    throw new SecretsError(`there is no ${use} key "${kid}"; there are: ${known}`);
  }
  if (row.state === 'signs') {
    throw new SecretsError(
      `${use} key "${kid}" is the one in use: first \`countersign keys rotate --${use} --now\``,
    );
  }
  file.signingKeys = file.signingKeys.filter((key) => use !== 'signing' || key.kid !== kid);
  file.grantKeys = file.grantKeys.filter((key) => use !== 'grant' || key.kid !== kid);
}

/**
 * A key that was replaced, and whose successor signs, is needed for verifying only: what is not there cannot be
 * stolen. A process that has the old file goes on with what it has in memory.
 */
export function dropSpentPrivateParts(file: SecretsFile, now: number): void {
  const signer = newest(file.signingKeys.filter((key) => maySign(key, now)));
  if (signer === undefined) return;
  for (const key of file.signingKeys) {
    const isReplaced = key.validUntil !== undefined && startOf(key) < startOf(signer);
    if (isReplaced) delete key.privateJwk;
  }
}

function maySign(key: SigningKeyRecord, now: number): boolean {
  if (key.privateJwk === undefined || startOf(key) > now) return false;
  return key.validUntil === undefined || now < Date.parse(key.validUntil);
}

/** The one that began last; where several did, the first of the list, as before there were times. */
function newest<Key extends { validFrom?: string | undefined }>(keys: readonly Key[]): Key | undefined {
  return keys.reduce<Key | undefined>(
    (best, key) => (best === undefined || startOf(key) > startOf(best) ? key : best),
    undefined,
  );
}

function startOf({ validFrom }: { validFrom?: string | undefined }): number {
  return validFrom === undefined ? -Infinity : Date.parse(validFrom);
}

function times({
  validFrom,
  validUntil,
}: {
  validFrom?: string | undefined;
  validUntil?: string | undefined;
}) {
  return {
    ...(validFrom === undefined ? {} : { validFrom }),
    ...(validUntil === undefined ? {} : { validUntil }),
  };
}

/** Short enough to be read aloud, long enough that two of a file never meet. */
function newId(): string {
  return randomUUID().slice(0, 8);
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
