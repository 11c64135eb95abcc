// Writes legal histories and, as it goes, the facts that they tell: it plays the run, so it knows what happened
// and takes nothing from the decoder. Each step does what it can where the run stands, or nothing.
import type { Decision } from '../../src/core/decision.ts';
import type { Execution } from '../../src/core/history-event.ts';
import type { Json } from '../../src/core/json.ts';
import { admitSummary } from '../../src/core/names.ts';
import type { GateState, RefusalCode } from '../../src/core/verdict.ts';
import {
  caseOf, decisionAt, keyOf, performInput, root, signal, start, started, workflowId, type Body,
} from './trail-events.ts'; // prettier-ignore
import {
  chainOf, codes, endings, endOf, isCut, type Expected, type Gate, type Plan, type Queued, type Recording, type Run, type Signalled,
  type Step, type Written,
} from './trail-run.ts'; // prettier-ignore
import { poorRecords, poorSignals } from './trail-poor.ts';

const verdictKinds = ['approve', 'approve', 'reject', 'edit', 'respond', 'withdraw', 'comment', 'comment', 'amend'] as const; // prettier-ignore
const states: Partial<Record<Decision['decision'], GateState>> = {
  ...{
    approve: 'approved',
    edit: 'approved',
    reject: 'rejected',
    respond: 'responded',
    withdraw: 'withdrawn',
  },
};
const accepted = {
  approve: 'approval_granted', edit: 'approval_edited', reject: 'approval_rejected', respond: 'approval_responded',
  withdraw: 'approval_withdrawn', comment: 'approval_commented', amend: 'approval_amended',
} as const; // prettier-ignore
const commands = ['task_completed', 'local_activity', 'memo_changed', 'activity_scheduled'];
const content = { edit: { arguments: {} }, amend: { arguments: {} }, respond: { result: null } };

