// Sandbox. What one run knows: its gates, its positions, and the receipts of its decisions. It takes the
// signal `decide` raw, judges synchronously what needs no activity, and never throws: one signal that
// throws, or cannot be decoded, would wedge the run for good.
import { rawValueTypeInfo, type RawValue } from '@temporalio/common';
import {
  ApplicationFailure,
  defineQuery,
  defineSignal,
  patched,
  setHandler,
  workflowInfo,
  type CancellationScope,
} from '@temporalio/workflow';
import { workflowIdProblem } from '../core/approval-key.ts';
import { carriedProblem, type Carried, type GateEnd } from '../core/carried.ts';
import type { CaseRecord } from '../core/case.ts';
import type { Decision } from '../core/decision.ts';
import type { FailureCode } from '../core/failures.ts';
import { judgeDelivery, type Delivery, type GateView, type RunPlace } from '../core/gate-state.ts';
import { memoFields, queryNames, signalNames } from '../core/names.ts';
import { childProblem, nameProblem, nthUse, positionProblem, type NameUse } from '../core/position.ts';
import { readSignal, type RawPayload } from '../core/signal.ts';
import type { Receipt, RefusalCode } from '../core/verdict.ts';

export interface QueuedDecision {
  decision: Decision;
  text: string;
}

export interface OpenGate extends GateView {
  queue: QueuedDecision[];
  /** what it was opened by */
  name: string;
  /** while it is open: as amended */
  frozen?: CaseRecord;
  /** until its caller has it */
  end?: GateEnd;
}

/** A gate of the execution before, which waits here until it is asked for again. */
export interface ResumedGate {
  gate: OpenGate;
  end: Promise<GateEnd>;
  scope: CancellationScope;
}

export interface Run extends RunPlace {
  /** in a child run: its place in the runs above it */
  prefix?: string;
  gates: Map<string, OpenGate>;
  receipts: Map<string, Receipt>;
  /** how often a name was used, and whether its last use is still open */
  names: Map<string, NameUse & { open: boolean }>;
  /** by name */
  resumed: Map<string, ResumedGate>;
  /**
   * Milliseconds since the epoch: since when an execution that a workflow reset cut off may have used keys
   * that this one uses again. Undefined where there was no reset.
   */
  keysSince?: number;
}

/** The answer of the query `state`. */
export interface RunState {
  root: string;
  gates: Pick<OpenGate, 'key' | 'position' | 'state' | 'settlement'>[];
}

/** Enough for every decision that somebody can still be waiting for; older ones are in the history. */
const receiptsKept = 1_000;

/**
 * Only declared positions are raw, and one bad undeclared argument would wedge the run all the same, so
 * the list answers for every index.
 */
const decideSignal = defineSignal<RawValue[]>(signalNames.decide, {
  typeInfo: {
    inputTypes: new Proxy([], {
      get: (list, name) =>
        typeof name === 'string' && /^\d+$/.test(name)
          ? rawValueTypeInfo
          : (Reflect.get(list, name) as unknown),
    }),
  },
});
const stateQuery = defineQuery<RunState>(queryNames.state);
const receiptsQuery = defineQuery<Receipt[], [unknown]>(queryNames.receipts);

let current: Run | undefined;

/**
 * The state of this run; the first call sets its signal and query handlers. `prepare` opens what is open
 * from the first event: signals that came before the handlers are delivered while they are set.
 * @param carried what the execution before handed over, with `prepare` that takes it
 * @throws ApplicationFailure `invalid_start` for a run whose positions would start again under the same root
 */
export function currentRun(prepare?: (run: Run) => void, carried?: Carried): Run {
  if (current !== undefined) return current;
  const run = newRun(carried);
  const problem = chainProblem(run, carried);
  if (problem !== undefined) throw failure('invalid_start', problem);
  current = run;
  prepare?.(run);
  setHandler(stateQuery, () => stateOf(run), { description: 'The gates of this run and how they stand.' });
  setHandler(receiptsQuery, (ids) => receiptsOf(run, ids), {
    description: 'What was answered to the decisions of these ids.',
  });
  setHandler(decideSignal, (...values) => deliver(run, values), {
    description: 'A decision on a gate: one JSON object {v, key, root, decision, payloadHash, …}.',
  });
  return run;
}

export function hasBegun(): boolean {
  return current !== undefined;
}

function newRun(carried: Carried | undefined): Run {
  const { workflowId, firstExecutionRunId, originalExecutionRunId, runId, startTime } = workflowInfo();
  const { keysSince, ...chain } = handedDown();
  const own = originalExecutionRunId === runId ? undefined : startTime.getTime(); // a reset changed the id
  const since = [keysSince, carried?.keysSince, own].filter((time) => time !== undefined);
  return {
    workflowId,
    root: firstExecutionRunId,
    ...chain,
    gates: new Map(),
    receipts: new Map(),
    names: new Map(),
    resumed: new Map(),
    ...(since.length === 0 ? {} : { keysSince: Math.min(...since) }),
  };
}

/** Ways to run again under the same root: a second round would have the first one's keys. */
function chainProblem({ root }: Run, carried: Carried | undefined): string | undefined {
  const { cronSchedule, retryPolicy, continuedFromExecutionRunId } = workflowInfo();
  const why = 'the same keys would be used again';
  if (cronSchedule !== undefined && cronSchedule !== '') {
    return `a run takes no cron schedule: with each tick ${why}; use a Temporal Schedule`;
  }
  if (retryPolicy !== undefined) return `a run takes no workflow retry policy: with each retry ${why}`;
  if (carried !== undefined) {
    return carriedProblem(carried, { root, continuedFrom: continuedFromExecutionRunId });
  }
  if (continuedFromExecutionRunId !== undefined) {
    const remedy = 'hand what carry() gives to the next execution, which begins with restore()';
    return `a run that continued as new began without what was carried: ${why}; ${remedy}`;
  }
  return undefined;
}

