// What an approval looks like from outside: the list row from the memo alone, the whole case from the trail.
import type { ApprovalEntry, RunDescription } from '../countersign-client.ts';
import type { ApprovalMemo, CaseRecord } from '../core/case.ts';
import type { FactPlace } from '../core/trail-fact.ts';
import type { FactOf, GateOutcome, GateRecord } from './gate-record.ts';
import { approvalLinks } from './links.ts';
import { iso, pendingApproval } from './run-view.ts';
import type { ApprovalRow, ApprovalView, OutcomeView } from './schemas.ts';

interface Setting {
  baseUrl?: string;
  /** milliseconds since the epoch */
  now: number;
}

export function approvalRow(
  run: RunDescription,
  entry: ApprovalEntry,
  { baseUrl, now }: Setting,
): ApprovalRow {
  const { memo } = entry;
  // a run that ended without an answer never gets one
  const ended = run.closeStatus !== undefined && memo.state === 'pending';
  const state = ended ? 'cancelled' : memo.state;
  return {
    ...pendingApproval(entry),
    runId: run.runId,
    root: run.root,
    ...(run.spec === undefined ? {} : { spec: run.spec }),
    state,
    ...timeLeft(state, memo.expiresAt, now),
    ...(state === 'pending' ? {} : { outcome: outcomeOfMemo(memo, run.closedAt) }),
    links: approvalLinks(baseUrl, run.runId, entry.key, memo.phase),
  };
}

/** What is asked, as the trail has it, or as it was frozen a moment ago. */
export type AskedCase = Omit<FactOf<'approval_requested'>, 'type' | Exclude<keyof FactPlace, 'position'>>;

export function approvalView(
  run: Pick<RunDescription, 'runId' | 'root' | 'spec' | 'approvals'>,
  { requested, earlier = [], outcome }: Partial<Omit<GateRecord, 'requested'>> & { requested: AskedCase },
  { baseUrl, now }: Setting,
): ApprovalView {
  const memo = run.approvals.find((entry) => entry.key === requested.key)?.memo;
  const state = outcome?.state ?? 'pending';
  return {
    ...caseView(run, requested, baseUrl),
    state,
    ...timeLeft(state, Date.parse(requested.expiresAt), now),
    ...(earlier.length === 0 ? {} : { earlier }),
    ...(outcome === undefined ? {} : { outcome: outcomeOfTrail(outcome, memo) }),
  };
}

/** The case alone, whatever became of it. */
export function caseView(
  run: Pick<RunDescription, 'runId' | 'root' | 'spec'>,
  requested: AskedCase,
  baseUrl: string | undefined,
): Omit<ApprovalView, 'state' | 'timeLeftMs' | 'outcome'> {
  const { key, position = '', phase, title, tool, question, doubt, reasoning, requestedBy } = requested;
  return {
    key,
    runId: run.runId,
    root: run.root,
    position,
    step: position,
    phase,
    title,
    ...(tool === undefined ? {} : { tool }),
    ...(requested.arguments === undefined ? {} : { arguments: requested.arguments }),
    ...(question === undefined ? {} : { question }),
    ...(doubt === undefined ? {} : { doubt }),
    ...(reasoning === undefined ? {} : { reasoning }),
    payloadHash: requested.payloadHash,
    policy: requested.policy,
    ...(requestedBy === undefined ? {} : { requestedBy }),
    requestedAt: requested.requestedAt,
    expiresAt: requested.expiresAt,
    ...(run.spec === undefined ? {} : { spec: run.spec }),
    links: approvalLinks(baseUrl, run.runId, key, phase),
  };
}

/** A case that was frozen a moment ago, as its trail will tell it. */
export function askedCase({ kind: _kind, v: _v, ...frozen }: CaseRecord): AskedCase {
  return { ...frozen, requestedAt: iso(frozen.requestedAt), expiresAt: iso(frozen.expiresAt) };
}

/** When the gate was settled: the workflow's own time where it is still known, so that all answers agree. */
export function settledAt(outcome: GateOutcome, memo: ApprovalMemo | undefined): string {
  return memo?.at === undefined ? outcome.at : iso(memo.at);
}

/** 0 when the deadline has passed and no worker was there yet to say so. */
function timeLeft(state: string, expiresAt: number | undefined, now: number) {
  if (state !== 'pending' || expiresAt === undefined) return {};
  return { timeLeftMs: Math.max(0, Math.trunc(expiresAt - now)) };
}

function outcomeOfMemo(memo: ApprovalMemo, closedAt: number | undefined): OutcomeView {
  return {
    ...(memo.decisionId === undefined ? {} : { decisionId: memo.decisionId }),
    ...(memo.by === undefined ? {} : { by: { id: memo.by } }),
    at: iso(memo.at ?? closedAt ?? 0),
  };
}

function outcomeOfTrail(outcome: GateOutcome, memo: ApprovalMemo | undefined): OutcomeView {
  const { decision, by } = outcome;
  return {
    at: settledAt(outcome, memo),
    ...(by === undefined ? {} : { by }),
    ...(decision === undefined
      ? {}
      : { decisionId: decision.decisionId, decision: decision.decision, via: decision.via }),
    ...(decision?.reason === undefined ? {} : { reason: decision.reason }),
  };
}
