// Evidence of chaos runs, put together by hand: calls with their answers, lines of the ledger, runs.
import type { CaseRecord } from '../../src/core/case.ts';
import { decisionIdOf, effectKey, hashOf } from '../chaos/check/independent.ts';
import type { Call, Evidence, EvidenceOfRun, LedgerLine } from '../chaos/evidence.ts';
import type { Plan } from '../chaos/plan.ts';
import {
  caseOf,
  decisionOn,
  epoch,
  place,
  trailOf,
  type RawHistory,
  type RunPlace,
} from './chaos-history.ts';

export const refund = caseOf('refund');
export const annId = decisionIdOf('ann', refund.key, 'k-ann');
export const bobId = decisionIdOf('bob', refund.key, 'k-bob');
export const byAnn = decisionOn(refund, annId);
export const byBob = decisionOn(refund, bobId, { decision: 'reject', by: { id: 'bob' } });

type CallMore = Partial<Omit<Call, 'op' | 'begun' | 'ended' | 'answer'>>;

let calls = 0;

/** @param times from the epoch of the evidence, in milliseconds */
export function call(
  op: Call['op'],
  person: string,
  [begun, ended]: [number, number],
  answer: Call['answer'],
  more: CallMore = {},
): Call {
  calls += 1;
  const { run = place.workflowId, key = refund.key } = more;
  const idempotencyKey =
    op === 'read' || op === 'start' || op === 'cancel' ? {} : { idempotencyKey: `k-${person}` };
  return {
    ...{
      id: calls,
      client: person,
      person,
      door: 'http',
      op,
      run,
      key,
      shouldSucceed: false,
      ...idempotencyKey,
    },
    ...(op === 'approve' || op === 'edit' ? { payloadHash: refund.payloadHash } : {}),
    begun: epoch + begun,
    ended: epoch + ended,
    ...(answer === undefined ? {} : { answer }),
    ...more,
  };
}

export function won(decisionId: string, state: string, more: object = {}): Call['answer'] {
  return { status: 200, body: { decisionId, verdict: 'accepted', state, ...more } };
}

export function lost(decisionId: string, state: string): Call['answer'] {
  return { status: 409, body: { code: 'already_resolved', state, winner: { state, decisionId } } };
}

export function seen(state: string, decisionId?: string, frozen: CaseRecord = refund): Call['answer'] {
  const { tool, arguments: args, phase, payloadHash } = frozen;
  const outcome = state === 'pending' ? {} : { outcome: decisionId === undefined ? {} : { decisionId } };
  return { status: 200, body: { state, tool, arguments: args, phase, payloadHash, ...outcome } };
}

export function ledgerLine(
  frozen: CaseRecord,
  more: Partial<LedgerLine> = {},
  of: RunPlace = place,
): LedgerLine {
  const body = more.body ?? frozen.arguments;
  return {
    time: new Date(epoch + 950).toISOString(),
    key: effectKey(of, frozen.position),
    payloadHash: hashOf(body),
    body,
    outcome: 'done',
    ...more,
  };
}

export function runOf(
  raw: RawHistory,
  status: string,
  {
    of = place,
    pending = [],
    kind = 'runSpec',
  }: { of?: RunPlace; pending?: string[]; kind?: EvidenceOfRun['kind'] } = {},
): EvidenceOfRun {
  return {
    run: of.workflowId,
    kind,
    histories: [raw],
    trail: trailOf(of, [{ runId: of.root, history: raw }]),
    view: { id: of.workflowId, status, pendingApprovals: pending.map((key) => ({ key })) },
    status,
    pendingTaskFailures: 0,
  };
}

export function evidenceOf(more: Partial<Evidence> & Pick<Evidence, 'runs'>): Evidence {
  return {
    plan: { seed: 1 } as Plan,
    calls: [],
    ledger: [],
    faults: [{ name: 'kill-worker', planned: 1, fired: 1 }],
    replay: more.runs.map(({ run }) => ({ run })),
    lastFaultAt: epoch + 1_000,
    settledAt: epoch + 5_000,
    ...more,
  };
}
