// The arguments of the http tool, checked when the call is frozen: what could not be sent is refused before
// a person is asked, and what the case shows is what goes out. Whatever depends on configuration is checked
// again when it is sent.
import { z } from 'zod';
import { printable } from '../core/json-value.ts';
import { headerSecretProblem, strayPlaceholderProblem, type SecretRules } from './header-secrets.ts';
import { hostOnly, isAllowed, readUrl, showRule, type HostRule } from './host-guard.ts';

/** What the tool may call, and with which secrets. */
export interface HttpReach {
  allowHosts: readonly HostRule[];
  secrets: SecretRules;
}

export interface HttpArguments {
  method: (typeof methods)[number];
  url: string;
  /** names in lower case */
  headers?: Record<string, string> | undefined;
  /** JSON */
  body?: unknown;
}

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

/** More is no call that a person can judge. */
const maxHeaders = 50;
/** Servers refuse lines beyond 8 KiB. */
const maxHeaderLength = 8_000;

/** Of the connection, or the tool's own. */
const reservedHeaders = [
  ...[
    'accept-encoding',
    'connection',
    'content-length',
    'expect',
    'host',
    'http2-settings',
    'idempotency-key',
  ],
  ...['keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade'],
];

const headerName = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;
const headerValue = /^[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?$/;

export function isSafeMethod(method: HttpArguments['method']): boolean {
  return method === 'GET' || method === 'HEAD';
}

export function httpArguments(reach: HttpReach): z.ZodType<HttpArguments> {
  const url = z.string().transform((text, context) => {
    const read = readUrl(text);
    if ('url' in read) return read.url.href;
    context.issues.push({ code: 'custom', message: read.problem, input: text });
    return z.NEVER;
  });
  const headers = z.record(z.string(), z.string()).transform((given, context) => {
    const entries = Object.entries(given).map(([name, value]) => [name.toLowerCase(), value] as const);
    const problem = headersProblem(entries);
    if (problem === undefined) return Object.fromEntries(entries);
    context.issues.push({ code: 'custom', message: problem, input: given });
    return z.NEVER;
  });
  return z
    .strictObject({
      method: z.enum(methods),
      url,
      headers: headers.optional(),
      body: z.unknown().optional(),
    })
    .superRefine((args, context) => {
      const problem = callProblem(args, reach);
      if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
    });
}

/** Why this call may not be made with this configuration, or undefined. */
export function callProblem(args: HttpArguments, { allowHosts, secrets }: HttpReach): string | undefined {
  const { method, headers = {}, body } = args;
  const read = readUrl(args.url);
  if ('problem' in read) return read.problem;
  const { url } = read;
  if (!isAllowed(url, allowHosts)) {
    return `${hostOnly(url)} is not an allowed host; the tool may call ${allowHosts.map(showRule).join(', ')}`;
  }
  if (body !== undefined && isSafeMethod(method)) return `${method} has no body; take it out`;
  for (const [name, value] of Object.entries(headers)) {
    const problem = headerSecretProblem(secrets, name, value, url);
    if (problem !== undefined) return problem;
  }
  // the URL as a server will read it: a placeholder in it stands percent-encoded
  return (
    strayPlaceholderProblem(secrets, 'url', decoded(url.href)) ??
    strayPlaceholderProblem(secrets, 'body', JSON.stringify(body) ?? '')
  );
}

function headersProblem(entries: (readonly [string, string])[]): string | undefined {
  if (entries.length > maxHeaders) return `${entries.length} headers, at most ${maxHeaders} are sent`;
  const seen = new Set<string>();
  for (const [name, value] of entries) {
    const shown = `header "${printable(name, 60)}"`;
    if (!headerName.test(name)) return `${shown} is not a header name`;
    if (seen.has(name)) return `${shown} is given twice, in other letters`;
    seen.add(name);
    if (reservedHeaders.includes(name) || name.startsWith('proxy-')) {
      return `${shown} is set by the tool itself; take it out`;
    }
    if (!headerValue.test(value) || value.length > maxHeaderLength) {
      return `${shown} has a value that is empty, over ${maxHeaderLength} characters, or not printable ASCII`;
    }
    if (name === 'content-type' && !/^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(value)) {
      return `${shown}: bodies are JSON, got "${printable(value, 60)}"`;
    }
  }
  return undefined;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
