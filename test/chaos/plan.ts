// Pure: a seed makes a plan. A plan says what is started, who decides what by which door and when, and which
// faults strike; it is bounded, it is JSON, and the same seed with the same `only` is always the same plan.
import { createRandom, type Random } from './random.ts';
import { collide, faultNames, planFault, type Fault, type FaultName } from './plan-faults.ts';
import { planDecisions, type DecisionOperation, type OtherOperation } from './plan-operations.ts';
import {
  isOdd,
  planRun,
  shapesOfKind,
  type OddShape,
  type PlannedRun,
  type RunKind,
  type Shape,
} from './plan-runs.ts';

export type StartOperation = { op: 'start'; at: number; client: string; person: string } & PlannedRun;

export type Operation = StartOperation | DecisionOperation | OtherOperation;

export interface Plan {
  seed: number;
  /** a name for what the plan is about: its faults, or `calm`; `reference` for a kill at a history event */
  kind: string;
  operations: Operation[];
  faults: Fault[];
}

export const runKinds = ['runSpec', 'requestApproval', 'own', 'child', 'carried'] as const;

/** What `--only` takes beside kinds of runs and faults: the rest of a plan has none of the others. */
export const operationNames = [
  ...['approve', 'reject', 'edit', 'amend', 'withdraw', 'respond', 'comment', 'cancel', 'expire'],
  ...['race', 'duplicate', 'early', 'late', 'stale', 'malformed', 'read', 'misuse', 'forge'],
] as const;

/** `calm`: no fault at all. */
export const onlyNames: readonly string[] = [...runKinds, ...operationNames, ...faultNames, 'calm'];

/** @throws RangeError for a name that is no operation, kind of run or fault */
export function readOnly(text: string): string[] {
  const names = text.split(',').filter((name) => name !== '');
  const unknown = names.find((name) => !onlyNames.includes(name));
  if (unknown === undefined) return names;
  throw new RangeError(`--only takes ${onlyNames.join(', ')}; got "${unknown}"`);
}

/** `only`: names of operations, kinds of runs and faults; of a sort that it names, nothing else is planned. */
export function makePlan(seed: number, only: readonly string[] = []): Plan {
  const random = createRandom(seed);
  const faultsWanted = faultNames.filter((name) => only.includes(name));
  const faults = only.includes('calm') ? [] : planFaultNames(random, faultsWanted);
  const kinds = runKinds.filter((kind) => only.includes(kind));
  const operationsWanted = operationNames.filter((name) => only.includes(name));
  const allowed = new Set<string>(operationsWanted.length === 0 ? operationNames : operationsWanted);

  const odd = planOddShapes(random, allowed, operationsWanted);
  const shapes = [...planShapes(random, faults, kinds), ...odd];
  const starts = shapes.map((shape, index): StartOperation => {
    const planned = planRun(random, shape, String.fromCharCode(97 + index), {
      faults,
      mayExpire: allowed.has('expire'),
    });
    const person = random.pick(people);
    return { op: 'start', at: random.whole(0, 300), client: `starter-${planned.run}`, person, ...planned };
  });
  const usual = starts.filter(({ shape }) => !isOdd(shape));
  const planned = faults.map((name) => planFault(random, name, usual));
  const decisions = starts.flatMap((start) =>
    planDecisions(random, start, { allowed, faults: planned.filter(({ run }) => run === start.run) }),
  );
  const operations = [...starts, ...decisions].sort((one, other) => one.at - other.at);
  return {
    seed,
    kind: faults.length === 0 ? 'calm' : [...faults].sort().join('+'),
    operations,
    faults: planned,
  };
}

export const people = ['ann', 'bob', 'cat', 'dan'] as const;

/** One fault in most plans, so that what breaks is known; more in some, since they come together. */
function planFaultNames(random: Random, wanted: readonly FaultName[]): FaultName[] {
  const names = wanted.length === 0 ? faultNames : wanted;
  const count = random.weighted([
    [0, wanted.length === 0 ? 1 : 0],
    [1, 10],
    [2, 6],
    [3, 2],
  ]);
  const chosen: FaultName[] = [];
  for (let index = 0; index < count; index += 1) {
    const name = random.weighted(names.map((one) => [one, weightOf(one, wanted)] as const));
    if (!chosen.some((other) => collide(name, other))) chosen.push(name);
  }
  return chosen;
}

/** Faults that cost seconds are rarer, unless they are asked for. */
function weightOf(name: FaultName, wanted: readonly FaultName[]): number {
  if (wanted.length > 0) return 1;
  const slow: Partial<Record<FaultName, number>> = {
    'ten-builds': 1,
    'kill-server': 3,
    'stop-worker': 3,
    'spec-edited': 3,
    'keys-forgotten': 3,
  };
  return slow[name] ?? 5;
}

/** What each fault has to find among the runs, then others. */
function planShapes(random: Random, faults: readonly FaultName[], kinds: readonly RunKind[]): Shape[] {
  const needed: Partial<Record<FaultName, readonly Shape[]>> = {
    'spec-edited': ['named'],
    'reset-parent': ['child', 'children'],
    'continue-as-new': ['carried'],
    'ten-builds': ['named'],
    'keys-forgotten': ['inline', 'request', 'one', 'row', 'side', 'effects'],
  };
  const shapes = faults.flatMap((name) => {
    const some = needed[name];
    return some === undefined ? [] : [random.pick(some)];
  });
  const choice = kinds.length === 0 ? runKinds : kinds;
  const count = random.whole(2, 4);
  while (shapes.length < count) shapes.push(random.pick(shapesOfKind[random.pick(choice)]));
  return shapes;
}

/** Now and then somebody goes around the gate; whoever asks for that gets it in every plan. */
function planOddShapes(random: Random, allowed: ReadonlySet<string>, wanted: readonly string[]): OddShape[] {
  const ways = [
    ['misuse', 'misused'],
    ['forge', 'forged'],
  ] as const;
  return ways.flatMap(([name, shape]) =>
    allowed.has(name) && (wanted.includes(name) || random.chance(0.15)) ? [shape] : [],
  );
}
