// "At every history event": one run with two gates and three effects, in which a process is killed as soon as the
// history has so many events. The moment is exact: a hook outside shipped code, in the proxies before Temporal,
// looks at the history before each call and answer that could bring it on, and holds all of them until the kill.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Fault } from './plan-faults.ts';
import { approvalBy } from './plan-operations.ts';
import { planRun, type Shape } from './plan-runs.ts';
import type { Plan } from './plan.ts';
import { createRandom } from './random.ts';
import { isOver, runOf, type Stage } from './stage.ts';

const victims = ['kill-worker', 'kill-api', 'kill-server'] as const;

/** Of a run of a spec, of one's own workflows, of a parent with a child that asks, of one that asks beside its child. */
const resetShapes = ['named', 'row', 'child', 'children', 'side', 'request'] as const;

/** Seed 0: the worker at event 1; 1: the API at event 1; 2: the server at event 1; 3: the worker at event 2, … */
export function killPlan(seed: number): Plan {
  const event = Math.floor(seed / victims.length) + 1;
  const name = victims[seed % victims.length] ?? 'kill-worker';
  const fault: Fault = {
    name,
    at: 0,
    event,
    isExact: true,
    run: 'a',
    lasts: 200,
    amount: 0,
    times: 1,
  };
  return planOf(seed, `reference ${name} at event ${event}`, 'named', fault);
}

/** Seed 0 to 5: each form of run, to its first completed workflow task; 6 to 11: to its second; … */
export function resetPlan(seed: number): Plan {
  const task = Math.floor(seed / resetShapes.length) + 1;
  const shape = resetShapes[seed % resetShapes.length] ?? 'named';
  const fault: Fault = { name: 'reset', at: 0, task, run: 'a', lasts: 0, amount: 0, times: 1 };
  return planOf(seed, `reference reset of ${shape} to task ${task}`, shape, fault);
}

function planOf(seed: number, kind: string, shape: Shape, fault: Fault): Plan {
  const random = createRandom(seed);
  const wishes = { faults: [fault.name], mayExpire: false };
  const planned = planRun(random, shape, 'a', wishes);
  const gates = planned.gates.map((gate) => ({ ...gate, tool: 'pay.keyed' as const }));
  return {
    ...{ seed, kind, faults: [fault] },
    operations: [
      { op: 'start', at: 0, client: 'starter', person: 'ann', ...planned, gates },
      ...gates.map((_, gate) => approvalBy(`client-${gate}`, 'a', { person: 'bob', gate })),
    ],
  };
}

/** Of the worker: what it tells Temporal, and what it is given to do. */
const ofWorker = /^(?:Respond|RecordActivityTaskHeartbeat|Poll(?:Workflow|Activity)TaskQueue)/;
/** Of the API: what makes events. */
const ofApi = /^(?:Start|Signal|RequestCancel)/;

/**
 * Resolves when the history of the run has that many events, and then nothing more gets through to Temporal until
 * what it resolves with is called; with undefined when the run has ended before.
 */
export async function atEvent(
  stage: Stage,
  { event = 0, run = '' }: Fault,
): Promise<(() => void) | undefined> {
  const { api, worker } = stage.world.grpc;
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  let isHeld = false;
  // the first events are there before anybody could say the run's id
  const id = runOf(stage, run).label;
  const see = () => stage.world.countersign.describeRun(id).catch(() => undefined);
  const look = async (): Promise<void> => {
    if (!isHeld) isHeld = ((await see())?.historyLength ?? 0) >= event;
    if (isHeld) await released;
  };
  const before = (pattern: RegExp) => (method: string) => (pattern.test(method) ? look() : undefined);
  Object.assign(worker, { onCall: before(ofWorker), onAnswer: before(ofWorker) });
  Object.assign(api, { onCall: undefined, onAnswer: before(ofApi) });
  const done = (): void => {
    Object.assign(worker, { onCall: undefined, onAnswer: undefined });
    Object.assign(api, { onCall: undefined, onAnswer: undefined });
    release();
  };
  while (!isHeld && !isOver(stage)) {
    const seen = await see();
    isHeld ||= (seen?.historyLength ?? 0) >= event;
    if (isHeld || seen?.closeStatus !== undefined) break;
    await sleep(5);
  }
  if (isHeld) return done;
  done();
  return undefined;
}
