// The faults that a plan can have, and what is left to chance in each: when it strikes, how long it lasts, whom.
import type { StartOperation } from './plan.ts';
import type { Random } from './random.ts';

export const targetModes = [
  ...['slow', 'hang', 'lost', '500-after', 'in-progress', '422', '429', 'cut-body', 'refuse'],
] as const;
export type TargetMode = (typeof targetModes)[number];

export const links = ['worker-server', 'api-server', 'worker-target', 'client-api'] as const;
export type Link = (typeof links)[number];

const linkFaults = ['cut', 'one-way', 'slow'] as const;
export type LinkFault = (typeof linkFaults)[number];

export const faultNames = [
  'kill-worker',
  'kill-worker-after-effect',
  'kill-api',
  'kill-server',
  'stop-worker',
  'rolling-restart',
  ...targetModes.map((mode) => `target-${mode}` as const),
  'keys-forgotten',
  ...links.flatMap((link) => linkFaults.map((fault) => `${fault}-${link}` as const)),
  'duplicate-deliveries',
  'reordered-deliveries',
  'clock-api',
  'clock-worker',
  'visibility-lag',
  'reset',
  'reset-parent',
  'continue-as-new',
  'older-build',
  'spec-edited',
  'ten-builds',
  'cache-0',
  'cache-1',
] as const;
export type FaultName = (typeof faultNames)[number];

/** Two that would undo each other, so that one of them could not be seen to strike. */
const exclusive: readonly RegExp[] = [
  // whose workers run
  /^(?:kill-worker|stop-worker|rolling-restart|keys-forgotten|older-build|ten-builds|cache-)/,
  // how the target treats one payment
  /^(?:target-|keys-forgotten|kill-worker-after-effect)/,
  ...links.map((link) => new RegExp(`-${link}$`)),
];

export function collide(name: FaultName, other: FaultName): boolean {
  return name === other || exclusive.some((group) => group.test(name) && group.test(other));
}

export interface Fault {
  name: FaultName;
  /** ms after the run of the plan began; with `event`, at the latest then */
  at: number;
  /** strikes as soon as the history of `run` has so many events */
  event?: number;
  /** nothing more gets through to Temporal between that event and the fault */
  isExact?: true;
  /** of a reset: to this completed workflow task, from 1, of the run when it has ended; beyond the last: the last */
  task?: number;
  run?: string;
  /** how long it lasts, ms */
  lasts: number;
  /** of a clock: the jump, ms; of a reset: which completed workflow task, from 0, below 1 */
  amount: number;
  /** how often, for those of a target and for continue-as-new */
  times: number;
}

/** Longer than any timeout that it is to outlast: heartbeat and workflow task have 4 s, sticky queues 2 s. */
const outlastsMs = 5_500;

export function planFault(random: Random, name: FaultName, starts: readonly StartOperation[]): Fault {
  const victim = victimOf(random, name, starts);
  // the first gate is reached, whatever becomes of the others
  const [first] = victim?.gates ?? [];
  if (first !== undefined && (isOfTarget(name) || isOfDoor(name)))
    Object.assign(first, { expires: false, ttlMs: 3_600_000 });
  if (first !== undefined && name === 'keys-forgotten') first.tool = 'pay.short';
  const fault: Fault = {
    name,
    at: random.whole(200, 2_000),
    lasts: random.whole(200, 1_200),
    amount: random.next(),
    times: 1,
    ...(victim === undefined ? {} : { run: victim.run }),
  };
  // half of the kills at a moment of somebody's history, not of the clock
  if (/^kill-(?:worker|api|server)$/.test(name) && random.chance(0.5)) fault.event = random.whole(2, 40);
  if (isOfTarget(name)) fault.at = 0;
  if (name.startsWith('target-')) fault.times = random.whole(1, 2);
  if (name === 'stop-worker') fault.lasts = outlastsMs;
  if (name === 'spec-edited') Object.assign(fault, { at: random.whole(300, 900), lasts: 2_500 });
  if (name.startsWith('clock-')) {
    // within the 60 s by which a proof may be ahead, most of the time
    const jump = random.pick([-600_000, -40_000, -5_000, 5_000, 40_000, 50_000]);
    Object.assign(fault, { amount: jump, lasts: random.whole(800, 2_500) });
  }
  if (name.startsWith('cache-') || name === 'older-build') fault.at = 0;
  if (name === 'visibility-lag') Object.assign(fault, { at: 0, lasts: 3_000 });
  if (isOfDoor(name) && !name.endsWith('deliveries')) fault.at = random.whole(0, 800);
  if (name === 'reordered-deliveries') Object.assign(fault, { at: 0, lasts: 2_500 });
  if (name === 'duplicate-deliveries') fault.at = random.whole(1_000, 2_500);
  if (name === 'continue-as-new') fault.times = random.whole(1, 4);
  return fault;
}

/** Faults that strike when an effect is asked for: the first gate of their run is approved. */
export function isOfTarget(name: FaultName): boolean {
  return (
    name.startsWith('target-') ||
    name.endsWith('-worker-target') ||
    name === 'keys-forgotten' ||
    name === 'kill-worker-after-effect'
  );
}

/** Faults that strike when somebody decides by HTTP: there is one who does. */
export function isOfDoor(name: FaultName): boolean {
  return /-(?:client-api|api-server)$/.test(name) || name.endsWith('-deliveries') || name === 'clock-api';
}

/** Whose gate, history or chain it is about. */
function victimOf(
  random: Random,
  name: FaultName,
  starts: readonly StartOperation[],
): StartOperation | undefined {
  switch (name) {
    case 'spec-edited':
    case 'ten-builds':
      return starts.find(({ shape }) => shape === 'named');
    case 'reset-parent':
      return starts.find(({ kind }) => kind === 'child');
    case 'continue-as-new':
      return starts.find(({ shape }) => shape === 'carried');
    case 'keys-forgotten':
      return starts.find(({ shape }) => !['named', 'child', 'children', 'carried'].includes(shape));
    default:
      return random.pick(starts);
  }
}
