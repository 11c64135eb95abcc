// The runs of a plan: of which form, and with which gates. The forms are the workflow types of the product and
// those of the tests' own bundle, with names that are the same in all of them.
import type { EvidenceOfRun } from './evidence.ts';
import type { FaultName } from './plan-faults.ts';
import type { Random } from './random.ts';

export type RunKind = EvidenceOfRun['kind'];

export type Shape =
  | 'named'
  | 'inline'
  | 'request'
  | 'one'
  | 'row'
  | 'side'
  | 'effects'
  | 'child'
  | 'children'
  | 'carried'
  | 'rounds'
  | OddShape;

/** Of those who would go around the gate: with other arguments than were approved, and without an approval. */
export type OddShape = 'misused' | 'forged';

/** No fault is planned for these: what they try must come to nothing without one. */
export function isOdd(shape: Shape): shape is OddShape {
  return shape === 'misused' || shape === 'forged';
}

export const shapesOfKind: Readonly<Record<RunKind, readonly Shape[]>> = {
  runSpec: ['named', 'inline'],
  requestApproval: ['request'],
  own: ['one', 'row', 'side', 'effects'],
  child: ['child', 'children'],
  carried: ['carried', 'rounds'],
};

/** The tools of ./tools.ts that a gate may stand before. */
export type GateTool = 'pay.keyed' | 'pay.none' | 'pay.lookup' | 'pay.short';

export interface PlannedGate {
  /** its position in its run */
  name: string;
  /** of the child run that it stands in, behind the run's own id; empty: the run itself */
  child: '' | '/sub';
  tool: GateTool;
  amount: string;
  ttlMs: number;
  /** what it comes to: the plan gives it decisions, or none and a short time */
  expires: boolean;
}

export interface PlannedRun {
  run: string;
  kind: RunKind;
  shape: Shape;
  gates: PlannedGate[];
}

export interface RunWishes {
  faults: readonly FaultName[];
  mayExpire: boolean;
}

const hourMs = 3_600_000;
/** Their gates have one time to live: the spec's, or the default. */
const steady: readonly Shape[] = ['named', 'rounds'];

const gateCounts: Readonly<Record<Shape, readonly [least: number, most: number]>> = {
  named: [2, 2],
  inline: [1, 2],
  request: [1, 1],
  one: [1, 1],
  row: [2, 3],
  side: [2, 4],
  effects: [1, 1],
  child: [1, 2],
  children: [2, 2],
  carried: [2, 4],
  rounds: [2, 3],
  misused: [1, 1],
  forged: [0, 0],
};

export function planRun(random: Random, shape: Shape, run: string, wishes: RunWishes): PlannedRun {
  const [least, most] = gateCounts[shape];
  const count = random.whole(least, most);
  const gates = Array.from({ length: count }, (_, index): PlannedGate => {
    const isBelow = shape === 'child' || (shape === 'children' && index === 1);
    // the named spec is the same in every plan, so its gates are
    const tool = shape === 'named' ? 'pay.keyed' : toolOf(random, wishes.faults);
    const expires = !steady.includes(shape) && wishes.mayExpire && random.chance(0.06);
    return {
      name: shape === 'request' ? 'request' : `pay-${index + 1}`,
      child: isBelow ? '/sub' : '',
      tool,
      amount: shape === 'named' ? '10.00' : `${random.whole(1, 99)}.${random.whole(10, 99)}`,
      ttlMs: expires ? random.whole(800, 2_500) : hourMs,
      expires,
    };
  });
  return { run, kind: kindOf(shape), shape, gates: shape === 'rounds' ? roundsOf(gates) : gates };
}

/** The same gate again and again: its name counts on. */
function roundsOf(gates: readonly PlannedGate[]): PlannedGate[] {
  return gates.flatMap((gate, index) => {
    const [first = gate] = gates;
    return [{ ...first, name: index === 0 ? first.name : `${first.name}#${index + 1}` }];
  });
}

function toolOf(random: Random, faults: readonly FaultName[]): GateTool {
  // a reset to before the effect of a target that takes no key runs it again: docs/guarantees.md says so
  const isReset = faults.some((name) => name.startsWith('reset'));
  return random.weighted<GateTool>([
    ['pay.keyed', 6],
    ['pay.none', isReset ? 0 : 2],
    ['pay.lookup', 2],
    ['pay.short', 1],
  ]);
}

function kindOf(shape: Shape): RunKind {
  if (isOdd(shape)) return 'own';
  const found = Object.entries(shapesOfKind).find(([, shapes]) => shapes.includes(shape));
  if (found === undefined) throw new TypeError(`no kind of run has the shape "${shape}"`);
  return found[0] as RunKind;
}
