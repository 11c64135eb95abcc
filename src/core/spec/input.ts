// A run's input against its spec's JSON Schema (draft 2020-12). Only a verdict: the input goes on as it was
// sent, no default is filled in and nothing is coerced. Ajv compiles a schema to code once; zod's own
// reading of JSON Schema is not used, since it passes over `required` names without a property, keywords
// without a `type` and constants that are objects.
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import { z } from 'zod';
import type { Json, JsonObject } from '../json.ts';
import { printable } from '../json-value.ts';
import { pathOfPointer, pathText, shown, typeNames, valueAt } from './path.ts';
import { keywordIssues } from './schema-keywords.ts';
import type { SpecIssue } from './shape.ts';
import { withinTime } from './time-limit.ts';

/** Compiling a usual schema takes a few milliseconds and a check far less than one: only a trap takes this long. */
const timeLimitMs = 2000;

/** Problems told of one input: who sends a list of a thousand wrong items learns it from the first. */
const maxProblems = 20;

const formats: Record<string, z.ZodType> = {
  date: z.iso.date(),
  'date-time': z.iso.datetime({ offset: true }),
  duration: z.iso.duration(),
  email: z.email(),
  ipv4: z.ipv4(),
  ipv6: z.ipv6(),
  uri: z.url(),
  uuid: z.uuid(),
};

const ajv = new Ajv2020({
  allErrors: true,
  // Keywords without a type beside them are good JSON Schema.
  strictTypes: false,
  strictTuples: false,
  // A `constructor` that is inherited is not there.
  ownProperties: true,
  logger: false,
  formats: {
    ...Object.fromEntries(
      Object.entries(formats).map(([name, schema]) => [
        name,
        (text: string) => schema.safeParse(text).success,
      ]),
    ),
    // The meta-schema names these; a spec cannot, and patterns are checked with the keywords.
    regex: true,
    'uri-reference': true,
  },
});

/** By the schema's identity; the registry and a request each hold theirs. */
const compiled = new WeakMap<JsonObject, ValidateFunction>();

/** What is wrong with the schema itself, each at its place in it. */
export function inputSchemaIssues(schema: JsonObject): SpecIssue[] {
  const issues = keywordIssues(schema, Object.keys(formats));
  if (issues.length > 0) return issues;
  if (ajv.validateSchema(schema) !== true) return metaIssues(schema, ajv.errors ?? []);
  try {
    compile(schema);
    return [];
  } catch (error) {
    return [{ path: [], at: 'value', message: `not a JSON Schema that can be used: ${reasonOf(error)}` }];
  }
}

/** Problems of `input`, such as `input.orderId: is required`; none when there is no schema. Never throws. */
export function inputProblems(schema: JsonObject | undefined, input: Json): string[] {
  if (schema === undefined) return [];
  try {
    const validate = compile(schema);
    if (withinTime(timeLimitMs, () => validate(input))) return [];
    return [...new Set((validate.errors ?? []).map((error) => problemText(error, input)))].slice(
      0,
      maxProblems,
    );
  } catch (error) {
    // A spec that was loaded compiles; only a check without end gets here.
    return [`input: cannot be checked against the spec's schema: ${reasonOf(error)}`];
  }
}

function compile(schema: JsonObject): ValidateFunction {
  const known = compiled.get(schema);
  if (known !== undefined) return known;
  try {
    const validate = withinTime(timeLimitMs, () => ajv.compile(schema));
    compiled.set(schema, validate);
    return validate;
  } finally {
    // Ajv would keep every inline spec's schema for ever.
    ajv.removeSchema(schema);
  }
}

function reasonOf(error: unknown): string {
  return error instanceof RangeError
    ? 'it refers to itself without end'
    : printable((error as Error).message, 200);
}

/** The meta-schema is a tree of `anyOf`; the first error at each place is the one that says it. */
function metaIssues(schema: JsonObject, errors: readonly ErrorObject[]): SpecIssue[] {
  const places = new Map<string, SpecIssue>();
  for (const error of errors) {
    if (places.has(error.instancePath)) continue;
    const path = pathOfPointer(error.instancePath, schema);
    const message = `${errorText(error)}, got ${shown(valueAt(schema, path))}`;
    places.set(error.instancePath, { path, at: 'value', message });
  }
  return [...places.values()];
}

function problemText(error: ErrorObject, input: Json): string {
  const path = pathOfPointer(error.instancePath, input);
  const params = error.params as {
    missingProperty?: string;
    additionalProperty?: string;
    unevaluatedProperty?: string;
  };
  const missing = error.keyword === 'required' ? params.missingProperty : undefined;
  if (missing !== undefined) return `${pathText('input', [...path, missing])}: is required`;
  const surplus = params.additionalProperty ?? params.unevaluatedProperty;
  if (surplus !== undefined) return `${pathText('input', [...path, surplus])}: is not allowed here`;
  return `${pathText('input', path)}: ${errorText(error)}, got ${shown(valueAt(input, path))}`;
}

function errorText({ keyword, params, message = 'is not valid' }: ErrorObject): string {
  const { type, allowedValues, allowedValue } = params as Record<string, unknown>;
  if (keyword === 'type')
    return `must be ${[type]
      .flat()
      .map((name) => typeNames[String(name)] ?? name)
      .join(' or ')}`;
  if (keyword === 'enum')
    return `must be one of ${printable(JSON.stringify(allowedValues).slice(1, -1), 200)}`;
  if (keyword === 'const') return `must be ${printable(JSON.stringify(allowedValue), 200)}`;
  return printable(message, 200);
}
