// What a run looks like from outside: the list row from what Temporal knows without any worker, and the
// whole of it with its trail.
import type { ApprovalEntry, RunDescription } from '../countersign-client.ts';
import type { TrailFact } from '../core/trail-fact.ts';
import type { FactOf } from './gate-record.ts';
import { runLinks } from './links.ts';
import type { PendingApproval, RunRow, RunStatus, RunView, StepView } from './schemas.ts';

export function runRow(run: RunDescription, baseUrl: string | undefined): RunRow {
  const pending = run.closeStatus === undefined ? run.approvals.filter(isPending) : [];
  return {
    id: run.runId,
    status: statusOf(run, pending),
    ...(run.spec === undefined ? {} : { spec: run.spec }),
    createdAt: iso(run.createdAt),
    ...(run.closedAt === undefined ? {} : { closedAt: iso(run.closedAt) }),
    pendingApprovals: pending.map(pendingApproval),
    links: runLinks(baseUrl, run.runId),
  };
}

export function runDetails(
  run: RunDescription,
  trail: readonly TrailFact[],
  baseUrl: string | undefined,
): RunView {
  const facts = trail.filter((fact) => fact.superseded !== true);
  const started = facts.find((fact) => fact.type === 'run_started');
  const end = facts.findLast((fact) => fact.type === 'run_finished');
  const row = runRow(run, baseUrl);
  return {
    ...row,
    // the trail is exact; the index may lag behind it
    ...(end === undefined || run.closeStatus === undefined ? {} : { status: end.status }),
    ...(started === undefined ? {} : startOf(started)),
    // of a run that continued as new Temporal knows only when its last execution began
    ...(started === undefined || started.temporalRunId === run.temporalRunId
      ? {}
      : { createdAt: started.at }),
    steps: withRetries(stepsOf(facts), run),
    ...(end?.output === undefined ? {} : { output: end.output }),
    ...errorOf(run, end),
  };
}

export function pendingApproval({ key, position, memo }: ApprovalEntry): PendingApproval {
  return {
    key,
    position,
    step: position,
    ...(memo.phase === undefined ? {} : { phase: memo.phase }),
    ...(memo.tool === undefined ? {} : { tool: memo.tool }),
    ...(memo.title === undefined ? {} : { title: memo.title }),
    ...(memo.hash === undefined ? {} : { payloadHash: memo.hash }),
    ...(memo.requestedAt === undefined ? {} : { requestedAt: iso(memo.requestedAt) }),
    ...(memo.expiresAt === undefined ? {} : { expiresAt: iso(memo.expiresAt) }),
  };
}

export function isPending({ memo }: ApprovalEntry): boolean {
  return memo.state === 'pending';
}

export function iso(ms: number): string {
  return new Date(ms).toISOString();
}

/** The memo is written with the gate; the index may lag behind it. */
function statusOf(run: RunDescription, pending: readonly ApprovalEntry[]): RunStatus {
  switch (run.closeStatus) {
    case undefined:
      if (pending.length === 0) return 'running';
      return pending.some(({ memo }) => memo.phase === 'in-doubt') ? 'in_doubt' : 'awaiting_approval';
    case 'completed':
      // a withdrawal ends a run by itself, so for Temporal it is completed
      return run.status === 'rejected' || run.status === 'cancelled' ? run.status : 'completed';
    case 'cancelled':
      return 'cancelled';
    default:
      return 'failed'; // failed, terminated or timed out
  }
}

function startOf({ spec, trigger, startedBy, input }: FactOf<'run_started'>) {
  return {
    ...(spec === undefined ? {} : { spec: spec.name, specHash: spec.hash }),
    ...(trigger === undefined ? {} : { trigger }),
    ...(startedBy === undefined ? {} : { startedBy }),
    ...(input === undefined ? {} : { input }),
  };
}

function errorOf(run: RunDescription, end: FactOf<'run_finished'> | undefined) {
  if (end?.error !== undefined) return { error: end.error };
  if (run.closeStatus === 'terminated') {
    return { error: { code: 'terminated', message: 'the run was terminated from outside' } };
  }
  return run.closeStatus === 'timed_out'
    ? { error: { code: 'timed_out', message: 'the run timed out' } }
    : {};
}

/** One row a step that the run has reached, in the order in which it reached them. */
function stepsOf(facts: readonly TrailFact[]): StepView[] {
  const steps = new Map<string, StepView>();
  for (const fact of facts) {
    const { position, at } = fact;
    if (position === undefined) continue;
    const step = steps.get(position) ?? { position, status: 'running', startedAt: at };
    if (advance(step, fact)) steps.set(position, step);
  }
  return [...steps.values()];
}

/** Only Temporal's description knows of attempts before their end; the trail has the last one's. */
function withRetries(steps: StepView[], { retries = [] }: RunDescription): StepView[] {
  return steps.map((step) => {
    const retry = retries.find(({ position }) => position === step.position);
    if (retry === undefined || step.status !== 'running') return step;
    const { attempt, lastError, nextAttemptAt } = retry;
    return {
      ...step,
      attempt,
      lastError,
      ...(nextAttemptAt === undefined ? {} : { nextAttemptAt: iso(nextAttemptAt) }),
    };
  });
}

/** False when the fact is none of a step's. */
function advance(step: StepView, fact: TrailFact): boolean {
  switch (fact.type) {
    case 'step_started':
      return true;
    case 'approval_requested':
      Object.assign(step, { status: 'awaiting_approval', approval: fact.key });
      return true;
    case 'approval_granted':
    case 'approval_edited':
    case 'effect_started':
      step.status = 'running';
      return true;
    case 'step_completed':
    case 'tool_result':
      Object.assign(step, { status: 'completed', endedAt: fact.at, output: fact.output });
      return true;
    case 'approval_responded':
      Object.assign(step, { status: 'completed', endedAt: fact.at, output: fact.decision.result });
      return true;
    case 'approval_rejected':
    case 'approval_expired':
      Object.assign(step, { status: 'rejected', endedAt: fact.at });
      return true;
    case 'effect_failed':
      Object.assign(step, { status: 'failed', endedAt: fact.at });
      return true;
    case 'effect_in_doubt':
      step.status = 'in_doubt';
      return true;
    case 'approval_withdrawn':
    case 'approval_cancelled':
      Object.assign(step, { status: 'cancelled', endedAt: fact.at });
      return true;
    default:
      return false;
  }
}
