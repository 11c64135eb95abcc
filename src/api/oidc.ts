// JWTs of an OIDC issuer as credentials: verified with its public keys, then read as a principal. What the issuer
// says is believed only of what it signed, for us, in its time; what cannot be checked now is 503, never 401.
import {
  createRemoteJWKSet,
  customFetch,
  decodeJwt,
  decodeProtectedHeader,
  errors,
  jwtVerify,
  type JWTPayload,
  type JWTVerifyGetKey,
} from 'jose';
import { printable } from '../core/json-value.ts';
import { isTrustworthy, type OidcConfig } from '../oidc-config.ts';
import { unauthenticated, type Principal } from './auth.ts';
import { ApiProblem } from './problem.ts';
import { principalOfClaims } from './oidc-claims.ts';

export interface OidcDeps {
  log(fields: Record<string, unknown>): void;
  /** milliseconds since the epoch */
  now(): number;
  fetch?: typeof fetch;
}

export interface OidcVerifier {
  /** @throws ApiProblem `unauthenticated` or `issuer_unavailable` */
  authenticate(token: string): Promise<Principal>;
  /** Asks the issuer for its keys, so that a wrong address is in the log at the start. Never throws. */
  warmUp(): Promise<void>;
}

const clockSkewSeconds = 60;
/** An issuer in the same continent answers in a tenth of this. */
const answerMs = 5000;
/** Between two tries at an issuer that did not answer; whoever comes in between is told at once. */
const retryAfterMs = 5000;
/** A key that is not in the set may be new; asked for at most this often, or strangers could make us ask. */
const askAgainMs = 30_000;
/** After this a key that the issuer took back is no longer taken. */
const keepKeysMs = 10 * 60_000;
/** RFC 9068 §4 and what came before it. A logout token, a DPoP proof and the like say so in their `typ`. */
const types = [undefined, 'jwt', 'at+jwt'];

export function createOidc(config: OidcConfig, deps: OidcDeps): OidcVerifier {
  const { issuer, audience, algorithms } = config;
  let failedAt = -Infinity;

  /** Told once where it happens; what is asked for in the next seconds fails at once. */
  const issuerProblem = (error: unknown): IssuerProblem => {
    if (error instanceof IssuerProblem) return error;
    failedAt = performance.now();
    const { message, cause } = error as Error & { cause?: { code?: string; message?: string } };
    const why = cause?.code ?? cause?.message ?? message;
    deps.log({
      level: 'error',
      message: 'the OIDC issuer gives no keys: its tokens are answered 503',
      issuer,
      why,
    });
    return new IssuerProblem(why, { cause: error });
  };
  const ask: typeof fetch = async (input, init) => {
    if (performance.now() - failedAt < retryAfterMs) throw new IssuerProblem('it gave none just now');
    try {
      const response = await (deps.fetch ?? fetch)(input, init);
      if (response.status === 200) return response;
      throw new Error(
        `${input instanceof Request ? input.url : input.toString()} answers ${response.status}`,
      );
    } catch (error) {
      throw issuerProblem(error);
    }
  };
  const keys = lazily(async () =>
    createRemoteJWKSet(new URL(config.jwksUri ?? (await discover(issuer, ask))), {
      timeoutDuration: answerMs,
      cooldownDuration: askAgainMs,
      cacheMaxAge: keepKeysMs,
      [customFetch]: ask,
    }),
  );
  const keyOf: JWTVerifyGetKey = async (header, token) => {
    try {
      return await (
        await keys()
      )(header, token);
    } catch (error) {
      // the sender's fault: a key that this issuer does not have
      if (error instanceof errors.JWKSNoMatchingKey) throw error;
      if (error instanceof errors.JWKSMultipleMatchingKeys) throw error;
      throw issuerProblem(error);
    }
  };

  return {
    async authenticate(token) {
      const problem = lookProblem(token, issuer);
      if (problem !== undefined) throw refused(problem);
      const now = deps.now();
      try {
        const { payload } = await jwtVerify(token, keyOf, {
          ...{ issuer, audience, algorithms, clockTolerance: clockSkewSeconds },
          ...{ currentDate: new Date(now), requiredClaims: ['exp'] },
        });
        const { iat = 0 } = payload;
        if (iat > now / 1000 + clockSkewSeconds) throw refused('it was issued in the future (iat)');
        const principal = principalOfClaims(config, payload);
        if ('problem' in principal) throw refused(principal.problem);
        return principal;
      } catch (error) {
        if (error instanceof errors.JOSEError) throw refused(words(error, config));
        if (!(error instanceof IssuerProblem)) throw error;
        throw new ApiProblem(
          'issuer_unavailable',
          `the OIDC issuer ${issuer} gives no keys to check the token with`,
        );
      }
    },
    async warmUp() {
      await keys()
        .then((set) => set.reload())
        .catch(issuerProblem);
    },
  };
}

