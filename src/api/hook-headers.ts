// The headers of a webhook. Those that look like credentials are taken out of the request before anything else
// sees it (P10), the log too; what is left is kept in the run's trigger, within a bound.
import type { MiddlewareHandler } from 'hono';
import type { ApiEnv } from './deps.ts';

/**
 * Names of headers that carry credentials, and patterns for the names that people give them. Rather one too
 * many: a header that is missing in a trigger is a pity, a credential in a history stays there.
 */
export const droppedHeaders = [
  ...['authorization', '*-authorization', 'authentication', '*-authentication', '*-auth', 'x-auth-*'],
  ...['cookie', 'cookie2', 'set-cookie', '*-cookie', '*-session', '*session-id', '*sessionid'],
  ...[
    '*token*',
    '*secret*',
    '*password*',
    '*passwd*',
    '*credential*',
    '*signature*',
    '*apikey*',
    '*api-key*',
  ],
  ...['*-key', 'key', '*-jwt*', 'jwt', '*jwt-assertion', '*-assertion', '*-bearer', '*-hmac*'],
  // the URL as a proxy or a page saw it: its query is where webhooks carry tokens
  ...['uri', '*-uri', 'url', '*-url', '*-path', 'query', '*-query', '*-query-string', 'referer', 'referrer'],
  ...['*-otp', '*-pin', 'dpop', '*-client-cert*', 'x-amzn-oidc-*', 'x-ms-client-principal*', 'php-auth-*'],
];

/** A value, or a part of a list, that names a scheme of HTTP authentication is one, whatever its header is called. */
const credentialValue = /^\s*(?:basic|bearer|digest|negotiate|dpop|hmac|aws4-hmac-sha256|token|apikey)\s+\S/i;

/** Characters of names and values. What a person reads of them is far less; a history holds them for ever. */
export const keptHeadersLimit = 8 * 1024;

export interface KeptHeaders {
  headers: Record<string, string>;
  /** how many more there were, beyond the bound */
  headersOmitted?: number;
}

/** Takes them out of the request itself; only the signature is handed on, for the check. */
export function dropCredentials(more: readonly string[] = []): MiddlewareHandler<ApiEnv> {
  const isDropped = headerMatcher([...droppedHeaders, ...more]);
  return async (c, next) => {
    const kept = new Headers();
    for (const [name, value] of c.req.raw.headers) {
      if (!isDropped(name) && !value.split(',').some((part) => credentialValue.test(part)))
        kept.append(name, value);
    }
    c.set('webhookSignature', c.req.raw.headers.get('webhook-signature') ?? '');
    c.req.raw = new Request(c.req.raw, { headers: kept });
    await next();
  };
}

/** By name, so that a trigger reads the same whatever order they came in. */
export function keepHeaders(headers: Headers): KeptHeaders {
  let length = 0;
  const all = [...headers].sort(([a], [b]) => (a < b ? -1 : 1));
  const kept = all.filter(([name, value]) => {
    const grown = length + name.length + value.length;
    if (grown > keptHeadersLimit) return false;
    length = grown;
    return true;
  });
  const omitted = all.length - kept.length;
  return { headers: Object.fromEntries(kept), ...(omitted === 0 ? {} : { headersOmitted: omitted }) };
}

function headerMatcher(patterns: readonly string[]): (name: string) => boolean {
  const parts = patterns.map((pattern) =>
    pattern
      .split('*')
      .map((text) => text.replace(/[\\^$.+?()[\]{}|]/g, '\\$&'))
      .join('.*'),
  );
  const pattern = new RegExp(`^(?:${parts.join('|')})$`, 'i');
  return (name) => pattern.test(name);
}
