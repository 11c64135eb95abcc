// Hashes, keys and ids a second time, on node:crypto alone: a bug of the product's own must not check itself.
import { createHash } from 'node:crypto';

/** Canonical JSON (RFC 8785) of a value that is JSON. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = value as Record<string, unknown>;
  // the default order of sort() is by UTF-16 code units, as the RFC has it
  const parts = Object.keys(members)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${canonical(members[name])}`);
  return `{${parts.join(',')}}`;
}

export function hashOf(value: unknown): string {
  return `sha256:${sha256(canonical(value))}`;
}

/** What a gate before a tool is decided on. */
export function callHash(tool: string, args: unknown): string {
  return hashOf({ tool, arguments: args });
}

/** `<root>:<position>`, in a child run `<root>:<prefix>/<position>` (DESIGN §4). */
export function effectKey(place: { root: string; prefix?: string }, position: string): string {
  return `${place.root}:${place.prefix === undefined ? '' : `${place.prefix}/`}${position}`;
}

/** `<workflow id>.<position>.<last 12 hex of the root>`, escaped so that it is itself in a URL. */
export function gateKey(workflowId: string, position: string, root: string): string {
  return `${part(workflowId, 384, /[!~*'()]/g)}.${part(position, 242, /[!~*'().]/g)}.${root.slice(-12)}`;
}

function part(text: string, room: number, more: RegExp): string {
  const hex = (character: string): string => `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
  const escaped = encodeURIComponent(text).replace(more, hex).replaceAll('%', '~');
  return escaped.length <= room ? escaped : `~~${Buffer.from(text).toString('base64url')}`;
}

/** The id that the API gives to a decision with an Idempotency-Key. */
export function decisionIdOf(person: string, key: string, idempotencyKey: string): string {
  return sha256(canonical([person, key, idempotencyKey])).slice(0, 32);
}

function sha256(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}
