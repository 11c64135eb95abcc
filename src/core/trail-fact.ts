// The closed list of facts that a trail is made of (DESIGN §8), as far as they are made so far.
import type { Doubt, GatePhase, GatePolicy, Question, SpecRef } from './case.ts';
import type { Decision } from './decision.ts';
import type { Json, JsonObject } from './json.ts';
import type { Actor, DecidedBy, RefusalCode } from './verdict.ts';

/** What started a run. Header values are filtered before they get here. */
export interface Trigger {
  /** `api`, `hook`, `temporal` (a Temporal client), `run` (another run that started it as its child) */
  kind: string;
  /** of a hook: the trigger in the config */
  name?: string;
  /** of a hook: the event's or the delivery's id; of `run`: the parent's run id */
  id?: string;
  /** of a hook with a CloudEvent */
  source?: string;
  headers?: Record<string, string>;
  /** how many more headers there were than a trigger keeps */
  headersOmitted?: number;
  /** of `temporal`: the identity that the client gave itself */
  identity?: string;
}

/** Where and when a fact was recorded. `at` is the event's time, ISO 8601 in UTC. */
export interface FactPlace {
  /** dense from 1 over the whole chain */
  seq: number;
  at: string;
  position?: string;
  temporalRunId: string;
  eventId: number;
  /** cut off by a workflow reset; kept, because it happened */
  superseded?: true;
}

/** A decision as it was recorded: the whole of it, and Temporal's own word of who sent the signal. */
export interface DecisionFact {
  key: string;
  decision: Decision;
  by: DecidedBy;
  /** the Temporal client identity of the signal */
  identity?: string;
}

export type FactBody =
  | { type: 'run_started'; input?: Json; trigger?: Trigger; startedBy?: Actor; spec?: SpecRef }
  | { type: 'step_started' }
  | { type: 'step_completed'; output: Json }
  | {
      type: 'approval_requested';
      key: string;
      phase: GatePhase;
      title: string;
      tool?: string;
      arguments?: Json;
      question?: Question;
      doubt?: Doubt;
      requestedBy?: Actor;
      reasoning?: string;
      payloadHash: string;
      policy: GatePolicy;
      requestedAt: string;
      expiresAt: string;
    }
  | ({ type: 'approval_granted' } & DecisionFact)
  | ({ type: 'approval_rejected' } & DecisionFact)
  | ({ type: 'approval_withdrawn' } & DecisionFact)
  | ({ type: 'approval_responded' } & DecisionFact)
  | ({ type: 'approval_commented' } & DecisionFact)
  /** the payload as frozen anew; the one before stands in the fact before */
  | ({ type: 'approval_edited'; arguments: Json; payloadHash: string } & DecisionFact)
  | ({ type: 'approval_amended'; arguments: Json; payloadHash: string } & DecisionFact)
  | { type: 'approval_expired'; key: string }
  | { type: 'approval_cancelled'; key: string }
  | {
      type: 'decision_refused';
      code: RefusalCode;
      message?: string;
      key?: string;
      decision?: Decision;
      by?: DecidedBy;
      identity?: string;
    }
  | { type: 'effect_started'; tool: string; arguments: Json; payloadHash: string; idempotencyKey: string }
  | { type: 'tool_result'; tool: string; idempotencyKey: string; attempts: number; output: Json }
  | { type: 'effect_failed'; tool: string; idempotencyKey: string; code: string; message: string }
  | { type: 'effect_in_doubt'; tool: string; idempotencyKey: string; message: string }
  | { type: 'signal_ignored'; name: string }
  | { type: 'run_finished'; status: 'completed' | 'rejected' | 'failed'; output?: Json; error?: JsonObject }
  | { type: 'run_cancelled' }
  | { type: 'run_terminated'; reason?: string }
  | { type: 'run_reset'; toEventId: number; reason?: string }
  | { type: 'run_continued' };

export type TrailFact = FactPlace & FactBody;

/**
 * A fact, and when it could be known: the time of the event that told it, never before that of the fact
 * before it. `at` is no such order: a decision that waited for its worker keeps the time at which it was sent.
 */
export interface KnownFact {
  fact: TrailFact;
  /** milliseconds since the epoch */
  knownAt: number;
}
