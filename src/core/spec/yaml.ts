// YAML text → a JSON value with the place of each of its parts. The subset of YAML 1.2 (core schema) that
// is JSON: no aliases, tags, merge keys, timestamps, `.inf` or hex numbers, and no key twice.
// The depth is bounded before the composer runs: V8 aborts the process when a regular expression is
// compiled on an exhausted stack, which 256 KiB of `[` bring about.
import { Composer, Lexer, LineCounter, Parser, isAlias, isMap, isScalar, isSeq } from 'yaml';
import type { CST, Document, Node, Pair, YAMLMap } from 'yaml';
import { jsonNumberProblem } from '../json-number.ts';
import type { Json, JsonObject } from '../json.ts';
import { type JsonPath, hasLoneSurrogate, maxNodes, printable, quoted } from '../json-value.ts';

/** From 1; columns in UTF-16 units, as editors count. */
export interface Mark {
  line: number;
  column: number;
}

export interface TextProblem extends Mark {
  message: string;
}

export interface YamlValue {
  value: Json;
  /** Where the key or the value at `path` stands; of a missing part, where its nearest holder does. */
  locate(path: JsonPath, at: 'key' | 'value'): Mark;
}

/** Levels of nesting. A spec of every construct needs about twenty. */
export const maxSpecDepth = 32;

/** Lexemes; ten for each value that the reader takes, so that no text keeps the parser busy for long. */
const maxLexemes = 10 * maxNodes;

/** Problems shown of one text: the first ones matter, the rest mostly follow from them. */
const maxProblems = 100;

const notTextKey = 'a key must be plain or quoted text';
const tooMany = `more than ${maxNodes} values; split the spec`;

const jsonNumber = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** Never throws, whatever the text. */
export function readYaml(text: string): YamlValue | { problems: TextProblem[] } {
  const lines = new LineCounter();
  lines.addNewLine(0);
  const mark = (offset: number): Mark => {
    const { line, col } = lines.linePos(offset);
    return { line, column: col };
  };
  const tokens = tokenize(text, lines);
  if ('problem' in tokens) return { problems: [{ ...mark(tokens.offset), message: tokens.problem }] };

  const composer = new Composer({
    version: '1.2',
    schema: 'core',
    merge: false,
    stringKeys: true,
    // Checked while converting, by a set: the composer compares every key with every other one.
    uniqueKeys: false,
    prettyErrors: false,
  });
  const documents = [...composer.compose(tokens, true, text.length)];
  const contents = documents[0]?.contents ?? null;
  const problems: TextProblem[] = documentProblems(documents, mark);
  if (contents === null && problems.length === 0) {
    return { problems: [{ line: 1, column: 1, message: 'the file is empty' }] };
  }
  if (contents === null || problems.length > 0) return { problems };

  const reading: Reading = { mark, problems, nodes: 0 };
  const value = convert(contents, reading);
  if (problems.length > 0) return { problems: problems.slice(0, maxProblems) };
  return { value, locate: (path, at) => mark(offsetOf(contents, path, at)) };
}

function tokenize(text: string, lines: LineCounter): CST.Token[] | { problem: string; offset: number } {
  const parser = new Parser(lines.addNewLine);
  const tokens: CST.Token[] = [];
  let lexemes = 0;
  for (const lexeme of new Lexer().lex(text)) {
    tokens.push(...parser.next(lexeme));
    lexemes += 1;
    // Document and scalar stand on the stack beside the collections.
    if (parser.stack.length > maxSpecDepth + 2) {
      return { problem: `nested deeper than ${maxSpecDepth} levels; make it flatter`, offset: parser.offset };
    }
    if (lexemes > maxLexemes) return { problem: tooMany, offset: parser.offset };
  }
  tokens.push(...parser.end());
  return tokens;
}

function documentProblems(documents: Document.Parsed[], mark: (offset: number) => Mark): TextProblem[] {
  const [document, second] = documents;
  if (document === undefined) return [];
  const faults = [...document.errors, ...document.warnings].slice(0, maxProblems);
  const problems = faults.map(({ pos, code, message }) => ({
    ...mark(pos[0]),
    // The library's words name its option, and quote the text as it is.
    message:
      code === 'NON_STRING_KEY' ? notTextKey : `not valid YAML: ${printable(decapitalize(message), 200)}`,
  }));
  if (second !== undefined) {
    problems.push({ ...mark(second.range[0]), message: 'a second document; a spec file holds exactly one' });
  }
  const { explicit, version } = document.directives.yaml;
  if (explicit === true && version !== '1.2') {
    problems.push({ line: 1, column: 1, message: 'a spec is YAML 1.2; take out the %YAML line' });
  }
  return problems;
}

