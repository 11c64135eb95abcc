// What keys a spec and its steps have, and of which type: the outer shape, as the language grows. A step
// is of the kind that one of its keys says; a new kind of step is one more entry in `stepKinds`.
// A schema here only judges: the spec goes on as written, with no default applied.
import { z } from 'zod';
import { durationRule, parseDuration } from '../duration.ts';
import type { Json } from '../json.ts';
import { type JsonPath, quoted } from '../json-value.ts';
import { nameProblem, stepIdProblem } from '../position.ts';
import { shown, typeNames, valueAt } from './path.ts';

/** One thing wrong with a spec, at a key or at a value. */
export interface SpecIssue {
  path: JsonPath;
  at: 'key' | 'value';
  message: string;
}

const ttl = text((value) =>
  parseDuration(value) === undefined ? `must be ${durationRule}, got ${quoted(value)}` : undefined,
);
const title = text((value) => (value.trim() === '' ? 'must not be empty' : undefined));
const id = text(stepIdProblem);

const specShape = strict('a spec', {
  version: z.literal(1),
  name: text(specNameProblem),
  description: z.string().optional(),
  input: z.record(z.string(), z.unknown()).optional(),
  steps: z.array(z.unknown()).min(1),
  output: z.unknown().optional(),
});

const stepKinds = {
  tool: strict('a tool step', {
    id,
    tool: z.string(),
    with: z.record(z.string(), z.unknown()).optional(),
    before: strict('before', {
      approve: strict('approve', { title: title.optional(), ttl: ttl.optional() }),
    }).optional(),
  }),
  approval: strict('an approval step', {
    id,
    approval: strict('approval', { title, ttl: ttl.optional() }),
  }),
} as const;

type StepKind = keyof typeof stepKinds;
const kindNames = Object.keys(stepKinds) as StepKind[];
const stepKeys = new Set(kindNames.flatMap((kind) => Object.keys(stepKinds[kind].shape)));

/** Unknown, missing and ill-typed parts of a spec, with all of its steps. */
export function shapeIssues(spec: Json): SpecIssue[] {
  const steps = valueAt(spec, ['steps']);
  return [
    ...issuesOf(specShape, spec, []),
    ...(Array.isArray(steps) ? steps.flatMap((step: Json, index) => stepIssues(step, ['steps', index])) : []),
  ];
}

function stepIssues(step: Json, path: JsonPath): SpecIssue[] {
  if (typeof step !== 'object' || step === null || Array.isArray(step)) {
    return [{ path, at: 'value', message: `must be an object, got ${shown(step)}` }];
  }
  const [kind, other] = kindNames.filter((name) => Object.hasOwn(step, name));
  if (kind === undefined) {
    const unknown = Object.keys(step).filter((key) => !stepKeys.has(key));
    return [
      { path, at: 'value', message: `a step needs one of the keys ${kindNames.join(', ')}` },
      ...unknown.map((key) => unknownKey([...path, key], 'a step', [...stepKeys])),
    ];
  }
  if (other !== undefined) {
    return [{ path: [...path, other], at: 'key', message: `a step has ${kind} or ${other}, not both` }];
  }
  return issuesOf(stepKinds[kind], step, path);
}

function specNameProblem(name: string): string | undefined {
  return (
    nameProblem(name) ?? (name.includes('/') ? `a spec's name has no "/"; rename ${quoted(name)}` : undefined)
  );
}

function text(problemOf: (value: string) => string | undefined) {
  return z.string().superRefine((value, context) => {
    const message = problemOf(value);
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  });
}

/** An object with these keys and no others; zod's message is used to carry what it is called. */
function strict<Shape extends z.ZodRawShape>(what: string, shape: Shape) {
  return z.strictObject(shape, {
    error: (issue) =>
      issue.code === 'unrecognized_keys' ? `${what} has ${Object.keys(shape).join(', ')}` : undefined,
  });
}

function unknownKey(path: JsonPath, what: string, known: readonly string[]): SpecIssue {
  return {
    path,
    at: 'key',
    message: `unknown key ${quoted(String(path.at(-1)))}; ${what} has ${known.join(', ')}`,
  };
}

function issuesOf(schema: z.ZodType, value: Json, base: JsonPath): SpecIssue[] {
  const result = schema.safeParse(value);
  if (result.success) return [];
  return result.error.issues.flatMap((issue): SpecIssue[] => {
    const inner = issue.path as (string | number)[];
    const path = [...base, ...inner];
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.map((key) => ({
        path: [...path, key],
        at: 'key',
        message: `unknown key ${quoted(key)}; ${issue.message}`,
      }));
    }
    return [{ path, at: 'value', message: messageOf(issue, valueAt(value, inner)) }];
  });
}

function messageOf(issue: z.core.$ZodIssue, value: unknown): string {
  if (issue.code === 'custom') return issue.message;
  if (value === undefined) return 'is required';
  if (issue.code === 'too_small') return 'must not be empty';
  const expected = issue.code === 'invalid_value' ? issue.values.join(' or ') : typeNames[expectedOf(issue)];
  return `must be ${expected ?? 'something else'}, got ${shown(value)}`;
}

function expectedOf(issue: z.core.$ZodIssue): string {
  return issue.code === 'invalid_type' ? issue.expected : '';
}
