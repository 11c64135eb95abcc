// Sandbox-safe. The approval key names one gate of one run and addresses itself:
//   <workflow id>.<position>.<last 12 hex of the root>        refund-ord-1001.refund.046acc729732
// It reads from the right: the root has no dot, the position's dots are escaped, the rest is the id.
// Only unreserved URL characters (RFC 3986), so it needs no escaping anywhere. `~` escapes, like `%` in a
// URL; a part that grows too long by that is `~~` and base64url of its UTF-8. Each gate has exactly one
// key: a text that would encode back to another text is no key.
import { hasLoneSurrogate, utf8Length } from './json-value.ts';
import { positionProblem } from './position.ts';

/** Characters; fits a URL path, a CLI argument and a Slack button value (2,000) with room to spare. */
export const maxApprovalKeyLength = 640;

/** UTF-8 bytes of a workflow id: PostgreSQL visibility loses the whole row beyond 255. */
export const maxWorkflowIdBytes = 255;

// In characters. A part in base64 always fits: 2 + 340 for 255 bytes, 2 + 240 for 180 characters.
// Together with two dots and 12 digits they are the limit of the key: 384 + 242 + 14 = 640.
const idRoom = 384;
const positionRoom = 242;

export interface GateAddress {
  workflowId: string;
  position: string;
  /** the run identity, a UUID */
  root: string;
}

export interface ParsedApprovalKey {
  workflowId: string;
  position: string;
  /** The last digits of the root: the first are the same for all runs of a minute. */
  rootSuffix: string;
}

/** What is wrong with a workflow id that is to have gates, and the rule; undefined when nothing is. */
export function workflowIdProblem(workflowId: unknown): string | undefined {
  if (typeof workflowId !== 'string') return 'a workflow id is a string';
  if (workflowId === '') return 'a workflow id is not empty';
  if (hasLoneSurrogate(workflowId))
    return 'the workflow id holds a lone surrogate; it is not valid Unicode text';
  const size = utf8Length(workflowId);
  if (size <= maxWorkflowIdBytes) return undefined;
  return `the workflow id has ${size} bytes in UTF-8, the limit is ${maxWorkflowIdBytes}; shorten it`;
}

/** @throws RangeError for an id, position or root that its own check would have refused: a bug of the caller. */
export function approvalKey({ workflowId, position, root }: GateAddress): string {
  const problem = workflowIdProblem(workflowId) ?? positionProblem(position);
  if (problem !== undefined) throw new RangeError(`no approval key: ${problem}`);
  const suffix = rootSuffixOf(root);
  if (suffix === undefined) throw new RangeError(`no approval key: the root is a UUID, got "${root}"`);
  return join(workflowId, position, suffix);
}

/** For an address that somebody else wrote: undefined where it can have no key. Never throws. */
export function approvalKeyOf(address: { [Part in keyof GateAddress]: unknown }): string | undefined {
  const { workflowId, position, root } = address;
  if (workflowIdProblem(workflowId) !== undefined || positionProblem(position) !== undefined)
    return undefined;
  if (typeof root !== 'string' || rootSuffixOf(root) === undefined) return undefined;
  return approvalKey(address as GateAddress);
}

/** The gate that a key names, or undefined when the text is no key. Never throws. */
export function parseApprovalKey(key: unknown): ParsedApprovalKey | undefined {
  if (typeof key !== 'string' || key.length > maxApprovalKeyLength) return undefined;
  const parts = /^([A-Za-z0-9._~-]+)\.([A-Za-z0-9_~-]+)\.([0-9a-f]{12})$/.exec(key);
  if (parts === null) return undefined;
  const [, idPart = '', positionPart = '', rootSuffix = ''] = parts;
  const workflowId = decode(idPart);
  const position = decode(positionPart);
  if (workflowId === undefined || workflowIdProblem(workflowId) !== undefined) return undefined;
  if (position === undefined || positionProblem(position) !== undefined) return undefined;
  return join(workflowId, position, rootSuffix) === key ? { workflowId, position, rootSuffix } : undefined;
}

/** Does the key name a gate of this run (and, where given, this position)? Never throws. */
export function keyMatches(
  key: unknown,
  gate: { workflowId: string; position?: string; root: string },
): boolean {
  const parsed = parseApprovalKey(key);
  return (
    parsed !== undefined &&
    parsed.workflowId === gate.workflowId &&
    parsed.rootSuffix === rootSuffixOf(gate.root) &&
    (gate.position === undefined || parsed.position === gate.position)
  );
}

function rootSuffixOf(root: string): string | undefined {
  return /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}([0-9a-f]{12})$/.exec(root)?.[1];
}

function join(workflowId: string, position: string, rootSuffix: string): string {
  const idPart = encode(workflowId, idRoom, /[!~*'()]/g);
  return `${idPart}.${encode(position, positionRoom, /[!~*'().]/g)}.${rootSuffix}`;
}

/** `alsoEscaped`: what encodeURIComponent leaves alone and a key must not have as it is. */
function encode(text: string, room: number, alsoEscaped: RegExp): string {
  const uri = encodeURIComponent(text);
  const escaped = uri.replace(alsoEscaped, percentOf).replaceAll('%', '~');
  return escaped.length <= room ? escaped : `~~${base64Url(bytesOf(uri))}`;
}

function decode(part: string): string | undefined {
  const uri = part.startsWith('~~') ? uriOfBase64Url(part.slice(2)) : part.replaceAll('~', '%');
  try {
    return uri === undefined ? undefined : decodeURIComponent(uri);
  } catch {
    return undefined; // not UTF-8, or a `~` without two digits
  }
}

function percentOf(character: string): string {
  return percentOfByte(character.charCodeAt(0));
}

function percentOfByte(byte: number): string {
  return `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
}

/** UTF-8 bytes, from the output of encodeURIComponent: the sandbox-safe way to them. */
function bytesOf(uri: string): number[] {
  return (uri.match(/%..|[^%]/g) ?? []).map((unit) =>
    unit.length === 1 ? unit.charCodeAt(0) : Number.parseInt(unit.slice(1), 16),
  );
}

const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

function base64Url(bytes: readonly number[]): string {
  let text = '';
  for (let index = 0; index < bytes.length; index += 3) {
    const [first = 0, second = 0, third = 0] = bytes.slice(index, index + 3);
    const block = (first << 16) | (second << 8) | third;
    const count = Math.min(bytes.length - index, 3) + 1;
    for (let digit = 0; digit < count; digit += 1) text += digits.charAt((block >> (18 - 6 * digit)) & 63);
  }
  return text;
}

/** The bytes in percent form. Leftover bits are not looked at: encoding again finds them out. */
function uriOfBase64Url(text: string): string | undefined {
  let uri = '';
  let block = 0;
  let bits = 0;
  for (const character of text) {
    const digit = digits.indexOf(character);
    if (digit === -1) return undefined;
    block = ((block << 6) | digit) & 0xffff;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    uri += percentOfByte((block >> bits) & 0xff);
  }
  return uri;
}
