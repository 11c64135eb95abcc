// Who the claims of a verified JWT speak of. Ids of an issuer begin with `oidc:`, so that nobody can call himself
// at the issuer what somebody else is called in the secrets file.
import type { JWTPayload } from 'jose';
import type { OidcConfig } from '../oidc-config.ts';
import type { Scope } from '../scopes.ts';
import type { TokenKind } from '../tokens.ts';
import type { Principal } from './auth.ts';

export const oidcIdPrefix = 'oidc:';

/** `sub` has at most 255 ASCII characters (OpenID Connect Core §2). */
const longestId = 255;
/** Shown in lists, and part of every decision. */
const longestName = 200;
/** All of them travel in each decision, which has 16 KiB; who has more names those that count in `roles`. */
const mostRoles = 50;

export function principalOfClaims(config: OidcConfig, claims: JWTPayload): Principal | { problem: string } {
  const { idClaim, nameClaim, roles: counting, scopes, roleScopes } = config;
  const id = claims[idClaim];
  if (typeof id !== 'string' || !/^[^\p{Cc}\p{Cf}]+$/u.test(id) || id.length > longestId) {
    return { problem: `its claim "${idClaim}" is no text of 1 to ${longestId} characters` };
  }
  // else whoever may write his own address at the issuer could be anyone
  if (idClaim === 'email' && claims['email_verified'] !== true) {
    return { problem: 'its issuer has not verified its email (email_verified)' };
  }
  const given = rolesOf(config, claims);
  if (given === undefined)
    return { problem: `its roles (${[config.rolesClaim].flat().join('.')}) are no list of texts` };
  const roles = given.filter((role) => counting === undefined || counting.includes(role));
  if (roles.length > mostRoles) {
    return {
      problem: `it has ${roles.length} roles, at most ${mostRoles} are taken: name those that count in oidc.roles`,
    };
  }
  const ofRoles = roles.flatMap((role): Scope[] =>
    Object.hasOwn(roleScopes, role) ? (roleScopes[role] ?? []) : [],
  );
  return {
    id: oidcIdPrefix + id,
    name: nameOf(claims, [nameClaim, 'preferred_username', 'email']) ?? id,
    roles,
    kind: kindOf(config, claims),
    scopes: [...new Set([...scopes, ...ofRoles])],
  };
}

/** Undefined for what is neither a list of texts nor one text. Without the claim there are none. */
function rolesOf({ rolesClaim }: OidcConfig, claims: JWTPayload): string[] | undefined {
  let value: unknown = claims;
  for (const name of [rolesClaim].flat()) {
    value =
      typeof value === 'object' && value !== null && Object.hasOwn(value, name)
        ? (value as Record<string, unknown>)[name]
        : undefined;
  }
  if (value === undefined || value === null) return [];
  const list: unknown[] = Array.isArray(value) ? value : [value];
  return list.every((role) => typeof role === 'string') ? [...new Set(list)] : undefined;
}

/**
 * A machine's token must not count as a person. Where a claim says which, only `person` is one. Else a token
 * counts as a client's own by what issuers write into one: its subject is the client (RFC 9068 §2.2), `idtyp` of
 * Microsoft Entra, `gty` of Auth0.
 */
function kindOf({ kindClaim }: OidcConfig, claims: JWTPayload): TokenKind {
  if (kindClaim !== undefined) return claims[kindClaim] === 'person' ? 'person' : 'service';
  const isClient = claims.sub !== undefined && [claims['client_id'], claims['azp']].includes(claims.sub);
  const isMarked = claims['idtyp'] === 'app' || claims['gty'] === 'client-credentials';
  return isClient || isMarked ? 'service' : 'person';
}

function nameOf(claims: JWTPayload, names: readonly string[]): string | undefined {
  const name = names.map((one) => claims[one]).find((one) => typeof one === 'string' && one !== '');
  return typeof name === 'string' ? name.slice(0, longestName) : undefined;
}
