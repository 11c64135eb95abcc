// Paths of what an answer names. Run ids are any text, so they are escaped; approval keys need no escaping.

export interface RunLinks {
  run: string;
  events: string;
}

export interface ApprovalLinks extends RunLinks {
  approval: string;
  approve: string;
  reject: string;
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

export function approvalLinks(baseUrl: string | undefined, runId: string, key: string): ApprovalLinks {
  const approval = `${baseUrl ?? ''}${approvalPath(key)}`;
  return {
    ...runLinks(baseUrl, runId),
    approval,
    approve: `${approval}/approve`,
    reject: `${approval}/reject`,
  };
}
