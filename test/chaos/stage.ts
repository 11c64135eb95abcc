// One run of one plan: its world, what was started, what was asked and answered. Operations and faults meet here.
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RunDescription } from '../../src/countersign-client.ts';
import type { Call } from './evidence.ts';
import type { PlannedGate } from './plan-runs.ts';
import type { Plan, StartOperation } from './plan.ts';
import type { World } from './world.ts';

export interface Stage {
  world: World;
  plan: Plan;
  calls: Call[];
  /** of the labels of its runs */
  prefix: string;
  /** by the letter of the plan */
  runs: Map<string, StagedRun>;
  /** of `clock()` */
  beganAt: number;
  /** the time of the last thing that a fault did, of `clock()` */
  lastFaultAt: number;
  /** what goes on beside the plan's own operations, and is waited for */
  others: Promise<unknown>[];
  /** of `clock()`; undefined while faults still strike */
  healedAt?: number;
  /** of the plan's operations, and what goes on beside them: those that do not wait for a run */
  acting: number;
  /** those that wait for a run, and how often each has looked */
  watchers: Set<{ looks: number }>;
  /** every run has ended or waits for somebody, and nothing comes any more: what waits for a gate waits in vain */
  isQuiet: boolean;
  /** who was looked at last, and when */
  looks: Map<string, { at: number; look: Promise<RunDescription | undefined> }>;
  /** when nobody tries again any more, of `clock()` */
  giveUpAt: number;
}

export interface StagedRun {
  start: StartOperation;
  /** chosen here; of an approval that is requested by HTTP the API names the run */
  label: string;
  /** Resolves with the workflow id, once Temporal has it; undefined: it was never started. */
  started: Promise<string | undefined>;
  tellStarted: (id: string | undefined) => void;
}

export interface SeenGate {
  runId: string;
  root: string;
  key: string;
  position: string;
  hash: string;
  state: string;
}

/** Milliseconds since the epoch by a clock that never goes back: that of every time in the evidence. */
export function clock(): number {
  return performance.timeOrigin + performance.now();
}

/** Bounds what is waited for in a run; a slow machine does not come near it. */
const patienceMs = 120_000;
const pauseMs = 60;
/** A look that began so lately is as good as a new one; it must be shorter than the pause between two. */
const shareMs = 40;

export function openStage(world: World, plan: Plan): Stage {
  const beganAt = clock();
  const unique = randomBytes(4).toString('hex');
  const prefix = `chaos-${plan.seed}-${unique}-`;
  const runs = new Map<string, StagedRun>();
  for (const operation of plan.operations) {
    if (operation.op !== 'start') continue;
    let tellStarted: StagedRun['tellStarted'] = () => undefined;
    const started = new Promise<string | undefined>((resolve) => (tellStarted = resolve));
    const label = `${prefix}${operation.run}`;
    runs.set(operation.run, { start: operation, label, started, tellStarted });
  }
  return {
    ...{ world, plan, runs, prefix, beganAt, calls: [], others: [], looks: new Map(), isQuiet: false },
    ...{ acting: 0, watchers: new Set() },
    lastFaultAt: beganAt,
    giveUpAt: beganAt + patienceMs,
  };
}

export function runOf(stage: Stage, letter: string): StagedRun {
  const run = stage.runs.get(letter);
  if (run === undefined) throw new TypeError(`the plan starts no run "${letter}"`);
  return run;
}

/** Resolves at that moment of the plan. */
export async function until(stage: Stage, at: number): Promise<void> {
  await sleep(Math.max(0, stage.beganAt + at - clock()));
}

export function isOver(stage: Stage): boolean {
  return clock() > stage.giveUpAt;
}

/** By the server itself, past every fault but its own death. Those who ask at the same time share an answer. */
export function describe(stage: Stage, runId: string): Promise<RunDescription | undefined> {
  const known = stage.looks.get(runId);
  if (known !== undefined && clock() - known.at < shareMs) return known.look;
  const look = stage.world.countersign.describeRun(runId).catch(() => undefined);
  stage.looks.set(runId, { at: clock(), look });
  return look;
}

/** Of an open or settled gate, as the run's memo has it; undefined: it has not asked yet. */
export function seenGate(run: RunDescription, position: string): SeenGate | undefined {
  const entry = run.approvals.find((one) => one.position === position);
  if (entry === undefined) return undefined;
  const { key, memo } = entry;
  return { runId: run.runId, root: run.root, key, position, hash: memo.hash ?? '', state: memo.state };
}

/** Looks again and again until `choose` gives something; undefined when time is up or the run has ended. */
export async function watch<Found>(
  stage: Stage,
  runId: string,
  choose: (run: RunDescription) => Found | undefined,
  patience = 60_000,
): Promise<Found | undefined> {
  const end = Math.min(clock() + patience, stage.giveUpAt);
  const watcher = { looks: 0 };
  stage.watchers.add(watcher);
  stage.acting -= 1;
  try {
    while (clock() < end) {
      const wasQuiet = stage.isQuiet;
      const run = await describe(stage, runId);
      const found = run === undefined ? undefined : choose(run);
      if (found !== undefined) return found;
      if (run?.closeStatus !== undefined || wasQuiet) return undefined;
      watcher.looks += 1;
      await sleep(pauseMs);
    }
    return undefined;
  } finally {
    stage.acting += 1;
    stage.watchers.delete(watcher);
  }
}

/** Counts what somebody does, so that nobody takes their thinking for quiet. */
export async function act<Result>(stage: Stage, work: () => Promise<Result>): Promise<Result> {
  stage.acting += 1;
  try {
    return await work();
  } finally {
    stage.acting -= 1;
  }
}

/** The workflow id of the run that the gate stands in. */
export async function runIdOf(stage: Stage, letter: string, gate?: PlannedGate): Promise<string | undefined> {
  const id = await runOf(stage, letter).started;
  return id === undefined ? undefined : `${id}${gate?.child ?? ''}`;
}
