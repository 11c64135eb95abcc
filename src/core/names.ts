// Sandbox-safe. Every name that stands in a history, a memo or an index: once, here.
// Renaming one breaks running and recorded runs; a rename is a breaking change of the package.

/** Temporal workflow types that the worker always registers. */
export const workflowTypes = { runSpec: 'runSpec', requestApproval: 'requestApproval' } as const;

export const signalNames = { decide: 'decide' } as const;

export const queryNames = { state: 'state', receipts: 'receipts' } as const;

/** Activity types. `prepareStep`, `freezeCase` and `admitDecision` only read; `perform` changes the world. */
export const activityNames = {
  prepareStep: 'prepareStep',
  freezeCase: 'freezeCase',
  admitDecision: 'admitDecision',
  perform: 'perform',
} as const;

export const defaultTaskQueue = 'countersign';

/** Search attributes; Keyword values are cut to 255 characters before they are set. */
export const searchAttributes = {
  status: 'CountersignStatus',
  spec: 'CountersignSpec',
  tools: 'CountersignTools',
  roles: 'CountersignRoles',
  expiresAt: 'CountersignExpiresAt',
} as const;

/** Temporal's kind of each search attribute, for registration. */
export const searchAttributeKinds = {
  CountersignStatus: 'KEYWORD',
  CountersignSpec: 'KEYWORD',
  CountersignTools: 'KEYWORD_LIST',
  CountersignRoles: 'KEYWORD_LIST',
  CountersignExpiresAt: 'DATETIME',
} as const;

/** Memo fields. One field a gate, so that the gates of one run do not rewrite each other's. */
export const memoFields = {
  /** hash of the request that started the run: tells a repeated start from a different one */
  request: 'request',
  approvalPrefix: 'approval/',
  /** set at the start of a child run: `{root, prefix}`, what its keys are made of */
  root: 'root',
} as const;

/**
 * The summary of an admission. A marker holds no input, so when Temporal's own timeout ended an admission
 * that ran as a local activity, the trail knows its gate by the key in here.
 */
export function admitSummary(decision: string, position: string, key: string): string {
  return `admit ${decision} at ${position} · ${key}`;
}

export function keyInSummary(summary: string | undefined): string | undefined {
  return summary?.slice(summary.lastIndexOf(' ') + 1);
}

/** The memo field of the gate at `position`. */
export function approvalMemoField(position: string): string {
  return memoFields.approvalPrefix + position;
}
