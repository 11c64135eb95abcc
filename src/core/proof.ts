// The proof in a decision: a compact JWS (RFC 7515) with EdDSA (RFC 8037) by a door's key, over the whole
// decision (by its SHA-256, so that it adds little to the signal) and the run that it is for. So it fits no other gate, hash, run or namespace, and it says when
// it was made: the deadline rule of a gate trusts `iat`, and nothing else that a sender can write.
import {
  CompactSign,
  compactVerify,
  decodeProtectedHeader,
  importJWK,
  type CryptoKey,
  type JWK,
  type JWK_OKP_Private,
  type JWK_OKP_Public,
} from 'jose';
import { canonicalize } from './canonical.ts';
import type { Decision } from './decision.ts';
import { hashText } from './hash.ts';

/** One key of a deployment signs at a time; the public half of every key verifies. */
export interface SigningKey {
  kid: string;
  /** Ed25519 */
  privateJwk: JWK_OKP_Private;
}

export interface ProofKey {
  kid: string;
  /** Ed25519 */
  publicJwk: JWK_OKP_Public;
  /** It signed from then on, in milliseconds since the epoch; absent: always. */
  validFrom?: number;
  /** It signed until then; absent: to this day. */
  validUntil?: number;
}

/** The run that a proof is for. The root, the key and the hash are in the decision itself. */
export interface ProofPlace {
  namespace: string;
  workflowId: string;
}

/** `signedAt` in milliseconds since the epoch, by the signer's clock. */
export type ProofCheck = { ok: true; signedAt: number; kid: string } | { ok: false; reason: string };

// Keeps other things signed by the same key (a session, a link) from passing as a decision (RFC 8725 §3.11).
const proofType = 'countersign-decision+jws';

/** Clocks of two machines differ; a proof from further in the future was made to outlive a deadline. */
const clockSkewMs = 60_000;

/** Times in milliseconds; `now` is the signer's clock. @throws ValueProblemError for a decision that is not JSON */
export async function signProof(
  decision: Omit<Decision, 'proof'>,
  place: ProofPlace,
  key: SigningKey,
  options: { now?: number; expiresInMs?: number } = {},
): Promise<string> {
  const now = options.now ?? Date.now();
  const payload = {
    decision: decisionHash(decision),
    namespace: place.namespace,
    workflowId: place.workflowId,
    // seconds as in RFC 7519 NumericDate, with the milliseconds as fraction: deadlines are that exact
    iat: now / 1000,
    ...(options.expiresInMs === undefined ? {} : { exp: (now + options.expiresInMs) / 1000 }),
  };
  return new CompactSign(new TextEncoder().encode(canonicalize(payload)))
    .setProtectedHeader({ alg: 'EdDSA', kid: key.kid, typ: proofType })
    .sign(await importKey(key.privateJwk));
}

/**
 * Checks `decision.proof` against the decision it stands in. Never throws for what a sender can cause.
 * @throws TypeError for a key of `keys` that is not an Ed25519 JWK
 */
export async function verifyProof(
  decision: Decision,
  place: ProofPlace,
  keys: readonly ProofKey[],
  now: number,
): Promise<ProofCheck> {
  const { proof } = decision;
  if (typeof proof !== 'string') return refuse('it has no proof');
  const header = readHeader(proof);
  if (header === undefined) return refuse('it is not a compact JWS');
  if (header.alg !== 'EdDSA') return refuse(`its algorithm is ${quote(header.alg)}, not "EdDSA"`);
  if (header.typ !== proofType) return refuse(`its type is ${quote(header.typ)}, not "${proofType}"`);
  const key = keys.find(({ kid }) => kid === header.kid);
  if (key === undefined) return refuse(`its key ${quote(header.kid)} is not known here`);
  // outside the catch below: a broken key of ours is no fault of the sender
  const publicKey = await importKey(key.publicJwk);
  try {
    const { payload } = await compactVerify(proof, publicKey, { algorithms: ['EdDSA'] });
    const claims: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(payload));
    return judgeClaims(claims, decision, place, key, now);
  } catch {
    // jose throws for every malformed token and wrong signature; the sender learns no more than this
    return refuse('its signature does not match');
  }
}

function readHeader(proof: string): ReturnType<typeof decodeProtectedHeader> | undefined {
  try {
    return decodeProtectedHeader(proof);
  } catch {
    return undefined;
  }
}

function judgeClaims(
  payload: unknown,
  decision: Decision,
  place: ProofPlace,
  { kid, validFrom = -Infinity, validUntil = Infinity }: ProofKey,
  now: number,
): ProofCheck {
  if (typeof payload !== 'object' || payload === null) return refuse('its payload is not an object');
  const claims: Partial<Record<string, unknown>> = { ...payload };
  if (claims['namespace'] !== place.namespace || claims['workflowId'] !== place.workflowId) {
    return refuse(
      `it was made for run ${quote(claims['workflowId'])} in namespace ${quote(claims['namespace'])}`,
    );
  }
  if (claims['decision'] !== decisionHash(decision)) {
    return refuse('it was made for another decision, or the decision was changed');
  }
  const { iat, exp } = claims;
  if (typeof iat !== 'number') return refuse('it does not say when it was signed (iat)');
  const signedAt = Math.round(iat * 1000);
  if (signedAt > now + clockSkewMs) return refuse(`it was signed in the future, at ${timeText(signedAt)}`);
  // by the time that it says of itself: that of the door which held the key and chose it by the same clock
  if (signedAt < validFrom)
    return refuse(`its key "${kid}" signs from ${timeText(validFrom)} on, not before`);
  if (signedAt >= validUntil) return refuse(`its key "${kid}" signs no more since ${timeText(validUntil)}`);
  if (exp !== undefined) {
    if (typeof exp !== 'number') return refuse('its exp is not a number');
    const expiresAt = Math.round(exp * 1000);
    if (expiresAt <= now) return refuse(`it expired at ${timeText(expiresAt)}`);
  }
  return { ok: true, signedAt, kid };
}

/** Over the canonical JSON of everything but the proof. */
function decisionHash(decision: Omit<Decision, 'proof'>): string {
  const entries = Object.entries(decision).filter(([name]) => name !== 'proof');
  return hashText(canonicalize(Object.fromEntries(entries)));
}

// Importing costs more than a signature; a key object lives as long as the configuration it came from.
const importedKeys = new WeakMap<JWK, CryptoKey>();

async function importKey(jwk: JWK): Promise<CryptoKey> {
  const known = importedKeys.get(jwk);
  if (known !== undefined) return known;
  const imported = await importJWK(jwk, 'EdDSA');
  if (imported instanceof Uint8Array) throw new TypeError('a proof key must be an Ed25519 JWK');
  importedKeys.set(jwk, imported);
  return imported;
}

function refuse(reason: string): ProofCheck {
  return { ok: false, reason };
}

// Header values come from the sender: a control character or a megabyte must not get into a message.
function quote(value: unknown): string {
  return JSON.stringify(String(value).slice(0, 100));
}

function timeText(ms: number): string {
  return Number.isFinite(ms) && Math.abs(ms) < 8.64e15 ? new Date(ms).toISOString() : String(ms);
}