/**
 * Takes a name for a new position: `name`, then `name#2`, … A name that the system makes may hold what
 * people's may not (`pay#2/in-doubt`). @throws ApplicationFailure for a bad or open name, and for one whose keys
 * could be those of a child run
 */
export function takePosition(run: Run, name: string, kind?: 'system' | 'child'): string {
  const idProblem = workflowIdProblem(run.workflowId);
  if (idProblem !== undefined) throw failure('invalid_start', idProblem);
  const use = run.names.get(name) ?? { uses: 0, open: false };
  if (use.open) {
    const remedy = `name each by its item, such as "${name}/item-17"`;
    throw failure(
      'duplicate_position',
      `position "${name}" is used while its earlier use is open; ${remedy}`,
    );
  }
  const position = nthUse(name, use.uses + 1);
  const whole = run.prefix === undefined ? position : `${run.prefix}/${position}`;
  const problem = (kind === 'system' ? undefined : nameProblem(name)) ?? positionProblem(whole);
  if (problem !== undefined) throw failure('invalid_name', `position ${JSON.stringify(name)}: ${problem}`);
  const shared = kind === 'system' ? undefined : childProblem(run.names, name, kind === 'child');
  // a run that did it before this was refused replays as it was
  if (shared !== undefined && patched('2026-11-30-no-names-below-child-runs')) {
    throw failure('duplicate_position', `position ${shared}`);
  }
  const isChild = use.isChild === true || (kind === 'child' && use.uses === 0);
  run.names.set(name, { uses: use.uses + 1, open: true, ...(isChild ? { isChild } : {}) });
  return position;
}

/**
 * What a parent handed down (DESIGN §4): a parent that is reset starts its children anew, with new run ids,
 * and the child's effects must keep their keys. Taken only by a run that has a parent.
 */
function handedDown(): Pick<Run, 'prefix' | 'keysSince'> & { root?: string } {
  const { parent, memo } = workflowInfo();
  const given = parent === undefined ? undefined : memo?.[memoFields.root];
  if (typeof given !== 'object' || given === null) return {};
  const { root, prefix, keysSince } = given as Record<string, unknown>;
  if (typeof root !== 'string' || typeof prefix !== 'string') return {};
  return { root, prefix, ...(typeof keysSince === 'number' ? { keysSince } : {}) };
}

export function releasePosition(run: Run, name: string): void {
  const use = run.names.get(name);
  if (use !== undefined) use.open = false;
}

export function failure(code: FailureCode, message: string): ApplicationFailure {
  return ApplicationFailure.nonRetryable(message, code);
}

function deliver(run: Run, values: readonly RawValue[]): void {
  const { reading, text } = readSignal(values.map(({ payload }) => payload as RawPayload));
  if (!reading.ok) return; // the signal's own event is the record; the trail decoder reads it as we did
  const { decision } = reading;
  // one that names another root names another run's gate, whatever its key says
  const gate = decision.root === run.root ? run.gates.get(decision.key) : undefined;
  const delivery = judgeDelivery(decision, run, gate);
  if (delivery.action === 'take' && gate !== undefined) {
    gate.queue.push({ decision, text });
    keepReceipt(run, decision, gate, { verdict: 'pending' });
  } else {
    answer(run, decision, gate, delivery);
  }
}

/** Answers a decision that needs no activity: it came too early, too late, or again. */
export function answer(run: Run, decision: Decision, gate: OpenGate | undefined, delivery: Delivery): void {
  if (delivery.action === 'refuse') {
    const { code, message } = delivery;
    keepReceipt(run, decision, gate, { verdict: 'refused', code, message });
  } else {
    keepReceipt(run, decision, gate, { verdict: 'accepted' });
  }
}

export function keepReceipt(
  run: Run,
  decision: Decision,
  gate: OpenGate | undefined,
  answered: { verdict: Receipt['verdict']; code?: RefusalCode; message?: string },
): void {
  const { decisionId, payloadHash } = decision;
  run.receipts.delete(decisionId);
  run.receipts.set(decisionId, {
    decisionId,
    decision: decision.decision,
    ...(payloadHash === undefined ? {} : { payloadHash }),
    ...(gate === undefined ? {} : { position: gate.position }),
    ...answered,
  });
  if (run.receipts.size > receiptsKept) {
    for (const oldest of run.receipts.keys()) {
      run.receipts.delete(oldest);
      break;
    }
  }
}

function receiptsOf(run: Run, ids: unknown): Receipt[] {
  if (!Array.isArray(ids)) return [];
  return ids.flatMap((id: unknown) => {
    const receipt = typeof id === 'string' ? run.receipts.get(id) : undefined;
    if (receipt === undefined) return [];
    const gate = [...run.gates.values()].find(({ position }) => position === receipt.position);
    if (gate === undefined) return [receipt];
    const { state, settlement } = gate;
    return [{ ...receipt, gate: state, ...(settlement === undefined ? {} : { settlement }) }];
  });
}

function stateOf(run: Run): RunState {
  const gates = [...run.gates.values()].map(({ key, position, state, settlement }) => ({
    key,
    position,
    state,
    ...(settlement === undefined ? {} : { settlement }),
  }));
  return { root: run.root, gates };
}
