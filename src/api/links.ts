// Paths of what an answer names. Run ids are any text, so they are escaped; approval keys need no escaping.
import type { GatePhase } from '../core/case.ts';
import { kindsAt, type DecisionKind } from '../core/decision.ts';

export interface RunLinks {
  run: string;
  events: string;
}

/** `approval`, and a link for each kind of decision that the gate takes. */
export interface ApprovalLinks extends RunLinks, Partial<Record<DecisionKind, string>> {
  approval: string;
}

export function runPath(runId: string): string {
  return `/runs/${encodeURIComponent(runId)}`;
}

export function approvalPath(key: string): string {
  return `/approvals/${key}`;
}

export function decisionPath(key: string, decisionId: string): string {
  // a hand-sent signal brings an id of any text
  return `${approvalPath(key)}/decisions/${encodeURIComponent(decisionId)}`;
}

export function runLinks(baseUrl: string | undefined, runId: string): RunLinks {
  const run = `${baseUrl ?? ''}${runPath(runId)}`;
  return { run, events: `${run}/events` };
}

export function approvalLinks(
  baseUrl: string | undefined,
  runId: string,
  key: string,
  phase: GatePhase | undefined,
): ApprovalLinks {
  const approval = `${baseUrl ?? ''}${approvalPath(key)}`;
  return {
    ...runLinks(baseUrl, runId),
    approval,
    // a memo of a settled gate does not say which phase it was, and nothing is decided there any more
    ...Object.fromEntries(
      (phase === undefined ? [] : kindsAt[phase]).map((kind) => [kind, `${approval}/${kind}`]),
    ),
  };
}