/** `runSpec` and `requestApproval` record by local activities, `mine` by ordinary ones. */
export function writeHistory({ kind, steps }: Plan): { executions: Execution[]; facts: Expected[] } {
  const isSpec = kind === 'runSpec';
  const executions: Written[] = [];
  const sent: Decision[] = [];
  let run: Run = { gates: [], inbox: [], effects: [], approved: [], names: 0, isOver: false };
  let now = execute({});

  function execute(more: Partial<Written>): Written {
    const runId = executions.length === 0 ? root : `execution-${executions.length}`;
    const maps = { before: new Map<number, Run>(), signals: new Map<number, Signalled>() };
    const written: Written = { workflowId, runId, events: [], facts: [], ...maps, ...more };
    executions.push(written);
    return written;
  }
  function write(body: Body): number {
    const eventId = now.events.length + 1;
    now.events.push({ ...body, eventId, at: start + eventId * 1000 });
    return eventId;
  }
  /** A copied event was told by the execution that it was copied from. */
  function tell(eventId: number, type: Expected['type'], more: Partial<Expected> = {}): void {
    if (eventId > (now.copied ?? 0)) now.facts.push({ type, temporalRunId: now.runId, eventId, ...more });
  }
  function refuse(eventId: number, code: RefusalCode, decision?: Decision, gate?: Gate): void {
    const about = decision === undefined ? {} : { decisionId: decision.decisionId };
    const at = gate === undefined ? {} : { position: gate.position };
    tell(eventId, 'decision_refused', { code, ...about, ...at });
  }

  /** The run is told of the signals that came, then of how its recording ended. */
  function task(): void {
    now.before.set(now.events.length + 1, structuredClone(run));
    write({ type: 'task_completed' });
    seeSignals();
    const { recording } = run;
    if (recording?.ended === undefined) return;
    delete run.recording;
    conclude(recording, recording.ended);
  }

  function seeSignals(): void {
    for (const { eventId, decision, code } of run.inbox.splice(0)) {
      if (decision === undefined) refuse(eventId, code ?? 'malformed');
      else deliver({ decision, eventId }, eventId);
    }
  }

  /** Commands stand behind the task that gave them, with nothing in between. */
  function inTask(): void {
    if (!commands.includes(now.events.at(-1)?.type ?? '')) task();
  }

  /** @param seenAt where a refusal is told */
  function deliver(queued: Queued, seenAt: number): void {
    const { decision } = queued;
    const gate = run.gates.find(({ position }) => keyOf(position) === decision.key);
    if (decision.root !== root || decision.key === 'no key') return refuse(seenAt, 'unknown_key', decision);
    if (gate === undefined) return refuse(seenAt, 'not_open', decision);
    if (gate.accepted.includes(decision.decisionId) || gate.winner === decision.decisionId) return;
    if (gate.state === 'pending') gate.queue.push(queued);
    else refuse(seenAt, gate.state === 'expired' ? 'expired' : 'already_resolved', decision, gate);
  }

  function settle(gate: Gate, state: GateState, eventId: number): void {
    gate.state = state;
    for (const queued of gate.queue.splice(0)) deliver(queued, Math.max(queued.eventId, eventId));
  }

  /** What the run had not seen or judged comes too late; what still asks is cancelled. */
  function close(eventId: number, isTerminated: boolean): void {
    const told = now.facts.length;
    seeSignals();
    const { recording } = run;
    for (const gate of run.gates) {
      if (gate.state !== 'pending') continue;
      if (recording?.judging !== undefined && recording.position === gate.position) {
        gate.queue.unshift(recording.judging);
      }
      tell(eventId, 'approval_cancelled', { position: gate.position });
      settle(gate, 'cancelled', eventId);
    }
    // a reset terminates what it cuts: then nothing was cancelled
    if (isTerminated) for (const fact of now.facts.slice(told)) fact.unlessCut = true;
  }

  function record(recording: Recording, outcome: number, more: number): void {
    const { position, judging } = recording;
    const activityType = judging === undefined ? 'freezeCase' : 'admitDecision';
    if (kind === 'mine') {
      const input = { key: keyOf(position) };
      run.recording = {
        ...recording,
        scheduledEventId: write({ type: 'activity_scheduled', activityType, input }),
      };
      return;
    }
    const kindOf = judging?.decision.decision;
    const summary = kindOf === undefined ? {} : { summary: admitSummary(kindOf, position, keyOf(position)) };
    const ended = endOf(recording, outcome, more);
    const eventId = write({ type: 'local_activity', activityType, ...ended, ...summary });
    conclude(recording, { eventId, outcome, more });
  }

  /** The run has seen what a recording came to. */
  function conclude({ position, phase, judging }: Recording, ended: NonNullable<Recording['ended']>): void {
    const { eventId, outcome, more } = ended;
    if (judging === undefined) {
      run.gates.push({ position, phase, state: 'pending', accepted: [], queue: [] });
      if (isSpec && phase !== 'in-doubt') tell(eventId, 'step_started', { position });
      return tell(eventId, 'approval_requested', { position });
    }
    const { decision } = judging;
    const gate = run.gates.find((one) => one.position === position) as Gate;
    if (outcome === 0) return refuse(eventId, 'check_failed', decision, gate);
    if (outcome === 1) return refuse(eventId, codes[more % codes.length] as RefusalCode, decision, gate);
    const { decisionId } = decision;
    tell(eventId, accepted[decision.decision as 'approve'], { position, decisionId });
    const state = states[decision.decision];
    if (state === undefined) {
      gate.accepted.push(decisionId);
      return;
    }
    gate.winner = decisionId;
    settle(gate, state, eventId);
    if (state === 'approved' && phase === 'before') run.approved.push(position);
    const isDone = (state === 'approved' && phase === 'step') || state === 'responded';
    if (isSpec && isDone) tell(eventId, 'step_completed', { position: position.replace('/in-doubt', '') });
  }

  function send(signalled: Signalled, body: Body): void {
    const eventId = write(body);
    now.signals.set(eventId, signalled);
    if (signalled.decision === undefined && signalled.code === undefined) tell(eventId, 'signal_ignored');
    else run.inbox.push({ eventId, ...signalled });
  }

  /** Who repeats what was accepted has its answer without an activity. */
  function next(gate: Gate | undefined): Queued | undefined {
    for (;;) {
      const queued = gate?.queue.shift();
      if (queued === undefined || !gate?.accepted.includes(queued.decision.decisionId)) return queued;
    }
  }

  const acts: Record<Step['kind'], (pick: number, more: number) => void> = {
    open(pick, more) {
      inTask();
      if (kind === 'requestApproval' || run.recording !== undefined || run.gates.length > 3) return;
      const phase = (['before', 'before', 'step', 'in-doubt'] as const)[more % 4] ?? 'before';
      run.names += 1;
      record({ position: `gate-${run.names}${phase === 'in-doubt' ? '/in-doubt' : ''}`, phase }, pick, more);
    },
    decide(pick, more) {
      // mostly of a gate that is open; else of any, or of one that may come
      const open = pick % 4 === 0 ? [] : run.gates.filter(({ state }) => state === 'pending');
      const any = run.gates[pick % (run.gates.length + 1)] ?? { position: `gate-${run.names + 1}` };
      const { position } = open[pick % open.length] ?? any;
      const decision = verdictKinds[more % verdictKinds.length] ?? 'approve';
      const astray = [{ root: root.replace('01', '02') }, { key: 'no key' }][pick % 20] ?? {};
      const made = { decision, ...content[decision as 'edit'], ...astray };
      sent.push(decisionAt(position, `d-${sent.length}`, made));
      acts.again(-1, 0);
    },
    again(pick) {
      const decision = sent.at(pick % (sent.length || 1));
      if (decision !== undefined) send({ decision }, signal(decision));
    },
    poorSignal(pick) {
      const { body, ...signalled } = poorSignals[pick % poorSignals.length] ?? { body: signal(null) };
      send(signalled, body);
    },
    poorRecord(pick) {
      inTask();
      write(poorRecords[pick % poorRecords.length] as Body);
    },
    task,
    judge(pick, more) {
      const { recording } = run;
      const outcome = pick % 5;
      if (recording?.scheduledEventId !== undefined && recording.ended === undefined) {
        const { scheduledEventId } = recording;
        const { result, failure } = endOf(recording, outcome, more);
        const eventId =
          failure === undefined
            ? write({ type: 'activity_completed', scheduledEventId, result: result ?? null })
            : write({ type: 'activity_failed', scheduledEventId, failure });
        recording.ended = { eventId, outcome: recording.judging === undefined ? 2 : outcome, more };
        return;
      }
      inTask();
      if (run.recording !== undefined) return;
      const waiting = run.gates.filter(({ state, queue }) => state === 'pending' && queue.length > 0);
      const gate = waiting[pick % waiting.length];
      const judging = next(gate);
      if (gate === undefined || judging === undefined) return;
      record({ position: gate.position, phase: gate.phase, judging }, outcome, more);
    },
    clock(pick, more) {
      inTask();
      const busy = run.recording?.position;
      const idle = run.gates.filter((gate) => gate.state === 'pending' && gate.queue.length === 0 && gate.position !== busy); // prettier-ignore
      const gate = idle[pick % idle.length];
      if (gate === undefined) return;
      const { position } = gate;
      const state = more % 3 === 0 ? 'cancelled' : 'expired';
      const eventId = write({
        type: 'memo_changed',
        fields: { [`approval/${position}`]: { state, at: start } },
      });
      tell(eventId, state === 'expired' ? 'approval_expired' : 'approval_cancelled', { position });
      settle(gate, state, eventId);
    },
    act(pick, more) {
      const effect = run.effects[pick % run.effects.length];
      if (effect !== undefined && more % 2 === 0) {
        run.effects.splice(run.effects.indexOf(effect), 1);
        return effectEnds(effect, pick);
      }
      inTask();
      const position = run.approved.shift();
      if (position === undefined) return;
      const input = { ...performInput, position } as unknown as Json;
      const scheduledEventId = write({ type: 'activity_scheduled', activityType: 'perform', input });
      run.effects.push({ position, scheduledEventId });
      tell(scheduledEventId, 'effect_started', { position });
    },
    end(pick, more) {
      if (more % 5 > 0) return; // rarely: nothing but a reset comes after it
      const way = endings[pick % endings.length] as (typeof endings)[number];
      if (way.byItself) inTask();
      const eventId = write(way.body);
      close(eventId, way.type === 'run_terminated');
      tell(eventId, way.type);
      run.isOver = true;
    },
    continue() {
      inTask();
      const isBusy = run.recording !== undefined || run.effects.length > 0;
      if (kind === 'requestApproval' || isBusy) return;
      tell(write({ type: 'run_continued', nextRunId: `execution-${executions.length}` }), 'run_continued');
      for (const gate of run.gates) for (const queued of gate.queue) queued.eventId = 0;
      const parent = now;
      now = execute({ parent });
      write({ ...started(kind), continuedRunId: parent.runId } as Body);
    },
    reset(pick) {
      const points = chainOf(now).flatMap((one) =>
        [...one.before].map(([eventId, then]) => ({ one, eventId, then })),
      );
      const point = points[pick % points.length];
      // a continuation that was reset itself is not found from the one that it continues (src/history.ts)
      if (point === undefined || chainOf(now, point.one).some(({ base }) => base !== undefined)) return;
      const { one, eventId, then } = point;
      if (!run.isOver) tell(write({ type: 'run_terminated', reason: 'reset' }), 'run_terminated');
      const copied = eventId - 1;
      for (const lost of chainOf(now, one)) lost.cutAfter = 0;
      for (let cut: Written | undefined = one; cut !== undefined; cut = cut.base) {
        cut.cutAfter = Math.min(copied, cut.cutAfter ?? copied);
      }
      now = execute({ copied, base: one, parent: one.parent, events: one.events.slice(0, copied) });
      for (const [at, state] of one.before) if (at <= copied) now.before.set(at, state);
      for (const [at, signalled] of one.signals) if (at <= copied) now.signals.set(at, signalled);
      run = structuredClone(then);
      tell(write({ type: 'reset', baseRunId: one.runId, reason: 'bad deploy' }), 'run_reset');
      // Temporal sends the signals from after that point again
      for (const event of one.events.slice(copied)) {
        if (event.type === 'signaled') send(one.signals.get(event.eventId) ?? {}, { ...event });
      }
    },
  };

  function effectEnds({ position, scheduledEventId }: Run['effects'][number], way: number): void {
    write({ type: 'activity_started', scheduledEventId, attempt: 1 + (way % 3) });
    if (way % 3 === 0) {
      const eventId = write({ type: 'activity_completed', scheduledEventId, result: { output: 1 } });
      tell(eventId, 'tool_result', { position });
      if (isSpec) tell(eventId, 'step_completed', { position });
      return;
    }
    const type = way % 3 === 1 ? 'effect_failed' : 'timeout';
    const eventId = write({
      type: 'activity_failed',
      scheduledEventId,
      failure: { type, message: 'm', details: [] },
    });
    tell(eventId, type === 'timeout' ? 'effect_in_doubt' : 'effect_failed', { position });
  }

  const first = started(kind) as Extract<Body, { type: 'run_started' }>;
  const asked = caseOf('gate-1') as unknown as Json;
  tell(write(kind === 'requestApproval' ? { ...first, input: { v: 1, case: asked } } : first), 'run_started');
  if (kind === 'requestApproval')
    conclude({ position: 'gate-1', phase: 'before' }, { eventId: 1, outcome: 2, more: 0 });
  for (const { kind: what, pick, more } of steps) if (!run.isOver || what === 'reset') acts[what](pick, more);
  if (!run.isOver) task(); // so that nothing that came is untold

  const facts = executions.flatMap((one) =>
    one.facts.flatMap(({ unlessCut, ...fact }) => {
      if (unlessCut === true && one.cutAfter !== undefined) return [];
      return [isCut(one, fact) ? { ...fact, superseded: true as const } : fact];
    }),
  );
  return { executions, facts };
}
