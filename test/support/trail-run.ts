// What the writer of histories knows of a run: its gates, what waits, what is underway; how recordings and runs end.
import type { GatePhase } from '../../src/core/case.ts';
import type { Decision } from '../../src/core/decision.ts';
import type { Execution } from '../../src/core/history-event.ts';
import type { Json } from '../../src/core/json.ts';
import type { TrailFact } from '../../src/core/trail-fact.ts';
import type { GateState, RefusalCode } from '../../src/core/verdict.ts';
import { caseOf, root, type Body } from './trail-events.ts';

/** What a fact is compared by. */
export interface Expected {
  type: TrailFact['type'];
  temporalRunId: string;
  eventId: number;
  position?: string;
  code?: RefusalCode;
  decisionId?: string;
  superseded?: true;
  /** not told when a reset cut its execution */
  unlessCut?: true;
}

export type RunKind = 'runSpec' | 'requestApproval' | 'mine';

export const stepKinds = [
  'open', 'decide', 'again', 'poorSignal', 'poorRecord', 'task', 'judge', 'clock', 'act', 'end', 'continue', 'reset',
] as const; // prettier-ignore

export interface Step {
  kind: (typeof stepKinds)[number];
  /** which of those that there are */
  pick: number;
  /** how */
  more: number;
}

export interface Plan {
  kind: RunKind;
  steps: readonly Step[];
}

export interface Queued {
  decision: Decision;
  /** of its signal; 0: it came in an earlier execution */
  eventId: number;
}

export interface Gate {
  position: string;
  phase: GatePhase;
  state: GateState;
  winner?: string;
  /** ids of comments and amendments */
  accepted: string[];
  queue: Queued[];
}

/** A case that is being frozen, or a decision that is being judged. */
export interface Recording {
  position: string;
  phase: GatePhase;
  judging?: Queued;
  scheduledEventId?: number;
  /** how it ended; the run sees that with its next task */
  ended?: { eventId: number; outcome: number; more: number };
}

export type Signalled = { decision?: Decision; code?: RefusalCode };

/** What the run is like: plain data, so that a reset can take it back. */
export interface Run {
  gates: Gate[];
  /** signals that no task has told the run of yet */
  inbox: (Signalled & { eventId: number })[];
  /** with ordinary activities, one at a time */
  recording?: Recording;
  effects: { position: string; scheduledEventId: number }[];
  /** approved, and not begun */
  approved: string[];
  names: number;
  isOver: boolean;
}

export interface Written extends Execution {
  facts: Expected[];
  /** the run as it was before each task, by the event of the task */
  before: Map<number, Run>;
  signals: Map<number, Signalled>;
  /** the execution that this one continues */
  parent?: Written | undefined;
  /** the one that it was reset from */
  base?: Written;
}

export const codes: RefusalCode[] = [
  'payload_changed',
  'spec_changed',
  'unproven',
  'not_allowed',
  'invalid_edit',
  'expired',
];

const failure = { type: 'effect_in_doubt', message: 'm', details: [] };
export const endings: { body: Body; type: Expected['type']; byItself: boolean }[] = [
  { body: { type: 'run_completed', result: { status: 'rejected' } }, type: 'run_finished', byItself: true },
  { body: { type: 'run_failed', failure }, type: 'run_finished', byItself: true },
  { body: { type: 'run_cancelled' }, type: 'run_cancelled', byItself: true },
  { body: { type: 'run_terminated', reason: 'by hand' }, type: 'run_terminated', byItself: false },
  { body: { type: 'run_timed_out' }, type: 'run_finished', byItself: false },
];

/** The executions that led to this one by continuing, back to the first, or to the one after `until`. */
export function chainOf(last: Written, until?: Written): Written[] {
  const chain: Written[] = [];
  for (let one: Written | undefined = last; one !== undefined && one !== until; one = one.parent)
    chain.unshift(one);
  return chain;
}

export function isCut({ cutAfter }: Written, { eventId }: Expected): boolean {
  return cutAfter !== undefined && eventId > cutAfter;
}

/** What a recording activity answers; of a judgement 0: the check failed, 1: refused, else accepted. */
export function endOf({ position, phase, judging }: Recording, outcome: number, more: number) {
  if (judging === undefined) return { result: caseOf(position, { phase }) as unknown as Json };
  const { decision } = judging;
  const { key, decisionId } = decision;
  if (outcome === 0) {
    // ended by Temporal's own timeout it names nobody
    const details = more % 2 === 0 ? [{ key, decisionId }] : [];
    return { failure: { type: 'check_failed', message: 'no key set', details } };
  }
  const isAnew = decision.decision === 'amend' || decision.decision === 'edit';
  const anew = isAnew ? { case: caseOf(position, { phase, payloadHash: `sha256:${'b'.repeat(64)}` }) } : {};
  const said =
    outcome === 1
      ? { verdict: 'refused', code: codes[more % codes.length] }
      : { verdict: 'accepted', ...anew };
  const by = { ...decision.by, verified: true };
  return { result: { v: 1, kind: 'verdict', position, key, root, decision, by, ...said } as unknown as Json };
}
