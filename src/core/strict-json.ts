// Reads JSON text that may be approved and hashed: whatever two JSON readers could understand
// differently is refused, with line, column, pointer and remedy. JSON.parse silently keeps the last of
// two equal keys and rounds numbers; an approver would then see something else than was sent.
import { decodeUtf8 } from './decode-utf8.ts';
import { jsonNumberProblem } from './json-number.ts';
import type { Json } from './json.ts';
import {
  hasLoneSurrogate,
  jsonPointer,
  maxDepth,
  maxNodes,
  placeOf,
  quoted,
  tooDeep,
  tooManyNodes,
} from './json-value.ts';

/** The text is not JSON in the strict sense. `message` holds place and remedy. */
export class JsonProblemError extends Error {
  override readonly name = 'JsonProblemError';
  readonly code = 'invalid_json';
  /** RFC 6901; empty for the whole text */
  readonly pointer: string;
  /** From 1. */
  readonly line: number;
  /** From 1, in UTF-16 units, as editors count. */
  readonly column: number;

  constructor(text: string, offset: number, pointer: string, problem: string) {
    const before = text.slice(0, offset).split('\n');
    const line = before.length;
    const column = (before.at(-1)?.length ?? 0) + 1;
    const place = placeOf(pointer);
    super(`line ${line}, column ${column}${place === '' ? '' : `, ${place}`}: ${problem}`);
    this.pointer = pointer;
    this.line = line;
    this.column = column;
  }
}

interface Reader {
  text: string;
  offset: number;
  path: (string | number)[];
  depth: number;
  nodes: number;
}

/** The value of `text`, as JSON.parse would give it (but 0 for -0). @throws JsonProblemError */
export function parseStrictJson(text: string | Uint8Array): Json {
  const reader: Reader = {
    text: typeof text === 'string' ? text : textOf(text),
    offset: 0,
    path: [],
    depth: 0,
    nodes: 0,
  };
  if (reader.text.startsWith('\uFEFF'))
    fail(reader, 'the text starts with a byte order mark; save it without one');
  skipSpace(reader);
  if (reader.offset === reader.text.length) fail(reader, 'the text is empty; a JSON value is needed');
  const value = readValue(reader);
  skipSpace(reader);
  if (reader.offset < reader.text.length)
    fail(reader, `${found(reader)} after the end of the value; remove it`);
  return value;
}

function textOf(bytes: Uint8Array): string {
  const decoded = decodeUtf8(bytes);
  if ('text' in decoded) return decoded.text;
  const { validPrefix } = decoded;
  throw new JsonProblemError(
    validPrefix,
    validPrefix.length,
    '',
    'the bytes are not UTF-8; save the text as UTF-8',
  );
}

function readValue(reader: Reader): Json {
  reader.nodes += 1;
  if (reader.nodes > maxNodes) fail(reader, tooManyNodes());
  switch (reader.text[reader.offset]) {
    case '{':
      return inside(reader, readObject);
    case '[':
      return inside(reader, readArray);
    case '"':
      return readString(reader);
    default:
      return /[A-Za-z_$]/.test(reader.text.charAt(reader.offset)) ? readWord(reader) : readNumber(reader);
  }
}

function inside<Container>(reader: Reader, read: (reader: Reader) => Container): Container {
  if (reader.depth >= maxDepth) fail(reader, tooDeep());
  reader.depth += 1;
  reader.offset += 1;
  skipSpace(reader);
  const container = read(reader);
  reader.depth -= 1;
  return container;
}

function readObject(reader: Reader): Json {
  const object: { [name: string]: Json } = {};
  if (take(reader, '}')) return object;
  for (;;) {
    const start = reader.offset;
    if (reader.text[start] !== '"') fail(reader, `${found(reader)} where a key in double quotes is needed`);
    const key = readString(reader);
    reader.path.push(key);
    if (Object.hasOwn(object, key)) fail(reader, `duplicate key ${quoted(key)}; keep one`, start);
    skipSpace(reader);
    if (!take(reader, ':')) fail(reader, `${found(reader)} where ":" is needed after the key`);
    skipSpace(reader);
    const value = readValue(reader);
    // An assignment to `__proto__` would set the prototype instead of a member.
    Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
    reader.path.pop();
    if (closes(reader, '}')) return object;
  }
}

