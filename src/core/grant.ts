// The right to run one effect once, with an HMAC-SHA256 (RFC 2104) under the deployment's grant key: an
// activity runs a gated tool only with one, whoever scheduled it.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { canonicalize } from './canonical.ts';
import type { Grant } from './case.ts';

/** `secret` is base64url of 32 bytes. The first key of a list signs; all of them verify. */
export interface GrantKey {
  kid: string;
  secret: string;
}

/** @throws Error when the deployment has no grant key */
export function issueGrant(content: Omit<Grant, 'kid' | 'mac'>, keys: readonly GrantKey[]): Grant {
  const [key] = keys;
  if (key === undefined) throw new Error('no grant key: the secrets file has an empty grantKeys list');
  const unsigned = { ...content, kid: key.kid };
  return { ...unsigned, mac: mac(unsigned, key) };
}

/** What is wrong with a grant, or undefined. `place` is where it is to be used. Never throws. */
export function grantProblem(
  grant: Grant,
  place: { namespace: string; workflowId: string },
  keys: readonly GrantKey[],
): string | undefined {
  try {
    const { mac: presented, ...content } = grant;
    const key = keys.find(({ kid }) => kid === content.kid);
    if (key === undefined) return `it was made with the grant key "${content.kid}", which is not known here`;
    if (typeof presented !== 'string' || !sameText(presented, mac(content, key))) {
      return 'its HMAC does not match: it was altered or made up';
    }
    if (content.namespace !== place.namespace || content.workflowId !== place.workflowId) {
      const [theirs, ours] = [content, place].map(
        (at) => `"${at.workflowId}" in namespace "${at.namespace}"`,
      );
      return `it is for run ${theirs}, not for ${ours}`;
    }
    return undefined;
  } catch {
    return 'it is not a grant';
  }
}

function mac(content: Omit<Grant, 'mac'>, key: GrantKey): string {
  return createHmac('sha256', Buffer.from(key.secret, 'base64url'))
    .update(canonicalize(content))
    .digest('base64url');
}

function sameText(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
