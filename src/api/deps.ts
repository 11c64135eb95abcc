// What the API is given. It holds no connection and no file of its own, and no state that matters: every
// API process may die at any time, and any other one can answer in its place.
import type { CountersignClient } from '../countersign-client.ts';
import type { Decision } from '../core/decision.ts';
import type { Json } from '../core/json.ts';
import type { Spec } from '../core/spec/spec.ts';
import type { FreezeRequest } from '../freeze-request.ts';
import type { HookTrigger } from '../triggers.ts';
import type { Principal } from './auth.ts';
import type { Decider } from './decide.ts';
import type { SweepOptions } from './fact-sweep.ts';
import type { SkipOdd } from './odd-runs.ts';
import type { StartDesk } from './start-once.ts';

/** The specs that can be started by name. */
export interface SpecSource {
  get(name: string): { spec: Spec; hash: string } | undefined;
  names(): string[];
  /** What is wrong with the spec of that name, when it went bad; undefined when nothing is, or there is none. */
  problemOf(name: string): string | undefined;
}

export interface ApiDeps {
  client: CountersignClient;
  specs: SpecSource;
  checkInlineSpec(value: Json): { spec: Spec } | { problems: string[] };
  /** What is wrong with a run's input, by the spec's own schema; empty when nothing is. */
  checkInput(spec: Spec, input: Json): string[];
  /** Freezes and hashes what is asked for, as the worker will. */
  freezeRequest: FreezeRequest;
  /** May throw an ApiProblem that says why it is refused, or that nobody can tell now. */
  authenticate(token: string): Principal | undefined | Promise<Principal | undefined>;
  /** The proof (compact JWS) of a decision, made by the API's key at this moment. */
  sign(decision: Omit<Decision, 'proof'>, place: { workflowId: string }): Promise<string>;
  /** What webhooks may start, by the trigger's name; default nothing. */
  triggers?: ReadonlyMap<string, HookTrigger>;
  /** Headers of webhooks that are dropped beside the usual ones: names, or patterns with `*`. */
  dropHeaders?: readonly string[];
  /** Put before links in answers, such as `https://approvals.example.org`; without it links are paths. */
  baseUrl?: string;
  log(fields: Record<string, unknown>): void;
  /** Milliseconds since the epoch. */
  now(): number;
  /** How long a decision waits for its verdict before it answers 202. Default 3,000. */
  receiptBudgetMs?: number;
  /** Between two looks at a run that somebody follows: at first, and while nothing happens. Default 200 and 2,000. */
  followPausesMs?: { first: number; longest: number };
  /** How `GET /events` looks at the runs. */
  allEvents?: SweepOptions;
  /** Between two heartbeats of an event stream. Default 15,000. */
  heartbeatMs?: number;
}

/** 3 s: a healthy worker needs milliseconds; longer than this a person reads 202 better than a spinner. */
export const defaultReceiptBudgetMs = 3000;

export interface ApiEnv {
  Variables: {
    principal: Principal;
    /** Whether the credentials would still be taken: for what is answered over a long time. Never rejects. */
    mayGoOn: () => Promise<boolean>;
    /** of a webhook; its headers no longer hold it */
    webhookSignature: string;
  };
}

/** Handed to the routes. */
export interface ApiContext {
  deps: ApiDeps;
  decider: Decider;
  startOnce: StartDesk;
  skipOdd: SkipOdd;
}
