// Sandbox-safe. Templates in a spec's values: `${{ path }}`, where a path starts at `input` or `steps`:
// `input.orderId`, `steps.order.output.lines.0.total`, `steps["sign-off"].output`, `input.lines[0]["unit price"]`.
// A name that is not [A-Za-z_][A-Za-z0-9_]* needs brackets (a plain `-` would be a minus once there are
// expressions). A string that is one template becomes the value itself; inside longer text it becomes text.
// A literal `${{` is written `${{ "${{" }}`. What a template brings in is data and never read again.
import type { FailureCode } from '../failures.ts';
import type { Json, JsonObject } from '../json.ts';
import { type JsonPath, maxDepth, printable, quoted } from '../json-value.ts';
import type { Scope } from '../recording.ts';
import { pathText } from './path.ts';

export interface TemplateProblem {
  code: Extract<FailureCode, 'unresolved_reference' | 'payload_too_large' | 'invalid_value'>;
  message: string;
}

/** A template found in a value: what it refers to, or what is wrong with it. */
export interface FoundReference {
  /** of the string that holds it, in the searched value */
  path: JsonPath;
  /** such as ['steps', 'order', 'output', 'total'] */
  reference?: string[];
  problem?: string;
  /** it stands in a key, where nothing is resolved */
  inKey?: true;
}

type Part = { text: string } | { reference: string[]; source: string };
type Parsed = { parts: Part[] } | { problem: string };

/** UTF-16 units that templates may bring in, in all: more cannot fit a payload of 256 KiB. */
const resolvedLimit = 256 * 1024;

const opening = '${{';
const identifier = /[A-Za-z_][A-Za-z0-9_]*/y;
const member = /\.([A-Za-z_][A-Za-z0-9_]*|0|[1-9]\d*)/y;
const index = /\[(0|[1-9]\d*)\]/y;
const literal = /"(?:[^"\\\n]|\\[^\n])*"|'[^'\\\n]*'/y;
const blank = /[ \t\r\n]*/y;

/** Every template in `value`, in order, with its syntax checked; keys are searched too. */
export function referencesIn(value: Json, path: JsonPath = []): FoundReference[] {
  if (typeof value === 'string') {
    const parsed = parseTemplate(value);
    if ('problem' in parsed) return [{ path, problem: parsed.problem }];
    return parsed.parts.flatMap((part) => ('reference' in part ? [{ path, reference: part.reference }] : []));
  }
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) => {
    const at = [...path, Array.isArray(value) ? Number(key) : key];
    const own: FoundReference[] = key.includes(opening) ? [{ path: at, inKey: true }] : [];
    return [...own, ...referencesIn(item as Json, at)];
  });
}

/** `value` with its templates resolved. Never throws for what a spec or an input can hold. */
export function resolve(value: Json, scope: Scope): { value: Json } | { problem: TemplateProblem } {
  return attempt((resolving) => ({ value: resolveValue(value, [], resolving) }), scope);
}

/** The same for what has to be text, such as a title: a template that is the whole string becomes text too. */
export function resolveText(text: string, scope: Scope): { text: string } | { problem: TemplateProblem } {
  return attempt((resolving) => ({ text: interpolate(partsOf(text, []), [], resolving) }), scope);
}

interface Resolving {
  scope: Scope;
  /** UTF-16 units brought in so far */
  spent: number;
  sizes: Map<object, number>;
}

class ResolveError extends Error {
  override readonly name = 'ResolveError';
  readonly code: TemplateProblem['code'];

  constructor(code: TemplateProblem['code'], path: JsonPath, message: string) {
    super(path.length === 0 ? message : `${pathText('', path)}: ${message}`);
    this.code = code;
  }
}

function attempt<T>(work: (resolving: Resolving) => T, scope: Scope): T | { problem: TemplateProblem } {
  try {
    return work({ scope, spent: 0, sizes: new Map() });
  } catch (error) {
    if (error instanceof ResolveError) return { problem: { code: error.code, message: error.message } };
    // The stack: only a start by hand can bring in data of such depth.
    if (error instanceof RangeError)
      return { problem: { code: 'invalid_value', message: 'nested too deeply' } };
    throw error;
  }
}

function resolveValue(value: Json, path: JsonPath, resolving: Resolving): Json {
  if (typeof value === 'string') return resolveString(value, path, resolving);
  if (typeof value !== 'object' || value === null) return value;
  if (path.length >= maxDepth) {
    throw new ResolveError('invalid_value', path.slice(0, 3), `nested deeper than ${maxDepth} levels`);
  }
  if (Array.isArray(value)) return value.map((item, at) => resolveValue(item, [...path, at], resolving));
  const resolved: JsonObject = {};
  for (const [key, item] of Object.entries(value)) {
    // Not an assignment: that would set the prototype for the key __proto__.
    Object.defineProperty(resolved, key, {
      value: resolveValue(item, [...path, key], resolving),
      enumerable: true,
      writable: true,
      configurable: true,
    });
  }
  return resolved;
}

function resolveString(text: string, path: JsonPath, resolving: Resolving): Json {
  const parts = partsOf(text, path);
  const [only] = parts;
  if (parts.length === 1 && only !== undefined && 'reference' in only) return lookUp(only, path, resolving);
  return interpolate(parts, path, resolving);
}

function partsOf(text: string, path: JsonPath): Part[] {
  const parsed = parseTemplate(text);
  if ('problem' in parsed) throw new ResolveError('unresolved_reference', path, parsed.problem);
  return parsed.parts;
}

