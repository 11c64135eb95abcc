// Sandbox-safe. Names and positions. A position is one effect's or gate's place in the run; the pair
// (root, position) is its idempotency key, so a position never depends on time, attempt or worker.
// People write names; only the system adds `[n]`, `#n` and `#retry-n`, so the two cannot collide.

import { quoted } from './json-value.ts';

/** Characters. Keeps approval keys under 640 and memo fields and summaries short. */
export const maxPositionLength = 180;

const nameSegment = /^[A-Za-z0-9._-]+$/;
// Nine digits: more items than a run's history can hold.
const suffixes = /(?:\[(?:0|[1-9]\d{0,8})\]|#(?:[2-9]|[1-9]\d{1,8})|#retry-[1-9]\d{0,8})+$/;

/** What is wrong with a name given by a person, and the rule; undefined when nothing is. */
export function nameProblem(name: unknown): string | undefined {
  return problemOf('name', name, (segment) => segment);
}

/** The same for a whole position, in which the system's suffixes are allowed. */
export function positionProblem(position: unknown): string | undefined {
  return problemOf('position', position, (segment) => segment.replace(suffixes, ''));
}

/** Why `id` cannot be a step's id, which is its position in the run; undefined when it can. */
export function stepIdProblem(id: string): string | undefined {
  const problem = nameProblem(id);
  if (problem !== undefined) return problem;
  // As a key of the run's outputs it would set their prototype.
  if (id === '__proto__') return 'the id "__proto__" cannot be used; rename the step';
  return id.split('/').at(-1) === 'in-doubt'
    ? 'the part "in-doubt" at the end is countersign\'s own; rename the step'
    : undefined;
}

export interface NameUse {
  uses: number;
  /** its first use was a child run, whose positions are below the name: `order/pay` */
  isChild?: boolean;
}

/**
 * What a new use of `name` would share with a child run: the key of `order/pay` is that of `pay` in the child
 * `order`, and the id of the child `a/b` that of the child `b` of `a`. Of a name that was used before nothing new
 * is shared: its next position has a `#`, and nobody can name what is below that.
 */
export function childProblem(
  names: ReadonlyMap<string, NameUse>,
  name: string,
  isChild: boolean,
): string | undefined {
  const parts = name.split('/');
  for (let count = 1; count < parts.length; count += 1) {
    const above = parts.slice(0, count).join('/');
    if (names.get(above)?.isChild !== true) continue;
    return `"${name}" lies below the child run "${above}", whose own positions are there; rename it`;
  }
  if (!isChild || names.has(name)) return undefined;
  const below = [...names.keys()].find((used) => used.startsWith(`${name}/`));
  if (below === undefined) return undefined;
  return `the positions of a child run "${name}" would be below it, where "${below}" is; rename the child run`;
}

/** The key that goes downstream with an effect. `root` is a UUID, so the pair is unambiguous. */
export function idempotencyKey(root: string, position: string, prefix?: string): string {
  return prefix === undefined ? `${root}:${position}` : `${root}:${prefix}/${position}`;
}

/** The position of the n-th use (from 1) of a name whose earlier uses have ended: `pay`, `pay#2`, … */
export function nthUse(name: string, n: number): string {
  return n === 1 ? name : `${name}#${n}`;
}

/** The position of the item at `index` (from 0) of a step that goes over a list: `each[3]`. */
export function itemPosition(step: string, index: number): string {
  return `${step}[${index}]`;
}

function problemOf(what: string, text: unknown, baseOf: (segment: string) => string): string | undefined {
  if (typeof text !== 'string') return `a ${what} is a string, got ${text === null ? 'null' : typeof text}`;
  const shown = quoted(text);
  if (text === '')
    return `a ${what} is not empty; use letters, digits, ".", "_" and "-", parts joined by "/"`;
  if (text.length > maxPositionLength) {
    return `${what} ${shown} has ${text.length} characters, the limit is ${maxPositionLength}; shorten it`;
  }
  for (const segment of text.split('/')) {
    if (segment === '') return `${what} ${shown} has an empty part; take out the extra "/"`;
    const base = baseOf(segment);
    // URL libraries resolve these two away, so a link would lead to another gate.
    if (base === '.' || base === '..') return `${what} ${shown} has the part "${base}"; rename it`;
    if (!nameSegment.test(base)) {
      return `${what} ${shown}: a part has only letters, digits, ".", "_" and "-"; rename ${quoted(segment)}`;
    }
  }
  return undefined;
}
