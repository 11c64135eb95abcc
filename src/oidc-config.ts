// What the config says about an OIDC issuer whose JWTs the API takes. Nothing of it is secret: a signature is
// checked with the issuer's public keys, and a key that both sides know is never taken for one.
import { z } from 'zod';
import { defaultScopes, scopes } from './scopes.ts';

/** Asymmetric ones of RFC 7518 and RFC 8037; with HS256 the public key would be the secret. */
export const oidcAlgorithms = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
] as const;

/** What issuers sign with as they come; RS256 is the one that OIDC asks every issuer for. */
const usualAlgorithms = ['RS256', 'PS256', 'ES256', 'EdDSA'];

const claim = z.string().min(1).max(200);
const scopeList = z.array(z.enum(scopes));

export const oidcSchema = z
  .strictObject({
    /** as it stands in `iss`, to the letter; found by discovery */
    issuer: z.string().refine(isTrustworthy, urlRule()),
    /** one of these must be in `aud` */
    audience: z.union([z.string().min(1), z.array(z.string().min(1)).min(1)]),
    algorithms: z
      .array(
        z.string().refine((name) => (oidcAlgorithms as readonly string[]).includes(name), {
          message: `must be one of ${oidcAlgorithms.join(', ')}`,
        }),
      )
      .min(1)
      .default(usualAlgorithms),
    /** where the keys are; default: what discovery says */
    jwksUri: z.string().refine(isTrustworthy, urlRule()).optional(),
    /** whose it is: stable, and never given to somebody else */
    idClaim: claim.default('sub'),
    nameClaim: claim.default('name'),
    /** a list is the way into an object: `['realm_access', 'roles']` */
    rolesClaim: z.union([claim, z.array(claim).min(1)]).default('roles'),
    /** roles that count here; others are left out. Default: all */
    roles: z.array(z.string()).optional(),
    /** says `person` or `service`; what says neither is a service */
    kindClaim: claim.optional(),
    /** what everybody of this issuer may do */
    scopes: scopeList.default([...defaultScopes]),
    /** what a role may do beside that */
    roleScopes: z.record(z.string(), scopeList).default({}),
  })
  .refine(
    ({ roles, roleScopes }) =>
      roles === undefined || Object.keys(roleScopes).every((role) => roles.includes(role)),
    { path: ['roleScopes'], message: 'names a role that is not in roles, so nobody could have it' },
  );
export type OidcConfig = z.output<typeof oidcSchema>;

/** Over plain HTTP anybody on the way could hand out keys; on this machine nobody is. */
export function isTrustworthy(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, username, password, search, hash } = new URL(text);
  if (username + password + search + hash !== '') return false;
  return protocol === 'https:' || (protocol === 'http:' && loopback.includes(hostname));
}

const loopback = ['localhost', '127.0.0.1', '[::1]'];

function urlRule(): { message: string } {
  return { message: 'must be an https URL without user, ? and # (http only for localhost)' };
}
