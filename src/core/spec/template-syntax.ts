// Sandbox-safe. Templates in a spec's values: `${{ path }}`, where a path starts at `input` or `steps`:
// `input.orderId`, `steps.order.output.lines.0.total`, `steps["sign-off"].output`, `input.lines[0]["unit price"]`.
// A name that is not [A-Za-z_][A-Za-z0-9_]* needs brackets (a plain `-` would be a minus once there are
// expressions). A literal `${{` is written `${{ "${{" }}`. What a template brings in is data and never read again.
import type { Json } from '../json.ts';
import { type JsonPath, printable } from '../json-value.ts';

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

export interface TemplateReference {
  /** such as ['steps', 'order', 'output', 'total'] */
  reference: string[];
  /** as written, for messages */
  source: string;
}

export type TemplatePart = { text: string } | TemplateReference;

type Parsed = { parts: TemplatePart[] } | { problem: string };

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
    return [...own, ...referencesIn(item, at)];
  });
}

/** The parts of a string, at least one; or what is wrong with a template in it. */
export function parseTemplate(text: string): Parsed {
  const parts: TemplatePart[] = [];
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

/**
 * A path alone, as it stands in a template, but of data that has no name of its own: it may begin with a
 * bracket (`["order-id"].lines[0]`). Undefined for what is none.
 */
export function parsePath(text: string): string[] | undefined {
  const reader = { text, at: 0 };
  const bracketed = take(reader, index)?.[1] ?? readBrackets(reader);
  const path = bracketed === undefined ? readPath(reader) : [bracketed, ...readMembers(reader)];
  return reader.at === text.length ? path : undefined;
}

interface Reader {
  text: string;
  at: number;
}

function readExpression(reader: Reader, start: number): TemplatePart | { problem: string } {
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
  return root === undefined ? undefined : [root, ...readMembers(reader)];
}

function readMembers(reader: Reader): string[] {
  const path: string[] = [];
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
