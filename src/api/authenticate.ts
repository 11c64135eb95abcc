// From a bearer credential to a principal: a token of the secrets file, else a JWT of the OIDC issuer.
import { defaultScopes } from '../scopes.ts';
import { findToken, type TokenRecord } from '../tokens.ts';
import type { Principal } from './auth.ts';
import type { ApiDeps } from './deps.ts';
import type { OidcVerifier } from './oidc.ts';

export interface Credentials {
  /** as the secrets file has them now */
  tokens(): readonly TokenRecord[];
  /** absent: only tokens of the file are taken */
  oidc?: Pick<OidcVerifier, 'authenticate'> | undefined;
  /** milliseconds since the epoch; default: this machine's clock */
  now?: () => number;
}

export function createAuthenticate({ tokens, oidc, now = Date.now }: Credentials): ApiDeps['authenticate'] {
  return (presented) => {
    const record = findToken(tokens(), presented, now());
    if (record !== undefined) return principalOf(record);
    // a compact JWS has three parts; one of our own tokens has no dot
    return oidc !== undefined && presented.includes('.') ? oidc.authenticate(presented) : undefined;
  };
}

function principalOf({ id, name, roles, kind, scopes = [...defaultScopes] }: TokenRecord): Principal {
  return { id, name, roles, kind, scopes };
}
