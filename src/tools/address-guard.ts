// Which network addresses a tool may connect to. Public ones; private ones only where the deployment says so;
// never those that hand out a machine's credentials or reach more than one machine. An address is judged by
// its bits, so no spelling of it (IPv4-mapped IPv6, NAT64) is another address.
import { isIP } from 'node:net';

export type AddressKind =
  | 'public'
  | 'loopback'
  | 'private'
  | 'shared' // RFC 6598, carrier-grade NAT
  | 'link-local'
  | 'metadata' // of cloud machines: it hands out their credentials
  | 'multicast'
  | 'reserved'
  | 'unspecified';

/** What `allowPrivate` can open. The rest stays closed: no target of a business call is there. */
const openable: readonly AddressKind[] = ['loopback', 'private', 'shared'];

interface Range {
  bits: 32 | 128;
  first: bigint;
  prefix: number;
}

// IANA special-purpose address registries (RFC 6890 and its updates); the first that holds an address counts.
const kinds: [AddressKind, string[]][] = [
  [
    'metadata',
    // AWS, GCP, Azure and most others · AWS ECS · Alibaba · Oracle · Azure wire server · AWS and GCP over IPv6
    [
      ...['169.254.169.254/32', '169.254.170.2/32', '100.100.100.200/32', '192.0.0.192/32'],
      ...['168.63.129.16/32', 'fd00:ec2::254/128', 'fd20:ce::254/128'],
    ],
  ],
  ['unspecified', ['0.0.0.0/8', '::/128']],
  ['loopback', ['127.0.0.0/8', '::1/128']],
  ['private', ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7']],
  ['shared', ['100.64.0.0/10']],
  ['link-local', ['169.254.0.0/16', 'fe80::/10']],
  ['multicast', ['224.0.0.0/4', 'ff00::/8']],
  [
    'reserved',
    // protocol assignments, documentation, benchmarks, 6to4 and its relays, the future
    [
      ...['192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '198.18.0.0/15', '198.51.100.0/24'],
      ...['203.0.113.0/24', '240.0.0.0/4', '2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'],
    ],
  ],
  ['public', ['0.0.0.0/0', '2000::/3']],
  ['reserved', ['::/0']],
];

const ranges = kinds.flatMap(([kind, cidrs]) => cidrs.map((cidr) => ({ kind, range: rangeOf(cidr) })));

/** IPv6 that stands for an IPv4 address: IPv4-mapped (RFC 4291) and NAT64 (RFC 6052). */
const embedding = ['::ffff:0:0/96', '64:ff9b::/96'].map(rangeOf);

/** The kind of an IP address as node:net takes it; `reserved` for what is none. */
export function addressKind(address: string): AddressKind {
  const parsed = parseAddress(address);
  if (parsed === undefined) return 'reserved';
  return ranges.find(({ range }) => holds(range, parsed))?.kind ?? 'reserved';
}

/** Why an address may not be connected to, or undefined. */
export type AddressGuard = (address: string) => string | undefined;

/**
 * @param allowPrivate true: every loopback, private and shared address; a list: those addresses and ranges
 * (`127.0.0.1`, `10.1.0.0/16`). @throws TypeError when the list names something that is never allowed
 */
export function createAddressGuard(allowPrivate: boolean | readonly string[]): AddressGuard {
  const allowed = typeof allowPrivate === 'boolean' ? [] : allowPrivate.map(openedRange);
  return (address) => {
    const kind = addressKind(address);
    if (kind === 'public') return undefined;
    if (!openable.includes(kind)) return `${address} is a ${kind} address, which is never allowed`;
    const parsed = parseAddress(address);
    const isAllowed =
      allowPrivate === true || (parsed !== undefined && allowed.some((range) => holds(range, parsed)));
    return isAllowed
      ? undefined
      : `${address} is a ${kind} address; the tool's allowPrivate does not hold it`;
  };
}

function openedRange(text: string): Range {
  const [address = '', prefix] = text.split('/');
  const bits = isIP(address) === 4 ? 32 : 128;
  const isPrefix = prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits);
  if (parseAddress(address) === undefined || !isPrefix) {
    throw new TypeError(`allowPrivate holds addresses and ranges such as "10.1.0.0/16", got "${text}"`);
  }
  const kind = addressKind(address);
  if (kind === 'public') {
    throw new TypeError(`allowPrivate: ${text} is public and needs no permission; allowHosts names hosts`);
  }
  if (!openable.includes(kind)) {
    throw new TypeError(`allowPrivate: ${text} is ${kind}; only ${openable.join(', ')} can be allowed`);
  }
  return rangeOf(prefix === undefined ? `${address}/${bits}` : text);
}

function rangeOf(cidr: string): Range {
  const [address = '', prefix] = cidr.split('/');
  const { bits, value } = parseBits(address);
  return { bits, prefix: Number(prefix), first: value };
}

function holds(range: Range, { bits, value }: { bits: 32 | 128; value: bigint }): boolean {
  if (range.bits !== bits) return false;
  const rest = BigInt(bits - range.prefix);
  return value >> rest === range.first >> rest;
}

/** The address, the embedded one where it has one; undefined for what is none, or has a zone. */
function parseAddress(address: string): { bits: 32 | 128; value: bigint } | undefined {
  if (isIP(address) === 0 || address.includes('%')) return undefined;
  const parsed = parseBits(address);
  if (!embedding.some((range) => holds(range, parsed))) return parsed;
  return { bits: 32, value: parsed.value & 0xffff_ffffn };
}

function parseBits(address: string): { bits: 32 | 128; value: bigint } {
  if (isIP(address) === 4) {
    const value = address.split('.').reduce((sum, part) => (sum << 8n) | BigInt(part), 0n);
    return { bits: 32, value };
  }
  // The URL parser writes every IPv6 address in groups of hex, with at most one `::`.
  const [left = '', right] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::');
  const groups = (text: string | undefined) => (text ? text.split(':') : []);
  const [head, tail] = [groups(left), groups(right)];
  const zeros = Array<string>(8 - head.length - tail.length).fill('0');
  const value = [...head, ...zeros, ...tail].reduce((sum, part) => (sum << 16n) | BigInt(`0x${part}`), 0n);
  return { bits: 128, value };
}
