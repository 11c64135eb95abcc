// The two doors of a spec: a YAML file, with problems at line and column, and a JSON object in a request,
// with problems at JSON pointers. Behind both is one check.
import { Buffer } from 'node:buffer';
import { canonicalize } from '../canonical.ts';
import type { Json } from '../json.ts';
import { jsonPointer, jsonValueProblem } from '../json-value.ts';
import { checkSpec } from './check.ts';
import { type SpecTool, specHash } from './hash.ts';
import type { Spec } from './spec.ts';
import { type Mark, maxSpecDepth, readYaml } from './yaml.ts';

/** One thing wrong with a spec file. Line and column count from 1. */
export interface SpecProblem extends Mark {
  file: string;
  message: string;
}

export interface LoadedSpec {
  spec: Spec;
  hash: string;
  /** where its name stands */
  nameAt: Mark;
}

/** Bytes of a spec in UTF-8: a start carries it whole, and Temporal's limit is 2 MiB for all of that. */
export const maxSpecBytes = 256 * 1024;

/** `refund.yaml:12:5 error step "refund": …`, as editors and CI read it. */
export function formatSpecProblem({ file, line, column, message }: SpecProblem): string {
  return `${file}:${line}:${column} error ${message}`;
}

/** Reads and checks a spec file's text; all problems at once, in the order of the text. Never throws. */
export function parseSpec(
  text: string,
  { file, tools }: { file: string; tools: readonly SpecTool[] },
): LoadedSpec | { problems: SpecProblem[] } {
  const size = Buffer.byteLength(text);
  if (size > maxSpecBytes)
    return { problems: [{ file, line: 1, column: 1, message: specSizeProblem(size) }] };
  const read = readYaml(text);
  if ('problems' in read)
    return { problems: inOrder(read.problems.map((problem) => ({ file, ...problem }))) };
  const checked = checkSpec(read.value, tools);
  if ('issues' in checked) {
    const problems = checked.issues.map(({ path, at, message }) => ({
      file,
      ...read.locate(path, at),
      message,
    }));
    return { problems: inOrder(problems) };
  }
  const { spec } = checked;
  return { spec, hash: specHash(spec, tools), nameAt: read.locate(['name'], 'value') };
}

/** Checks a spec that was sent as JSON. Never throws, whatever `value` is. */
export function checkSpecObject(
  value: unknown,
  { tools }: { tools: readonly SpecTool[] },
): { spec: Spec; hash: string } | { problems: { pointer: string; message: string }[] } {
  const problem = jsonValueProblem(value) ?? depthProblem(value, []);
  if (problem !== undefined) return { problems: [problem] };
  const text = canonicalize(value);
  const size = Buffer.byteLength(text);
  if (size > maxSpecBytes) return { problems: [{ pointer: '', message: specSizeProblem(size) }] };
  const checked = checkSpec(JSON.parse(text) as Json, tools);
  if ('issues' in checked) {
    return { problems: checked.issues.map(({ path, message }) => ({ pointer: jsonPointer(path), message })) };
  }
  return { spec: checked.spec, hash: specHash(checked.spec, tools) };
}

export function specSizeProblem(size: number): string {
  return `the spec has ${size} bytes, the limit is ${maxSpecBytes}; split it`;
}

function depthProblem(
  value: unknown,
  path: (string | number)[],
): { pointer: string; message: string } | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (path.length >= maxSpecDepth) {
    return {
      pointer: jsonPointer(path),
      message: `nested deeper than ${maxSpecDepth} levels; make it flatter`,
    };
  }
  for (const [key, item] of Object.entries(value)) {
    const problem = depthProblem(item, [...path, key]);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function inOrder(problems: SpecProblem[]): SpecProblem[] {
  return problems.sort((a, b) => a.line - b.line || a.column - b.column);
}
