// From a bearer credential to a principal.
import { defaultScopes } from '../scopes.ts';
import { findToken, type TokenRecord } from '../tokens.ts';
import type { ApiDeps } from './deps.ts';
import type { Principal } from './auth.ts';

export interface Credentials {
  /** as the secrets file has them now */
  tokens(): readonly TokenRecord[];
}

export function createAuthenticate({ tokens }: Credentials): ApiDeps['authenticate'] {
  return (presented) => {
    const record = findToken(tokens(), presented);
    return record === undefined ? undefined : principalOf(record);
  };
}

function principalOf({ id, name, roles, kind, scopes = [...defaultScopes] }: TokenRecord): Principal {
  return { id, name, roles, kind, scopes };
}
