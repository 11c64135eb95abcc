// Sandbox-safe. Is an in-process value inside the JSON data model? A value outside is refused with its
// path and never silently changed: what JSON.stringify would drop or convert, nobody has approved.
// Values may come from another realm (the workflow sandbox), so nothing is told by identity or instanceof.

/** Deeper than any case that a person can judge, and far from every walker's stack limit. */
export const maxDepth = 64;

/** Values in all, containers included: more than a person can read, and still checked in milliseconds. */
export const maxNodes = 10_000;

export interface JsonValueProblem {
  /** RFC 6901; empty for the value itself */
  pointer: string;
  message: string;
}

export type JsonPath = readonly (string | number)[];

interface Walk {
  path: (string | number)[];
  ancestors: object[];
  nodes: number;
}

/** What keeps `value` from being JSON, with the remedy; undefined when nothing does. */
export function jsonValueProblem(value: unknown): JsonValueProblem | undefined {
  const walk: Walk = { path: [], ancestors: [], nodes: 0 };
  const problem = valueProblem(value, walk);
  if (problem === undefined) return undefined;
  // A problem ends the walk where it stands, so the path is still that of the culprit.
  const pointer = jsonPointer(walk.path);
  return { pointer, message: `${placeOf(pointer) || 'at the top'}: ${problem}` };
}

/** RFC 6901. */
export function jsonPointer(path: JsonPath): string {
  return path.map((part) => `/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

/** A pointer in a message: `at /a/b`, harmless to print and of bounded length; empty for the top. */
export function placeOf(pointer: string): string {
  return pointer === '' ? '' : `at ${printable(pointer, 160)}`;
}

/** A key or literal in a message: quoted, harmless to print, cut. */
export function quoted(text: string): string {
  return `"${printable(text, 40)}"`;
}

/** `text` cut to `length` characters, with control, direction and surrogate characters made visible. */
export function printable(text: string, length: number): string {
  const cut = text.length > length ? `${text.slice(0, length)}…` : text;
  return cut.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, (character) => {
    return `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`;
  });
}

/** With the `u` flag a surrogate of a proper pair is not a character of its own, so this finds lone ones. */
export function hasLoneSurrogate(text: string): boolean {
  return /\p{Surrogate}/u.test(text);
}

/** Bytes of `text` in UTF-8; a lone surrogate counts 3, as encoders replace it with U+FFFD. */
export function utf8Length(text: string): number {
  let length = 0;
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    length += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  }
  return length;
}

function valueProblem(value: unknown, walk: Walk): string | undefined {
  walk.nodes += 1;
  if (walk.nodes > maxNodes) return tooManyNodes();
  switch (typeof value) {
    case 'boolean':
      return undefined;
    case 'number':
      return Number.isFinite(value) ? undefined : `${value} is not a JSON number; use null or a string`;
    case 'string':
      return hasLoneSurrogate(value)
        ? 'the string holds a lone surrogate; it is not valid Unicode text'
        : undefined;
    case 'object':
      return value === null ? undefined : containerProblem(value, walk);
    case 'undefined':
      return 'undefined is not JSON; leave the member out or use null';
    case 'bigint':
      return 'a BigInt is not JSON; send it as a string';
    default:
      return `a ${typeof value} is not JSON; leave it out`;
  }
}

function containerProblem(container: object, walk: Walk): string | undefined {
  if (walk.ancestors.includes(container)) return 'the value contains itself; JSON has no cycles';
  if (walk.ancestors.length >= maxDepth) return tooDeep();
  const kindProblem = Array.isArray(container) ? arrayProblem(container) : objectProblem(container);
  if (kindProblem !== undefined) return kindProblem;

  walk.ancestors.push(container);
  const isArray = Array.isArray(container);
  for (const name of Object.getOwnPropertyNames(container)) {
    if (isArray && name === 'length') continue;
    // A lone surrogate has no place in a pointer, so this one points at the object.
    if (hasLoneSurrogate(name)) return `the key ${quoted(name)} holds a lone surrogate; rename it`;
    walk.path.push(isArray ? Number(name) : name);
    const property = Object.getOwnPropertyDescriptor(container, name);
    // The value of a getter may be another one when it is read again.
    if (property === undefined || !('value' in property)) return 'a getter is not JSON; use a plain property';
    if (property.enumerable !== true) return 'a hidden (non-enumerable) property is not JSON; leave it out';
    const problem = valueProblem(property.value, walk);
    if (problem !== undefined) return problem;
    walk.path.pop();
  }
  walk.ancestors.pop();
  return undefined;
}

function arrayProblem(array: unknown[]): string | undefined {
  // Before the names are listed: `new Array(1e9)` costs nothing to make.
  if (array.length >= maxNodes) return tooManyNodes();
  // In every realm Array.prototype is an array itself, and a subclass's prototype is not.
  const prototype: unknown = Object.getPrototypeOf(array);
  if (!Array.isArray(prototype)) return `${kindOf(array)} is not JSON; use a plain array`;
  if (Object.getOwnPropertySymbols(array).length > 0) return symbolKey();
  for (let index = 0; index < array.length; index += 1) {
    if (!Object.hasOwn(array, index)) return `the array has a hole at index ${index}; use null`;
  }
  // 'length' is the one own name that is not an element.
  if (Object.getOwnPropertyNames(array).length !== array.length + 1) {
    return 'the array has named properties, which JSON would drop; use an object';
  }
  return undefined;
}

function objectProblem(object: object): string | undefined {
  const prototype: unknown = Object.getPrototypeOf(object);
  if (prototype !== null && !isObjectPrototype(prototype)) {
    const kind = kindOf(object);
    return `${kind} is not JSON; ${remedies[kind] ?? 'use a plain object'}`;
  }
  return Object.getOwnPropertySymbols(object).length > 0 ? symbolKey() : undefined;
}

const remedies: Record<string, string> = {
  'a Date': 'send it as a string (toISOString)',
  'a Map': 'use a plain object',
  'a Set': 'use an array',
};

/** Object.prototype of this realm or of any other. */
function isObjectPrototype(prototype: unknown): boolean {
  return (
    typeof prototype === 'object' &&
    Object.getPrototypeOf(prototype) === null &&
    Object.hasOwn(prototype as object, 'hasOwnProperty')
  );
}

/** `a Date`, `an instance of Money`: read without running a getter of the value. */
function kindOf(value: object): string {
  const builtIn = /^\[object (Date|Map|Set|RegExp|Error|Promise|Uint8Array)\]$/.exec(
    Object.prototype.toString.call(value),
  )?.[1];
  if (builtIn !== undefined) return `a ${builtIn}`;
  const prototype: unknown = Object.getPrototypeOf(value);
  const maker: unknown = Object.getOwnPropertyDescriptor(prototype ?? {}, 'constructor')?.value;
  const name = typeof maker === 'function' ? maker.name : '';
  return name === '' ? 'an object with a prototype of its own' : `an instance of ${printable(name, 40)}`;
}

function symbolKey(): string {
  return 'a symbol key is not JSON; leave it out';
}

export function tooDeep(): string {
  return `nested deeper than ${maxDepth} levels; make it flatter`;
}

export function tooManyNodes(): string {
  return `more than ${maxNodes} values; send a reference to the data instead`;
}