function decapitalize(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

interface Reading {
  mark: (offset: number) => Mark;
  problems: TextProblem[];
  nodes: number;
}

function report(reading: Reading, node: Node | null, message: string): null {
  reading.problems.push({ ...reading.mark(node?.range?.[0] ?? 0), message });
  return null;
}

function convert(node: Node | null, reading: Reading): Json {
  if (node === null) return null;
  reading.nodes += 1;
  if (reading.nodes === maxNodes + 1) report(reading, node, tooMany);
  if (reading.nodes > maxNodes) return null;
  if (isAlias(node))
    return report(reading, node, `alias "*${node.source}": write the value out; a spec has no aliases`);
  if (node.tag !== undefined)
    return report(reading, node, `tag "${node.tag}": a spec has no tags; quote a string`);
  if (isMap(node)) return convertMap(node, reading);
  if (isSeq(node)) return node.items.map((item) => convert(item as Node | null, reading));
  if (!isScalar(node)) return report(reading, node, 'not a JSON value');
  const { value, source = '' } = node;
  if (typeof value === 'string') {
    return hasLoneSurrogate(value)
      ? report(reading, node, 'the string holds a lone surrogate; it is not valid Unicode text')
      : value;
  }
  if (typeof value === 'number') {
    const problem = numberProblem(source);
    return problem === undefined ? value : report(reading, node, problem);
  }
  return typeof value === 'boolean' || value === null
    ? value
    : report(reading, node, 'not a JSON value; quote it');
}

function numberProblem(source: string): string | undefined {
  if (jsonNumber.test(source)) return jsonNumberProblem(source);
  return `${quoted(source)} is not a JSON number; write it in decimal digits, or quote it to make it a string`;
}

function convertMap(map: YAMLMap, reading: Reading): JsonObject {
  const object: JsonObject = {};
  for (const pair of map.items as Pair<Node, Node | null>[]) {
    const key = keyOf(pair, reading);
    const value = convert(pair.value, reading);
    if (key === undefined) continue;
    if (Object.hasOwn(object, key)) {
      report(reading, pair.key, `the key ${quoted(key)} is there twice; take one out`);
    }
    // Not an assignment: that would set the prototype for the key __proto__.
    Object.defineProperty(object, key, { value, enumerable: true, writable: true, configurable: true });
  }
  return object;
}

function keyOf({ key }: Pair<Node, Node | null>, reading: Reading): string | undefined {
  if (!isScalar(key) || typeof key.value !== 'string' || key.tag !== undefined) {
    report(reading, key, notTextKey);
    return undefined;
  }
  if (key.type === 'PLAIN' && key.value === '<<') {
    report(reading, key, 'the merge key "<<": write the keys out; a spec has no merge keys');
    return undefined;
  }
  if (hasLoneSurrogate(key.value)) report(reading, key, 'the key holds a lone surrogate; rename it');
  return key.value;
}

function offsetOf(contents: Node, path: JsonPath, at: 'key' | 'value'): number {
  let node: Node = contents;
  let offset = contents.range?.[0] ?? 0;
  for (const [depth, part] of path.entries()) {
    const isLast = depth === path.length - 1;
    const pair = pairOf(node, part);
    const next = pair === undefined ? itemOf(node, part) : pair.value;
    const key = pair?.key.range?.[0];
    if (isLast && at === 'key' && key !== undefined) return key;
    if (pair === undefined && next === undefined) return offset;
    // `title:` with nothing behind it has no place of its own.
    const isEmpty =
      next === null || next === undefined || (isScalar(next) && next.source === '' && next.type === 'PLAIN');
    offset = (isEmpty ? key : undefined) ?? next?.range?.[0] ?? offset;
    if (next === null || next === undefined) return offset;
    node = next;
  }
  return offset;
}

function pairOf(node: Node, name: string | number): Pair<Node, Node | null> | undefined {
  if (!isMap(node)) return undefined;
  const pairs = node.items as Pair<Node, Node | null>[];
  return pairs.find(({ key }) => isScalar(key) && key.value === String(name));
}

function itemOf(node: Node, index: string | number): Node | undefined {
  if (!isSeq(node)) return undefined;
  return (node.items[Number(index)] as Node | null | undefined) ?? undefined;
}
