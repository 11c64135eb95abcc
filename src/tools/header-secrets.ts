// Secrets in header values. Arguments hold only the placeholder `${ENV_NAME}`; the value is read inside the
// activity, goes to the hosts that are named for it and nowhere else, and is taken out of everything that
// comes back (P10; redactor.ts). Which name may go where is the deployment's word, never the caller's.
import { ToolRetryError } from '../tool.ts';
import { covers, isAllowed, parseHostRule, showRule, type HostRule } from './host-guard.ts';

export interface SecretOptions {
  /** where the value may be sent, of what the tool's allow list holds and written as there */
  hosts: readonly string[];
  /** headers that may hold it; default `authorization` */
  headers?: readonly string[];
}

/** By the name of the environment variable. */
export type SecretRules = ReadonlyMap<string, { hosts: HostRule[]; headers: string[] }>;

const placeholder = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g;

/** What can stand in a header (RFC 9110 §5.5), without the bytes over 126 that servers read differently. */
const headerText = /^[\x20-\x7e\t]*$/;

/** Headers whose value is a credential wherever they are used: literally it would stand in the history. */
const credentialHeaders = [
  ...['authorization', 'cookie', 'api-key', 'apikey', 'x-api-key', 'x-auth-token', 'x-access-token'],
];

/** @throws TypeError for a bad variable name, no hosts, or a host that the tool may not call */
export function parseSecretRules(
  options: Readonly<Record<string, SecretOptions>>,
  allowHosts: readonly HostRule[],
): SecretRules {
  return new Map(
    Object.entries(options).map(([name, { hosts, headers = ['authorization'] }]) => {
      if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
        throw new TypeError(`secrets: "${name}" is not the name of an environment variable`);
      }
      if (hosts.length === 0) throw new TypeError(`secrets: ${name} names no host that it may be sent to`);
      const rules = hosts.map(parseHostRule);
      const foreign = rules.find((rule) => !allowHosts.some((wide) => covers(wide, rule)));
      if (foreign !== undefined) {
        throw new TypeError(`secrets: ${name}: the host ${showRule(foreign)} is not one of allowHosts`);
      }
      return [name, { hosts: rules, headers: headers.map((header) => header.toLowerCase()) }];
    }),
  );
}

/** Why this header may not go to this URL with what it holds, or undefined. `header` is in lower case. */
export function headerSecretProblem(
  rules: SecretRules,
  header: string,
  value: string,
  url: URL,
): string | undefined {
  if (value.replaceAll(placeholder, '').includes('${')) {
    return `header "${header}": "\${" starts a placeholder such as \${STRIPE_KEY}, and this one is none`;
  }
  const names = namesIn(value);
  for (const name of names) {
    const rule = rules.get(name);
    if (rule === undefined) {
      const known = [...rules.keys()].join(', ') || 'none';
      return `header "${header}": \${${name}} is not a secret of this tool; it has ${known}`;
    }
    if (!rule.headers.includes(header)) {
      return `header "${header}": \${${name}} may stand only in ${rule.headers.join(', ')}`;
    }
    if (!isAllowed(url, rule.hosts)) {
      const hosts = rule.hosts.map(showRule).join(', ');
      return `header "${header}": \${${name}} may be sent only to ${hosts}, not to ${url.host}`;
    }
  }
  if (names.length === 0 && credentialHeaders.includes(header)) {
    return (
      `header "${header}" holds a credential, which would stand in the history: ` +
      'declare it in the secrets of the tool and write its placeholder, such as ${STRIPE_KEY}'
    );
  }
  return undefined;
}

/** Why a text outside of headers may not hold what it holds: there, a placeholder would be sent as it is. */
export function strayPlaceholderProblem(rules: SecretRules, place: string, text: string): string | undefined {
  const name = namesIn(text).find((candidate) => rules.has(candidate));
  return name === undefined
    ? undefined
    : `${place}: \${${name}} is a secret and may stand only in the headers named for it`;
}

export function hasSecret(headers: Readonly<Record<string, string>>): boolean {
  return Object.values(headers).some((value) => namesIn(value).length > 0);
}

/** Headers with their values filled in. @throws ToolRetryError, clear: another worker may have the variable */
export function fillIn(
  headers: Readonly<Record<string, string>>,
  env: NodeJS.ProcessEnv,
): Record<string, string> {
  const fill = (_: string, name: string): string => {
    const value = env[name];
    if (!value) throw new ToolRetryError(`the environment variable ${name} is not set here`, { clear: true });
    if (!headerText.test(value)) {
      const what = 'a character that a header cannot hold, such as a line end; set it without';
      throw new ToolRetryError(`the environment variable ${name} holds ${what}`, { clear: true });
    }
    return value;
  };
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, value.replaceAll(placeholder, fill)]),
  );
}

function namesIn(text: string): string[] {
  return [...text.matchAll(placeholder)].map(([, name = '']) => name);
}
