// Sandbox-safe. Templates with their values. A string that is exactly one template becomes the value that it
// names, of whatever type; inside longer text it becomes text. What a template brings in is data: it is
// never read for templates again. Only own members of the data are seen.
import type { FailureCode } from '../failures.ts';
import type { Json, JsonObject } from '../json.ts';
import { type JsonPath, maxDepth, quoted } from '../json-value.ts';
import type { Scope } from '../recording.ts';
import { followPath, kindOf, pathText } from './path.ts';
import { type TemplatePart, type TemplateReference, parseTemplate } from './template-syntax.ts';

export interface TemplateProblem {
  code: Extract<FailureCode, 'unresolved_reference' | 'payload_too_large' | 'invalid_value'>;
  message: string;
}

/** UTF-16 units that templates may bring in, in all: more cannot fit a payload of 256 KiB. */
const resolvedLimit = 256 * 1024;

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

function partsOf(text: string, path: JsonPath): TemplatePart[] {
  const parsed = parseTemplate(text);
  if ('problem' in parsed) throw new ResolveError('unresolved_reference', path, parsed.problem);
  return parsed.parts;
}

function interpolate(parts: readonly TemplatePart[], path: JsonPath, resolving: Resolving): string {
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

function lookUp(part: TemplateReference, path: JsonPath, resolving: Resolving): Json {
  const { input, steps } = resolving.scope;
  const found = followPath({ input, steps }, part.reference);
  if (!('value' in found)) {
    const { reached, at } = found;
    const holder = `${pathText('', part.reference.slice(0, at))} is ${kindOf(reached)}`;
    throw new ResolveError(
      'unresolved_reference',
      path,
      `${part.source}: ${holder} without ${quoted(part.reference[at] ?? '')}`,
    );
  }
  const { value } = found;
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