class IssuerProblem extends Error {
  override readonly name = 'IssuerProblem';
}

/** What is seen without a key. It keeps what is not meant for this issuer from making us ask it. */
function lookProblem(token: string, issuer: string): string | undefined {
  let header: { typ?: unknown };
  let claims: JWTPayload;
  try {
    [header, claims] = [decodeProtectedHeader(token), decodeJwt(token)];
  } catch {
    return 'it is no JWT';
  }
  const type =
    typeof header.typ === 'string' ? header.typ.toLowerCase().replace(/^application\//, '') : header.typ;
  if (!types.includes(type as string | undefined))
    return `its typ is ${shown(header.typ)}, not "JWT" or "at+jwt"`;
  if (claims.iss !== issuer) return `its issuer is ${shown(claims.iss)}, not "${issuer}"`;
  // whoever caught it could use it here, where nobody asks for the key that it is bound to (RFC 7800)
  if (claims['cnf'] !== undefined)
    return 'it is bound to a key of the sender (cnf), which is not checked here';
  return undefined;
}

/** OpenID Connect Discovery 1.0 §4. */
async function discover(issuer: string, ask: typeof fetch): Promise<string> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
  const response = await ask(url, { redirect: 'manual', signal: AbortSignal.timeout(answerMs) });
  const found = (await response.json()) as { issuer?: unknown; jwks_uri?: unknown } | null;
  // §4.3: else another issuer's keys would be taken for this one's
  if (found?.issuer !== issuer) throw new Error(`${url} is of the issuer ${shown(found?.issuer)}`);
  const uri = found.jwks_uri;
  if (typeof uri !== 'string' || !isTrustworthy(uri.replace(/\?.*$/s, ''))) {
    throw new Error(`${url} has no jwks_uri that is an https URL`);
  }
  return uri;
}

/** One that failed is made anew the next time. */
function lazily<Value>(make: () => Promise<Value>): () => Promise<Value> {
  let made: Promise<Value> | undefined;
  return () => {
    made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}

function words(error: errors.JOSEError, { audience, algorithms }: OidcConfig): string {
  if (error instanceof errors.JWTExpired) return `it expired at ${timeText(error.payload.exp)}`;
  if (error instanceof errors.JWTClaimValidationFailed) {
    if (error.claim === 'aud') return `it is not for ${[audience].flat().join(' or ')} (aud)`;
    if (error.claim === 'nbf') return 'it is not valid yet (nbf)';
    return `its claim "${printable(error.claim, 60)}" is missing or not valid`;
  }
  if (error instanceof errors.JOSEAlgNotAllowed)
    return `its algorithm is not one of ${algorithms.join(', ')}`;
  if (error instanceof errors.JWKSNoMatchingKey) return 'its key is none of the issuer';
  if (error instanceof errors.JWKSMultipleMatchingKeys)
    return 'it does not say which of the issuer’s keys signed it';
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'its signature does not match';
  return 'it is no valid JWT';
}

function timeText(seconds: number | undefined): string {
  const time = new Date((seconds ?? NaN) * 1000);
  return Number.isNaN(time.getTime()) ? 'a time that is none' : time.toISOString();
}

function refused(why: string): ApiProblem {
  return unauthenticated(`the token is not taken: ${why}`, ', error="invalid_token"');
}

/** Of strangers: a control character or a megabyte must not get into a message. */
function shown(value: unknown): string {
  return value === undefined
    ? 'missing'
    : `"${printable(typeof value === 'string' ? value : JSON.stringify(value), 100)}"`;
}
