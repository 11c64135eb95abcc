// The world around the gates of one run, for its model: what arrives at the run, in the order that fast-check's
// scheduler picks, in workflow tasks of one or more arrivals; the real activities that judge; a clock.
import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import { defaultPayloadConverter } from '@temporalio/common';
import type fc from 'fast-check';
import type { Activities } from '../../src/activities/index.ts';
import type { PerformInput } from '../../src/core/case.ts';
import { signalNames } from '../../src/core/names.ts';
import type { AdmitDecisionInput, FreezeCaseInput } from '../../src/core/recording.ts';
import type { Receipt } from '../../src/core/verdict.ts';
import type { RunState } from '../../src/workflows/run.ts';
import { delivered, goesOn, judged, newGate, type ModelGate, type Sent } from './gate-model.ts';
import {
  isClosing, resolvedJob, scheduledIn, signalJob, type Command, type Job, type SandboxRun, type ScheduledActivity,
} from './sandbox-run.ts'; // prettier-ignore

export interface Setting {
  run: SandboxRun;
  activities: Pick<Activities, 'freezeCase' | 'admitDecision'>;
  positions: readonly string[];
  start: number;
  ttlMs: number;
  /** of what is asked */
  hash: string;
  requester?: string;
  /** in their order; which of them comes when is the scheduler's */
  sends: readonly { gate: number; sent: Sent; signal: unknown }[];
  /** by how much the clock goes on, each time */
  ticks: readonly number[];
  isCancelled: boolean;
  /** of the first judgements in their order: whether the check itself fails */
  failing: readonly boolean[];
}

export interface Outcome {
  gates: ModelGate[];
  state: RunState;
  receipts: Receipt[];
  performed: PerformInput[];
  /** by position, as the memo last said */
  shown: Map<string, string>;
  isClosed: boolean;
}

interface Arrival {
  job: Job;
  /** tells the model */
  tell: () => void;
}

