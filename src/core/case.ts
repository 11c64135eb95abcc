// Sandbox-safe. What the read-only activities record. A marker in a history holds no input, so each
// result describes itself: {v, kind, position, key, root, …}. Decoders keep reading every earlier `v`.
import type { Decision } from './decision.ts';
import type { Json } from './json.ts';
import type { Actor, DecidedBy, RefusalCode } from './verdict.ts';

/** How a tool tells a repeated call from a new one. */
export type Idempotency = 'key' | 'lookup' | 'none';

/** How an effect is to be run, frozen with its arguments. Times in milliseconds. */
export interface EffectOptions {
  idempotency: Idempotency;
  startToCloseMs: number;
  maximumAttempts: number;
}

/** The spec that a run was started with. */
export interface SpecRef {
  name: string;
  hash: string;
}

/** A gate's policy as evaluated at freeze. */
export interface GatePolicy {
  ttlMs: number;
}

/**
 * `before`: payload is {tool, arguments}. `step`: an approval step, payload is {step, question}.
 * `in-doubt`: an effect may or may not have happened, payload is {tool, arguments, idempotencyKey}.
 * (`after`, {step, output}, comes with the model steps.)
 */
export type GatePhase = 'before' | 'step' | 'in-doubt';

export interface Question {
  title: string;
}

/** What is not known, and what `approve` (it did not happen, try again) would run. */
export interface Doubt {
  idempotencyKey: string;
  /** how the last attempt ended */
  why: string;
  /** the position of the next try: the same, or `#retry-n` where the target takes no key */
  retryPosition: string;
  /** of {tool, arguments}, as the effect's own grant has it */
  effectHash: string;
}

/** The recorded result of `freezeCase`: the case, and the only thing shown, hashed and executed. */
export interface CaseRecord {
  v: 1;
  kind: 'case';
  position: string;
  key: string;
  root: string;
  phase: GatePhase;
  title: string;
  reasoning?: string;
  /** phases `before` and `in-doubt` */
  tool?: string;
  arguments?: Json;
  /** phase `in-doubt` */
  doubt?: Doubt;
  /** phase `step` */
  step?: string;
  question?: Question;
  payloadHash: string;
  policy: GatePolicy;
  /** Milliseconds since the epoch, workflow time. */
  requestedAt: number;
  expiresAt: number;
  /** absent for inline specs and for a gate in one's own workflow */
  spec?: SpecRef;
  /** phase `before` */
  effect?: EffectOptions;
  /** who started the run or asked for the approval; only they may amend it */
  requestedBy?: Actor;
  /** frozen by the API, before the run began (`POST /approvals`) */
  requestedByApi?: true;
  /** where the API shows it, when the worker knows the API's address */
  url?: string;
}

/** The recorded result of `prepareStep`: an ungated effect's arguments, frozen and hashed. */
export interface PreparedRecord {
  v: 1;
  kind: 'prepared';
  position: string;
  root: string;
  tool: string;
  arguments: Json;
  payloadHash: string;
  effect: EffectOptions;
}

/** A step that cannot be frozen: nobody is asked, the run fails with `code`. */
export interface ProblemRecord {
  v: 1;
  kind: 'problem';
  position: string;
  root: string;
  code: string;
  message: string;
}

/** The right to run one effect once. `mac` is an HMAC over the rest under the grant key `kid`. */
export interface Grant {
  v: 1;
  namespace: string;
  workflowId: string;
  key: string;
  root: string;
  /** in a child run: its place in the runs above it; part of the idempotency key */
  prefix?: string;
  position: string;
  tool: string;
  payloadHash: string;
  /** the decision that granted it, or the rule by which nobody had to be asked */
  decisionId?: string;
  rule?: string;
  kid: string;
  mac: string;
}

/** The recorded result of `admitDecision`. */
export interface VerdictRecord {
  v: 1;
  kind: 'verdict';
  position: string;
  key: string;
  root: string;
  decision: Decision;
  by: DecidedBy;
  /** Milliseconds since the epoch, workflow time. Absent in the histories of the first days. */
  takenUpAt?: number;
  verdict: 'accepted' | 'refused';
  code?: RefusalCode;
  message?: string;
  /** with an accepted approval of a `before` or `in-doubt` gate */
  grant?: Grant;
  /** with an accepted edit or amendment: the case frozen anew */
  case?: CaseRecord;
}

/** The input of the activity `perform`. */
export interface PerformInput {
  v: 1;
  position: string;
  root: string;
  prefix?: string;
  tool: string;
  arguments: Json;
  payloadHash: string;
  grant?: Grant;
  /**
   * After a workflow reset: since when the execution that it cut off may have used this key. Milliseconds
   * since the epoch.
   */
  keysSince?: number;
}

/** The result of the activity `perform`. */
export interface EffectRecord {
  v: 1;
  kind: 'effect';
  position: string;
  root: string;
  tool: string;
  idempotencyKey: string;
  payloadHash: string;
  output: Json;
  /** why the tool's output could not be recorded (not JSON, too large); `output` is null then */
  outputProblem?: string;
}

/** The memo record of one gate, at most 400 bytes of JSON; the key follows from workflow id, position and root. */
export interface ApprovalMemo {
  state: 'pending' | 'approved' | 'rejected' | 'expired' | 'withdrawn' | 'responded' | 'cancelled';
  /** only while pending */
  phase?: GatePhase;
  tool?: string;
  title?: string;
  hash?: string;
  requestedAt?: number;
  expiresAt?: number;
  /** only after settlement: who (id), the decision's id, when */
  by?: string;
  decisionId?: string;
  at?: number;
}
