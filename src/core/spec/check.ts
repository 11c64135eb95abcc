// Is this value a spec that can run with these tools? One check for files and for inline specs; all
// problems at once, each at a path. What is accepted goes on exactly as written.
import type { Json, JsonObject } from '../json.ts';
import { type JsonPath, printable, quoted } from '../json-value.ts';
import { stepIdProblem } from '../position.ts';
import { type SpecTool, toolFacts } from './hash.ts';
import { inputSchemaIssues } from './input.ts';
import { pathText, valueAt } from './path.ts';
import { type SpecIssue, shapeIssues } from './shape.ts';
import type { Spec } from './spec.ts';
import { referencesIn } from './template-syntax.ts';

/** Some quote the spec, with whatever it holds; long enough for every one of ours. */
const maxMessageLength = 1000;

/** The spec, or what is wrong with it. `value` is JSON, at most `maxSpecDepth` deep. */
export function checkSpec(value: Json, tools: readonly SpecTool[]): { spec: Spec } | { issues: SpecIssue[] } {
  const issues = [
    ...shapeIssues(value),
    ...stepsOf(value).flatMap((step, index, steps) => meaningIssues(step, index, steps, tools)),
    ...outputIssues(value),
    ...schemaIssues(value),
  ];
  if (issues.length === 0) return { spec: value as unknown as Spec };
  return {
    issues: issues.map((issue) => ({
      ...issue,
      message: printable(`${subjectOf(value, issue)}: ${issue.message}`, maxMessageLength),
    })),
  };
}

function stepsOf(spec: Json): (JsonObject | undefined)[] {
  const steps = valueAt(spec, ['steps']);
  if (!Array.isArray(steps)) return [];
  return steps.map((step: Json) => (isObject(step) ? step : undefined));
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function idOf(step: JsonObject | undefined): string | undefined {
  const id = valueAt(step, ['id']);
  return typeof id === 'string' ? id : undefined;
}

function meaningIssues(
  step: JsonObject | undefined,
  index: number,
  steps: readonly (JsonObject | undefined)[],
  tools: readonly SpecTool[],
): SpecIssue[] {
  if (step === undefined) return [];
  const path = ['steps', index];
  const earlier = steps.slice(0, index).flatMap((other) => idOf(other) ?? []);
  return [
    ...duplicateIssues(step, path, steps.slice(0, index)),
    ...toolIssues(step, path, tools),
    ...['with', 'before', 'approval'].flatMap((key) =>
      templateIssues(valueAt(step, [key]), [...path, key], earlier, steps),
    ),
  ];
}

function duplicateIssues(
  step: JsonObject,
  path: JsonPath,
  earlier: readonly (JsonObject | undefined)[],
): SpecIssue[] {
  const id = idOf(step);
  const first = id === undefined ? -1 : earlier.findIndex((other) => idOf(other) === id);
  if (first === -1) return [];
  const message = `the id is taken by steps[${first}]; each step has its own`;
  return [{ path: [...path, 'id'], at: 'value', message }];
}

function toolIssues(step: JsonObject, path: JsonPath, tools: readonly SpecTool[]): SpecIssue[] {
  const name = valueAt(step, ['tool']);
  if (typeof name !== 'string') return [];
  const issue = (message: string): SpecIssue[] => [{ path: [...path, 'tool'], at: 'value', message }];
  const tool = tools.find((candidate) => candidate.name === name);
  if (tool === undefined) {
    const known = tools.map((candidate) => candidate.name).sort();
    return issue(`unknown tool ${quoted(name)}; the config has ${known.join(', ') || 'no tools'}`);
  }
  if (tool.requiresApproval === true && !Object.hasOwn(step, 'before')) {
    return issue(`the tool ${quoted(name)} requires approval; add before: {approve: {}}`);
  }
  try {
    toolFacts(tool);
    return [];
  } catch (error) {
    return issue(
      `the tool ${quoted(name)} has arguments without a JSON Schema: ${printable(String(error), 200)}`,
    );
  }
}

function outputIssues(spec: Json): SpecIssue[] {
  const steps = stepsOf(spec);
  return templateIssues(
    valueAt(spec, ['output']),
    ['output'],
    steps.flatMap((step) => idOf(step) ?? []),
    steps,
  );
}

function templateIssues(
  value: unknown,
  base: JsonPath,
  earlier: readonly string[],
  steps: readonly (JsonObject | undefined)[],
): SpecIssue[] {
  if (value === undefined) return [];
  return referencesIn(value as Json, base).flatMap(({ path, problem, reference, inKey }): SpecIssue[] => {
    if (inKey === true)
      return [{ path, at: 'key', message: 'a template in a key is not resolved; rename the key' }];
    const message = problem ?? referenceProblem(reference ?? [], earlier, steps);
    return message === undefined ? [] : [{ path, at: 'value', message }];
  });
}

function referenceProblem(
  reference: readonly string[],
  earlier: readonly string[],
  steps: readonly (JsonObject | undefined)[],
): string | undefined {
  const [root, id, member] = reference;
  if (root !== 'steps') return undefined;
  if (id === undefined) return 'steps is not a value; write steps.<id>.output';
  const source = pathText('', ['steps', id]);
  if (!earlier.includes(id)) {
    const isLater = steps.some((step) => idOf(step) === id);
    const why = isLater
      ? `step ${quoted(id)} does not come before this one`
      : `there is no step ${quoted(id)}`;
    return `${source}: ${why}; earlier steps: ${earlier.map((name) => printable(name, 60)).join(', ') || 'none'}`;
  }
  return member === 'output' ? undefined : `${source}: a step has only output; write ${source}.output`;
}

function schemaIssues(spec: Json): SpecIssue[] {
  const schema = valueAt(spec, ['input']);
  if (!isObject(schema)) return [];
  return inputSchemaIssues(schema).map((issue) => ({ ...issue, path: ['input', ...issue.path] }));
}

/** What the message is about: `step "refund": before.approve.ttl`, `name`, `the spec`. */
function subjectOf(spec: Json, issue: SpecIssue): string {
  // The message about an unknown key names the key itself.
  const path = issue.at === 'key' ? issue.path.slice(0, -1) : issue.path;
  const [first, index, ...rest] = path;
  const id = valueAt(spec, ['steps', index ?? '', 'id']);
  if (first !== 'steps' || typeof id !== 'string' || stepIdProblem(id) !== undefined) {
    return pathText('', path) || 'the spec';
  }
  return rest.length === 0 ? `step "${id}"` : `step "${id}": ${pathText('', rest)}`;
}