function interpolate(parts: readonly Part[], path: JsonPath, resolving: Resolving): string {
  return parts
    .map((part) => {
      if ('text' in part) return part.text;
      const value = lookUp(part, path, resolving);
      if (typeof value === 'string') return value;
      if (typeof value === 'number' || typeof value === 'boolean') return JSON.stringify(value);
      throw new ResolveError(
        'unresolved_reference',
        path,
        `${part.source} is ${kindOf(value)}; inside text only a string, a number or a boolean can stand`,
      );
    })
    .join('');
}

function lookUp(part: { reference: string[]; source: string }, path: JsonPath, resolving: Resolving): Json {
  const { input, steps } = resolving.scope;
  let value: Json = { input, steps };
  for (const [at, name] of part.reference.entries()) {
    // Own members only: `constructor` or `length` of a value is no data of the run.
    const isOwn: boolean = Array.isArray(value)
      ? /^(?:0|[1-9]\d*)$/.test(name) && Object.hasOwn(value, name)
      : typeof value === 'object' && value !== null && Object.hasOwn(value, name);
    const next: Json | undefined = isOwn ? (value as JsonObject)[name] : undefined;
    if (next === undefined) {
      const holder = `${pathText('', part.reference.slice(0, at))} is ${kindOf(value)}`;
      throw new ResolveError(
        'unresolved_reference',
        path,
        `${part.source}: ${holder} without ${quoted(name)}`,
      );
    }
    value = next;
  }
  resolving.spent += sizeOf(value, resolving.sizes);
  if (resolving.spent > resolvedLimit) {
    throw new ResolveError(
      'payload_too_large',
      path,
      `the templates bring in more than ${resolvedLimit} characters; send a reference to the data instead`,
    );
  }
  return value;
}

/** Cached by identity: one large value that is named a thousand times is measured once. */
function sizeOf(value: Json, sizes: Map<object, number>): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 0;
  const known = sizes.get(value);
  if (known !== undefined) return known;
  const size = JSON.stringify(value).length;
  sizes.set(value, size);
  return size;
}

function kindOf(value: Json): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

function parseTemplate(text: string): Parsed {
  const parts: Part[] = [];
  let from = 0;
  for (let start = text.indexOf(opening); start !== -1; start = text.indexOf(opening, from)) {
    if (start > from) parts.push({ text: text.slice(from, start) });
    const reader = { text, at: start + opening.length };
    const part = readExpression(reader, start);
    if ('problem' in part) return part;
    parts.push(part);
    from = reader.at;
  }
  if (from < text.length || parts.length === 0) parts.push({ text: text.slice(from) });
  return { parts };
}

interface Reader {
  text: string;
  at: number;
}

function readExpression(reader: Reader, start: number): Part | { problem: string } {
  take(reader, blank);
  const text = readLiteral(reader);
  const reference = text === undefined ? readPath(reader) : undefined;
  take(reader, blank);
  if (!reader.text.startsWith('}}', reader.at) || (text === undefined && reference === undefined)) {
    return { problem: syntaxProblem(reader, start) };
  }
  reader.at += 2;
  if (reference === undefined) return { text: text ?? '' };
  const source = printable(reader.text.slice(start, reader.at), 120);
  const [root] = reference;
  if (root === 'input' || root === 'steps') return { reference, source };
  return { problem: `${source}: unknown name "${root}"; a template starts at input or steps` };
}

function readPath(reader: Reader): string[] | undefined {
  const root = take(reader, identifier)?.[0];
  if (root === undefined) return undefined;
  const path = [root];
  for (;;) {
    const plain = (take(reader, member) ?? take(reader, index))?.[1];
    const name = plain ?? readBrackets(reader);
    if (name === undefined) return path;
    path.push(name);
  }
}

function readBrackets(reader: Reader): string | undefined {
  const start = reader.at;
  if (reader.text[start] !== '[') return undefined;
  reader.at += 1;
  const name = readLiteral(reader);
  if (name !== undefined && reader.text[reader.at] === ']') {
    reader.at += 1;
    return name;
  }
  reader.at = start;
  return undefined;
}

function readLiteral(reader: Reader): string | undefined {
  const start = reader.at;
  const quotedText = take(reader, literal)?.[0];
  if (quotedText === undefined) return undefined;
  if (quotedText.startsWith("'")) return quotedText.slice(1, -1);
  try {
    return JSON.parse(quotedText) as string;
  } catch {
    reader.at = start;
    return undefined;
  }
}

function take(reader: Reader, pattern: RegExp): RegExpExecArray | null {
  pattern.lastIndex = reader.at;
  const match = pattern.exec(reader.text);
  if (match !== null) reader.at = pattern.lastIndex;
  return match;
}

function syntaxProblem(reader: Reader, start: number): string {
  const { text, at } = reader;
  const end = text.indexOf('}}', start);
  const source = printable(text.slice(start, end === -1 ? undefined : end + 2), 80);
  if (end === -1)
    return `${source}: "\${{" is not closed by "}}"; a literal "\${{" is written \${{ "\${{" }}`;
  if (text[at] === '-') return `${source}: a name with "-" needs brackets, such as steps["sign-off"].output`;
  const rest = printable(text.slice(at, end).trimEnd(), 40);
  const found = rest === '' ? 'something is missing before "}}"' : `cannot read "${rest}"`;
  return `${source}: ${found}; a template is a path such as input.orderId or steps.order.output.lines[0]`;
}
