// What a chaos run leaves for the checker: who asked what and was answered what, every history, the ledger's
// lines, and which faults really happened. Plain data, so that it can be kept as JSON and checked again.
import type { TrailFact } from '../../src/core/trail-fact.ts';
import type { Plan } from './plan.ts';

/** One call to a door. Times are performance.timeOrigin + performance.now(), ms, of the one harness process. */
export interface Call {
  id: number;
  client: string;
  person: string;
  door: 'http' | 'raw-signed' | 'raw-unsigned' | 'raw-malformed';
  op:
    | 'start'
    | 'approve'
    | 'reject'
    | 'edit'
    | 'amend'
    | 'withdraw'
    | 'comment'
    | 'respond'
    | 'cancel'
    | 'read';
  run: string;
  key?: string;
  payloadHash?: string;
  decisionId?: string;
  idempotencyKey?: string;
  arguments?: unknown;
  begun: number;
  /** when the first answer came, or was given up */
  ended: number;
  /** undefined: no answer (cut, timeout) */
  answer?: { status: number; body: unknown };
  /** what was asked again at `Location` after a 202 or sent again after a 503, last one wins */
  final?: { status: number; body: unknown };
  /** when the last `final` came */
  finalEnded?: number;
  /** the plan means it to succeed when nothing else was there first (for N7) */
  shouldSucceed: boolean;
}

export interface EvidenceOfRun {
  run: string;
  kind: 'runSpec' | 'requestApproval' | 'own' | 'child' | 'carried';
  /** the chain of executions, oldest first, raw (JSON of @temporalio proto histories) */
  histories: unknown[];
  /** by API */
  trail: TrailFact[];
  view: unknown;
  status: string;
  /** describe: attempts of the pending workflow task > 1 */
  pendingTaskFailures: number;
}

export interface LedgerLine {
  time: string;
  key: string | null;
  payloadHash: string;
  body: unknown;
  outcome: string;
}

export interface Evidence {
  plan: Plan;
  calls: Call[];
  runs: EvidenceOfRun[];
  ledger: LedgerLine[];
  /** of the target; without them those called `pay…` need approval and the others do not */
  tools?: { name: string; requiresApproval: boolean; idempotency: 'key' | 'lookup' | 'none' }[];
  faults: { name: string; planned: number; fired: number }[];
  replay: { run: string; failed?: string }[];
  lastFaultAt: number;
  settledAt: number;
}

export interface Violation {
  invariant: 'N1' | 'N2' | 'N3' | 'N4' | 'N5' | 'N6' | 'N7';
  run?: string;
  what: string;
}