function readArray(reader: Reader): Json {
  const array: Json[] = [];
  if (take(reader, ']')) return array;
  for (;;) {
    reader.path.push(array.length);
    array.push(readValue(reader));
    reader.path.pop();
    if (closes(reader, ']')) return array;
  }
}

/** After a member: true at the closing bracket, false after a comma. */
function closes(reader: Reader, bracket: string): boolean {
  skipSpace(reader);
  if (take(reader, bracket)) return true;
  if (!take(reader, ',')) fail(reader, `${found(reader)} where "," or "${bracket}" is needed`);
  skipSpace(reader);
  if (reader.text[reader.offset] === bracket) fail(reader, `a comma before "${bracket}"; remove the comma`);
  return false;
}

function readString(reader: Reader): string {
  const start = reader.offset;
  reader.offset += 1;
  let value = '';
  for (;;) {
    value += takePlain(reader);
    if (take(reader, '"')) break;
    if (reader.offset === reader.text.length) fail(reader, 'the string does not end; close it with "', start);
    if (reader.text[reader.offset] !== '\\') {
      fail(reader, `${found(reader)} in a string; write control characters as escapes, a line feed as \\n`);
    }
    const escape = match(reader, /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y);
    if (escape === '')
      fail(reader, 'unknown escape; JSON has \\" \\\\ \\/ \\b \\f \\n \\r \\t and \\u with 4 hex digits');
    value += JSON.parse(`"${escape}"`) as string;
  }
  if (hasLoneSurrogate(value))
    fail(reader, 'the string holds a lone surrogate; it is not valid Unicode text', start);
  return value;
}

/** The characters that stand for themselves, up to a quote, an escape or a control character. */
function takePlain(reader: Reader): string {
  const start = reader.offset;
  for (;;) {
    const code = reader.text.charCodeAt(reader.offset);
    // NaN, after the end, is not >= either.
    if (!(code >= 0x20) || code === 0x22 || code === 0x5c) return reader.text.slice(start, reader.offset);
    reader.offset += 1;
  }
}

const words = new Map([
  ['true', true],
  ['false', false],
  ['null', null],
]);

function readWord(reader: Reader): boolean | null {
  const start = reader.offset;
  const word = match(reader, /[A-Za-z_$][\w$]*/y);
  const value = words.get(word);
  if (value !== undefined) return value;
  return fail(reader, `${quoted(word)} is not JSON; use a number, true, false, null or a "string"`, start);
}

function readNumber(reader: Reader): number {
  const start = reader.offset;
  const literal = match(reader, /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y);
  if (literal === '') fail(reader, `${found(reader)} where a value is needed`);
  const problem = jsonNumberProblem(literal);
  if (problem !== undefined) fail(reader, problem, start);
  const value = Number(literal);
  // -0 would become 0 when it is recorded, and a replay would see another value than the first run.
  return value === 0 ? 0 : value;
}

/** What stands at the reader's place, for a message; with a word on what it often means. */
function found(reader: Reader): string {
  const character = reader.text.slice(reader.offset).match(/^./su)?.[0];
  if (character === undefined) return 'the text ends';
  if (character === '/') return '"/" (JSON has no comments)';
  if (character === "'") return '"\'" (JSON has only double quotes)';
  return quoted(character);
}

function take(reader: Reader, character: string): boolean {
  if (reader.text[reader.offset] !== character) return false;
  reader.offset += 1;
  return true;
}

/** `pattern` is sticky; an empty text when it does not match. */
function match(reader: Reader, pattern: RegExp): string {
  pattern.lastIndex = reader.offset;
  const text = pattern.exec(reader.text)?.[0] ?? '';
  reader.offset += text.length;
  return text;
}

function skipSpace(reader: Reader): void {
  match(reader, /[ \t\r\n]*/y);
}

function fail(reader: Reader, problem: string, offset = reader.offset): never {
  throw new JsonProblemError(reader.text, offset, jsonPointer(reader.path), problem);
}