/** Plays it to the end of all that arrives. */
export async function play(setting: Setting, scheduler: fc.Scheduler): Promise<Outcome> {
  const { run, activities, positions, start, ttlMs, hash, requester } = setting;
  const asked = { hash, deadline: start + ttlMs, ...(requester === undefined ? {} : { requester }) };
  const gates = positions.map(() => newGate(asked));
  const gateAt = (position: string): ModelGate => gates[positions.indexOf(position)] ?? assert.fail(position);
  const failing = [...setting.failing];
  const inbox: Arrival[] = [];
  const timers = new Map<number, { due: number; position: string }>();
  const performed: PerformInput[] = [];
  const shown = new Map<string, string>();
  let now = start;
  let hasBegun = false;
  let isClosed = false;
  let problem: Error | undefined;
  let work = Promise.resolve();
  const next = (step: () => Promise<void>): void => {
    work = work.then(step).catch((error: unknown) => {
      problem ??= error as Error;
    });
  };

  const then = (label: string, act: () => void): void => {
    void scheduler.schedule(Promise.resolve(), label).then(act);
  };
  const arrive = (arrival: Arrival): void => {
    inbox.push(arrival);
    then('workflow task', () => next(() => takeTask()));
  };

  /** The first one begins the run, with whatever came before it. */
  async function takeTask(isFirst = false): Promise<void> {
    if (isClosed || (!isFirst && (!hasBegun || inbox.length === 0))) return;
    if (isFirst) for (const gate of gates) gate.deadline = now + ttlMs;
    hasBegun = true;
    const batch = inbox.splice(0, batchSize(inbox));
    // as Temporal's core orders them
    const arrivals = [...batch.filter(isSignal), ...batch.filter((one) => !isSignal(one))];
    const jobs = arrivals.map(({ job }) => job);
    const commands = await run.task(jobs, now);
    for (const { tell } of arrivals) tell();
    for (const gate of gates) goesOn(gate, now);
    for (const command of commands) await see(command);
    if (inbox.length > 0) await takeTask();
  }

  async function see(command: Command): Promise<void> {
    const activity = scheduledIn(command);
    if (activity !== undefined) await begin(activity);
    const { startTimer, cancelTimer, modifyWorkflowProperties, userMetadata } = command;
    if (startTimer) {
      const summary = String(defaultPayloadConverter.fromPayload(userMetadata?.summary ?? {}));
      const position = /^expiry of (\S+)/.exec(summary)?.[1] ?? assert.fail(summary);
      const { seconds, nanos } = startTimer.startToFireTimeout ?? {};
      const due = now + Number(seconds ?? 0) * 1000 + (nanos ?? 0) / 1e6;
      timers.set(startTimer.seq ?? 0, { due, position });
    }
    if (cancelTimer) dropTimer(cancelTimer.seq ?? 0);
    for (const [field, value] of Object.entries(modifyWorkflowProperties?.upsertedMemo?.fields ?? {})) {
      const memo = defaultPayloadConverter.fromPayload<{ state: string }>(value);
      shown.set(field.replace('approval/', ''), memo.state);
    }
    isClosed ||= isClosing(command);
  }

  function dropTimer(seq: number): void {
    timers.delete(seq);
    const index = inbox.findIndex(({ job }) => job.fireTimer?.seq === seq);
    if (index >= 0) inbox.splice(index, 1);
  }

  async function begin(activity: ScheduledActivity): Promise<void> {
    const { type, input } = activity;
    if (type === 'freezeCase') {
      const result = await activities.freezeCase(input as FreezeCaseInput);
      const { position } = input as FreezeCaseInput;
      const tell = (): void => {
        gateAt(position).isOpen = true;
      };
      then('frozen', () => arrive({ job: resolvedJob(activity, { result }), tell }));
    } else if (type === 'admitDecision') {
      const { position, decision, takenUpAt, case: seen } = input as AdmitDecisionInput;
      const gate = gateAt(position);
      assert.deepEqual(
        { id: decision.decisionId, takenUpAt, hash: seen.payloadHash },
        { id: gate.judging?.sent.id, takenUpAt: gate.judging?.takenUpAt, hash: gate.hash },
        'one decision at a time, in the order of their delivery, on what is asked then',
      );
      const isFailing = failing.shift() === true;
      const outcome = isFailing
        ? { failure: 'no key set' }
        : { result: await activities.admitDecision(input as AdmitDecisionInput) };
      const tell = (): void => judged(gate, isFailing);
      then('judged', () => arrive({ job: resolvedJob(activity, outcome), tell }));
    } else {
      assert.equal(type, 'perform');
      performed.push(input as PerformInput);
    }
  }

  function tick(ms: number): void {
    now += ms;
    for (const [seq, { due, position }] of timers) {
      if (due > now) continue;
      timers.delete(seq);
      const tell = (): void => {
        gateAt(position).due ??= 'expired';
      };
      arrive({ job: { fireTimer: { seq } }, tell });
    }
  }

  then('start', () => next(() => takeTask(true)));
  for (const { gate, sent, signal } of setting.sends) {
    const model = gates[gate] ?? assert.fail();
    const job = signalJob(signalNames.decide, signal);
    then(`${sent.kind} ${sent.id}`, () => arrive({ job, tell: () => delivered(model, sent) }));
  }
  void scheduler.scheduleSequence(
    setting.ticks.map((ms) => ({ label: `${ms} ms later`, builder: async () => tick(ms) })),
  );
  if (setting.isCancelled) {
    const tell = (): void => {
      for (const gate of gates) {
        gate.isCancelled = true;
        gate.due ??= 'cancelled';
      }
    };
    then('cancel', () => arrive({ job: { cancelWorkflow: { reason: 'enough' } }, tell }));
  }
  while (scheduler.count() > 0) {
    await scheduler.waitNext(1);
    await setImmediate();
    await work;
    if (problem !== undefined) throw problem;
  }
  const ids = setting.sends.map(({ sent }) => sent.id);
  return {
    ...{ gates, performed, shown, isClosed },
    state: (await run.query('state')) as RunState,
    receipts: (await run.query('receipts', ids)) as Receipt[],
  };
}

function isSignal({ job }: Arrival): boolean {
  return Boolean(job.signalWorkflow);
}

/** All that is there; but not deadline and cancel together, which come in no order of their own. */
function batchSize(inbox: readonly Arrival[]): number {
  const isClock = ({ job }: Arrival): boolean => Boolean(job.fireTimer ?? job.cancelWorkflow);
  const clocks = inbox.flatMap((one, index) => (isClock(one) ? [index] : []));
  const hasCancel = inbox.some(({ job }) => Boolean(job.cancelWorkflow));
  return hasCancel ? (clocks[1] ?? inbox.length) : inbox.length;
}
