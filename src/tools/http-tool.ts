// The built-in tool that calls an HTTP API. What it may reach, which secrets go where, and whether its targets
// take an idempotency key is the deployment's word, said here once and never in a call: arguments may come from
// a model, and a model that could say "this target takes a key" could have a payment sent twice. For both kinds
// of targets, make two tools, each with its own hosts.
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import {
  defineTool,
  ToolInDoubtError,
  ToolRefusedError,
  ToolRetryError,
  type Tool,
  type ToolContext,
} from '../tool.ts';
import { addressKind, createAddressGuard, type AddressGuard } from './address-guard.ts';
import { fillIn, hasSecret, parseSecretRules, type SecretOptions } from './header-secrets.ts';
import { hostAddress, parseHostRule } from './host-guard.ts';
import { readAnswer, type HttpOutput } from './http-answer.ts';
import {
  callProblem,
  httpArguments,
  isSafeMethod,
  type HttpArguments,
  type HttpReach,
} from './http-arguments.ts';
import { NotSentError, sendRequest, type ResolvedAddress } from './http-request.ts';
import { createRedactor, type Redactor } from './redactor.ts';

export interface HttpToolOptions extends Pick<
  Tool,
  'description' | 'requiresApproval' | 'keyMaxLength' | 'keyTtl' | 'timeoutMs' | 'attempts'
> {
  /** Default `http`. */
  name?: string;
  /** `api.example.com` (port 443 or 80), `api.example.com:8443`, `*.example.com` (any name below it) */
  allowHosts: readonly string[];
  /**
   * Loopback, private and shared addresses that an allowed host may resolve to: all of them, or a list such
   * as `127.0.0.1` and `10.1.0.0/16`. Default none. Link-local and metadata addresses are never allowed.
   */
  allowPrivate?: boolean | readonly string[];
  /** By environment variable: where its value may be sent. In arguments it is `${NAME}`, in header values only. */
  secrets?: Readonly<Record<string, SecretOptions>>;
  /**
   * Every host of `allowHosts` carries out each `Idempotency-Key` once. Default false: calls other than GET
   * and HEAD have one attempt, and an unclear end is in doubt.
   */
  targetTakesKey?: boolean;
  /** A longer body is not kept. Default 131,072: half of what an output may have, since escapes lengthen it. */
  maxResponseBytes?: number;
  /** Where secrets are read. Default `process.env`. */
  env?: NodeJS.ProcessEnv;
  /** Every address of a host name. Default the system's resolver. */
  resolve?: (hostname: string) => Promise<readonly ResolvedAddress[]>;
}

const defaultMaxResponseBytes = 128 * 1024;

interface HttpSettings {
  reach: HttpReach;
  guard: AddressGuard;
  targetTakesKey: boolean;
  maxResponseBytes: number;
  env: NodeJS.ProcessEnv;
  resolve: NonNullable<HttpToolOptions['resolve']>;
}

/** @throws TypeError naming the option that cannot be used */
export function httpTool(options: HttpToolOptions): Tool {
  const { name = 'http', allowHosts, targetTakesKey = false, maxResponseBytes, ...rest } = options;
  const { allowPrivate, secrets, env, resolve, ...common } = rest;
  if (allowHosts.length === 0)
    throw new TypeError(`tool "${name}": allowHosts is empty, so it could call nothing`);
  if (maxResponseBytes !== undefined && !(Number.isSafeInteger(maxResponseBytes) && maxResponseBytes >= 0)) {
    throw new TypeError(`tool "${name}": maxResponseBytes is a whole number, got ${maxResponseBytes}`);
  }
  const hosts = allowHosts.map(parseHostRule);
  const settings: HttpSettings = {
    reach: { allowHosts: hosts, secrets: parseSecretRules(secrets ?? {}, hosts) },
    guard: createAddressGuard(allowPrivate ?? false),
    targetTakesKey,
    maxResponseBytes: maxResponseBytes ?? defaultMaxResponseBytes,
    env: env ?? process.env,
    resolve: resolve ?? ((hostname) => lookup(hostname, { all: true, verbatim: true })),
  };
  return defineTool({
    description: 'Calls an HTTP API with a JSON body.',
    ...common,
    name,
    arguments: httpArguments(settings.reach),
    idempotency: targetTakesKey ? 'key' : 'none',
    safe: ({ method }) => isSafeMethod(method),
    run: async (context, args) => {
      const redact = createRedactor(settings.reach.secrets.keys(), settings.env);
      try {
        return await callTarget(settings, context, args, redact);
      } catch (error) {
        throw withoutSecrets(error, redact);
      }
    },
  });
}

