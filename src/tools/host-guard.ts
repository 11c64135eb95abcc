// Which URLs a tool may call: http or https, no credentials in it, a host of the allow list, written the one
// way that a person can read. What an approver sees as the host is what is connected to.
import { isIP } from 'node:net';
import { printable } from '../core/json-value.ts';

/** One entry of an allow list. */
export interface HostRule {
  /** as a URL has it; of `*.example.com` what follows the `*.` */
  host: string;
  /** any name below `host`, and not `host` itself */
  below: boolean;
  /** absent: the scheme's own, 443 or 80 */
  port?: string;
}

/** Longer ones are refused by many servers (RFC 9110 §4.1 asks for 8,000 at least). */
const maxUrlLength = 8_000;

/** The URL as it will be called, or what is wrong with how it is written. */
export function readUrl(text: string): { url: URL } | { problem: string } {
  const shown = `"${printable(text, 200)}"`;
  if (text.length > maxUrlLength) return { problem: `the URL has over ${maxUrlLength} characters` };
  // URL parsers drop or turn these silently.
  if (/[\p{Cc}\s\\]/u.test(text)) {
    return { problem: `${shown} holds a space, a control character or a backslash; percent-encode it` };
  }
  const authority = /^https?:\/\/([^/?#]+)/i.exec(text)?.[1];
  if (authority === undefined || !URL.canParse(text)) {
    return { problem: `${shown} is not a URL that starts with https:// or http:// and a host` };
  }
  const url = new URL(text);
  if (authority.includes('@')) {
    return { problem: `${hostOnly(url)} has a user or password in its URL; send it as a header secret` };
  }
  const written = authority.replace(/:\d*$/, '').toLowerCase();
  if (written !== url.hostname) {
    return { problem: `the host "${printable(written, 100)}" means ${url.hostname}; write it like that` };
  }
  if (url.hostname.endsWith('.')) {
    return { problem: `the host "${printable(written, 100)}" ends in a dot; write it without` };
  }
  if (text.includes('#')) {
    return { problem: `${hostOnly(url)} has a fragment (#…), which is never sent; take it out` };
  }
  return { url };
}

/** @throws TypeError when `text` is not `host`, `host:port`, or one of them after `*.` */
export function parseHostRule(text: string): HostRule {
  const match = /^(\*\.)?(.+?)(?::(\d{1,5}))?$/.exec(text.toLowerCase());
  const [, wildcard, host = '', port] = match ?? [];
  const read = readUrl(`https://${host}`);
  const isHost = 'url' in read && read.url.host === host && !/[*]|^\.|\.\./.test(host);
  if (!isHost || Number(port ?? 1) < 1 || Number(port ?? 1) > 65_535) {
    throw new TypeError(
      `a host is written like "api.example.com", "api.example.com:8443" or "*.example.com", got ${JSON.stringify(text)}`,
    );
  }
  if (wildcard !== undefined && (isIP(hostAddress(read.url)) !== 0 || !host.includes('.'))) {
    throw new TypeError(`"${text}" allows too much; "*." stands before a name with a dot in it`);
  }
  return { host, below: wildcard !== undefined, ...(port === undefined ? {} : { port }) };
}

export function isAllowed(url: URL, rules: readonly HostRule[]): boolean {
  const port = portOf(url);
  return rules.some((rule) => {
    const isHost = rule.below ? url.hostname.endsWith(`.${rule.host}`) : url.hostname === rule.host;
    return isHost && (rule.port === undefined ? url.port === '' : rule.port === port);
  });
}

/** Whether everything that `narrow` allows is allowed by `wide`. */
export function covers(wide: HostRule, narrow: HostRule): boolean {
  if (wide.port !== narrow.port) return false;
  if (wide.host === narrow.host && wide.below === narrow.below) return true;
  return wide.below && narrow.host.endsWith(`.${wide.host}`);
}

export function showRule({ host, below, port }: HostRule): string {
  return `${below ? '*.' : ''}${host}${port === undefined ? '' : `:${port}`}`;
}

/** Where the URL leads, without path and query, for messages. */
export function hostOnly(url: URL): string {
  return `${url.protocol}//${url.host}`;
}

export function portOf(url: URL): string {
  return url.port || (url.protocol === 'https:' ? '443' : '80');
}

/** The host as node:net takes it: an IPv6 address without its brackets. */
export function hostAddress(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '');
}
