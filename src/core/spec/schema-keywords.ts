// Which JSON Schema keywords a spec's `input` may hold, and where schemas stand inside a schema, so that a
// misspelt keyword is refused at its place. The validator alone would say neither which nor where.
import type { Json } from '../json.ts';
import { type JsonPath, printable, quoted } from '../json-value.ts';
import type { SpecIssue } from './shape.ts';

/** Keywords by what their value is. `$id`, anchors and dynamic references are left out: nothing here needs them. */
const keywords: Record<string, 'plain' | 'schema' | 'list' | 'map'> = {
  ...of(
    'plain',
    'type enum const multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength',
  ),
  ...of(
    'plain',
    'pattern format maxItems minItems uniqueItems maxContains minContains maxProperties minProperties',
  ),
  ...of('plain', 'required dependentRequired $ref $schema $comment title description default examples'),
  ...of('plain', 'deprecated readOnly writeOnly contentEncoding contentMediaType'),
  ...of('schema', 'items contains additionalProperties propertyNames not if then else'),
  ...of('schema', 'unevaluatedItems unevaluatedProperties'),
  ...of('list', 'allOf anyOf oneOf prefixItems'),
  ...of('map', 'properties patternProperties $defs dependentSchemas'),
};

const dialect = 'https://json-schema.org/draft/2020-12/schema';

/** Keywords that are unknown or go beyond this schema, in `schema` and every schema in it. */
export function keywordIssues(schema: Json, formats: readonly string[], path: JsonPath = []): SpecIssue[] {
  // `true`, `false`, or of a wrong type, which the meta-schema tells.
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return [];
  return Object.entries(schema).flatMap(([keyword, value]) => {
    const at = [...path, keyword];
    const kind = Object.hasOwn(keywords, keyword) ? keywords[keyword] : undefined;
    const problem = keywordProblem(keyword, value, formats);
    if (problem !== undefined) return [{ path: at, ...problem }];
    if (kind === 'schema') return keywordIssues(value, formats, at);
    if (kind === 'list' && Array.isArray(value)) {
      return value.flatMap((item, index) => keywordIssues(item, formats, [...at, index]));
    }
    if (kind === 'map') {
      return entriesOf(value).flatMap(([name, item]) => keywordIssues(item, formats, [...at, name]));
    }
    return [];
  });
}

function keywordProblem(
  keyword: string,
  value: Json,
  formats: readonly string[],
): Omit<SpecIssue, 'path'> | undefined {
  if (!Object.hasOwn(keywords, keyword)) {
    return {
      at: 'key',
      message: `unknown keyword ${quoted(keyword)}; this is a JSON Schema (draft 2020-12)`,
    };
  }
  if (keyword === 'patternProperties') {
    const faulty = entriesOf(value).map(([name]) => patternProblem(name));
    const message = faulty.find((problem) => problem !== undefined);
    return message === undefined ? undefined : { at: 'value', message };
  }
  if (typeof value !== 'string') return undefined;
  if (keyword === 'pattern') {
    const message = patternProblem(value);
    return message === undefined ? undefined : { at: 'value', message };
  }
  if (keyword === '$schema' && value !== dialect)
    return { at: 'value', message: `must be ${dialect}, or left out` };
  if (keyword === '$ref' && !/^#(?:\/|$)/.test(value)) {
    return {
      at: 'value',
      message: `must point into this schema, such as #/$defs/line, got ${quoted(value)}`,
    };
  }
  if (keyword === 'format' && !formats.includes(value)) {
    return { at: 'value', message: `must be one of ${formats.join(', ')}, got ${quoted(value)}` };
  }
  return undefined;
}

function patternProblem(pattern: string): string | undefined {
  try {
    new RegExp(pattern, 'u');
    return undefined;
  } catch (error) {
    return printable((error as Error).message.replace(/^I/, 'i'), 200);
  }
}

function entriesOf(value: Json): [string, Json][] {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : [];
}

function of<Kind extends string>(kind: Kind, names: string): Record<string, Kind> {
  return Object.fromEntries(names.split(' ').map((name) => [name, kind]));
}
