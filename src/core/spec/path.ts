// Sandbox-safe. Places inside a value: how they are followed, and named for people: `input.lines[0]["unit price"]`.
import type { Json, JsonObject } from '../json.ts';
import { type JsonPath, printable } from '../json-value.ts';

const plainName = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** The path in the syntax of templates, below `root`; harmless to print. */
export function pathText(root: string, path: JsonPath): string {
  let text = root;
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`;
    else if (plainName.test(part)) text += text === '' ? part : `.${part}`;
    else text += `["${printable(part, 60)}"]`;
  }
  return text;
}

/** A JSON pointer (RFC 6901) as the path of that place in `value`: array positions become numbers. */
export function pathOfPointer(pointer: string, value: unknown): (string | number)[] {
  let at = value;
  return pointer
    .split('/')
    .slice(1)
    .map((part) => {
      const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
      const key = Array.isArray(at) ? Number(name) : name;
      at = valueAt(at, [key]);
      return key;
    });
}

/** The value at `path`, own members only; undefined when there is none. */
export function valueAt(value: unknown, path: JsonPath): unknown {
  let at = value;
  for (const part of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, part)) return undefined;
    at = (at as Record<string | number, unknown>)[part];
  }
  return at;
}

/**
 * The value that a path of a template names; where there is none, the last value on the way and its place in
 * the path. Own members and positions only: `constructor` or `length` is no data.
 */
export function followPath(
  data: Json,
  path: readonly string[],
): { value: Json } | { reached: Json; at: number } {
  let value = data;
  for (const [at, name] of path.entries()) {
    const isOwn = Array.isArray(value)
      ? /^(?:0|[1-9]\d*)$/.test(name) && Object.hasOwn(value, name)
      : typeof value === 'object' && value !== null && Object.hasOwn(value, name);
    const next: Json | undefined = isOwn ? (value as JsonObject)[name] : undefined;
    if (next === undefined) return { reached: value, at };
    value = next;
  }
  return { value };
}

/** What kind of value it is, in a message. */
export function kindOf(value: Json): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** A value in a message: what it is, and the short ones themselves. */
export function shown(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'object') return 'an object';
  if (typeof value === 'string') return `"${printable(value, 60)}"`;
  return `${JSON.stringify(value)} (${typeof value})`;
}

/** Of JSON Schema, and zod's `record`. */
export const typeNames: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  integer: 'an integer',
  boolean: 'true or false',
  null: 'null',
  object: 'an object',
  record: 'an object',
  array: 'an array',
};