async function callTarget(
  settings: HttpSettings,
  context: ToolContext,
  args: HttpArguments,
  redact: Redactor,
): Promise<HttpOutput> {
  const { method, headers = {} } = args;
  const { reach, env, targetTakesKey, maxResponseBytes } = settings;
  // The configuration may have changed since the call was frozen.
  const problem = callProblem(args, reach);
  if (problem !== undefined) throw new ToolRefusedError(problem);
  const url = new URL(args.url);
  const addresses = await checkedAddresses(settings, url, context.signal);
  if (hasSecret(headers) && url.protocol === 'http:') checkPlainHttp(url, addresses);
  const body = args.body === undefined ? undefined : JSON.stringify(args.body);
  try {
    const answer = await sendRequest({
      method,
      url,
      headers: {
        accept: 'application/json',
        'user-agent': 'countersign',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...fillIn(headers, env),
        'accept-encoding': 'identity',
        'idempotency-key': context.idempotencyKey,
      },
      ...(body === undefined ? {} : { body }),
      addresses,
      signal: context.signal,
      maxResponseBytes,
    });
    const what = `${method} ${url.origin}${url.pathname}`;
    return readAnswer(
      { what, isSafe: isSafeMethod(method), targetTakesKey, maxResponseBytes },
      answer,
      redact,
    );
  } catch (error) {
    if (error instanceof NotSentError) throw new ToolRetryError(error.message, { clear: true });
    throw error;
  }
}

/** Resolved once; whatever is connected to afterwards is one of these. */
async function checkedAddresses(
  { guard, resolve }: HttpSettings,
  url: URL,
  signal: AbortSignal,
): Promise<readonly ResolvedAddress[]> {
  const host = hostAddress(url);
  const family = isIP(host);
  const addresses = family === 0 ? await resolved(resolve, host, signal) : [{ address: host, family }];
  // One bad address among good ones is no accident.
  for (const { address } of addresses) {
    const problem = guard(address);
    if (problem !== undefined) throw new ToolRefusedError(`${url.host}: ${problem}`);
  }
  return addresses;
}

async function resolved(
  resolve: HttpSettings['resolve'],
  host: string,
  signal: AbortSignal,
): Promise<readonly ResolvedAddress[]> {
  try {
    signal.throwIfAborted();
    const addresses = await Promise.race([resolve(host), aborted(signal)]);
    if (addresses.length === 0) throw new Error('it has no address');
    return addresses;
  } catch (error) {
    throw new ToolRetryError(`${host} was not found: ${(error as Error).message}`, { clear: true });
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(new Error('the time was up')), { once: true });
  });
}

/** A secret crosses no foreign network in the clear. */
function checkPlainHttp(url: URL, addresses: readonly ResolvedAddress[]): void {
  if (addresses.every(({ address }) => addressKind(address) !== 'public')) return;
  throw new ToolRefusedError(`${url.host}: a secret is sent to a public address by https only; use https://`);
}

/** The same kind of error, with a message that may be recorded; what else hangs on it stays here. */
function withoutSecrets(error: unknown, redact: Redactor): Error {
  const message = redact.text(error instanceof Error ? error.message : String(error));
  if (error instanceof ToolRetryError) return new ToolRetryError(message, error);
  if (error instanceof ToolRefusedError) return new ToolRefusedError(message);
  if (error instanceof ToolInDoubtError) return new ToolInDoubtError(message);
  return new Error(message);
}
