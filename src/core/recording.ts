// Sandbox-safe types. Inputs of the read-only activities. In the workflow types of countersign they are
// local activities, whose inputs no history holds; in others they are ordinary ones.
import type { Carried } from './carried.ts';
import type { CaseRecord, Doubt, EffectOptions, GatePhase, SpecRef } from './case.ts';
import type { Decision } from './decision.ts';
import type { Json, JsonObject } from './json.ts';
import type { Actor } from './verdict.ts';

/** What templates may refer to. */
export interface Scope {
  input: Json;
  steps: Record<string, { output: Json }>;
}

interface Position {
  v: 1;
  position: string;
  root: string;
  /** in a child run: its place in the runs above it */
  prefix?: string;
}

/** Freezes the arguments of an ungated call, or resolves a spec's output. */
export interface PrepareStepInput extends Position {
  what: { tool: string; arguments: Json } | { output: Json };
  scope?: Scope;
}

export interface FreezeCaseInput extends Position {
  key: string;
  phase: GatePhase;
  /** phases `before` and `in-doubt` */
  tool?: string;
  arguments?: Json;
  /** phase `step`: the step's id */
  step?: string;
  /** phase `in-doubt`; the effect's options are kept for the next try */
  doubt?: Doubt;
  effect?: EffectOptions;
  requestedBy?: Actor;
  title?: string;
  reasoning?: string;
  /** as written (`2h`) or in milliseconds; the deployment's default when absent */
  ttl?: string | number;
  /** workflow time, milliseconds since the epoch */
  now: number;
  scope?: Scope;
  spec?: SpecRef;
}

/** What is needed of a case to judge a decision; not its payload, which an ordinary activity would record again. */
export type AdmittedCase = Pick<
  CaseRecord,
  'phase' | 'tool' | 'payloadHash' | 'policy' | 'expiresAt' | 'spec' | 'requestedBy' | 'doubt'
>;

export interface AdmitDecisionInput extends Position {
  key: string;
  case: AdmittedCase;
  /** with edit and amend: the whole case, to be frozen anew */
  whole?: CaseRecord;
  decision: Decision;
  /** the signal's JSON text, for the strict reader */
  text: string;
  /** workflow time when the decision was taken from the queue, milliseconds since the epoch */
  takenUpAt: number;
}

/** The start input of `runSpec`. */
export interface RunSpecInput {
  v: 1;
  spec: JsonObject;
  specRef?: SpecRef;
  input: Json;
  trigger: JsonObject;
  startedBy: JsonObject;
  /** Continue as new between two steps beyond so many events; default in policies.ts. */
  continueAfterEvents?: number;
  /**
   * In an execution that continues another: the outputs of the steps that are done, the index of the next one (in
   * older runs as many as there are outputs), and what is carried.
   */
  continued?: { steps: Scope['steps']; next?: number; carried: Carried };
}

/** A spec's output, resolved: the recorded result of `prepareStep` for `{output}`. */
export interface OutputRecord {
  v: 1;
  kind: 'output';
  position: string;
  root: string;
  value: Json;
}

/** The start input of `requestApproval`: what `POST /approvals` froze, before any wait. */
export interface RequestApprovalInput {
  v: 1;
  /** the frozen case; its key and root follow from the run that this starts */
  case: Omit<CaseRecord, 'key' | 'root'>;
  trigger: JsonObject;
  startedBy: JsonObject;
}
