// From an approval key to the run that it names, for callers who may see it. Everything else is one answer.
import type { ApprovalEntry, CountersignClient, RunDescription } from '../countersign-client.ts';
import { keyMatches, parseApprovalKey } from '../core/approval-key.ts';
import { maySee, type Principal } from './auth.ts';
import { approvalNotFound } from './problem.ts';

export interface GatePlace {
  key: string;
  run: RunDescription;
  position: string;
  /** absent while it is not asked, and when it was settled so long ago that the memo forgot it */
  entry?: ApprovalEntry;
}

/** Needs no worker. @throws ApiProblem approval_not_found */
export async function findGate(
  client: Pick<CountersignClient, 'describeRun'>,
  principal: Principal,
  key: string,
): Promise<GatePlace> {
  const parts = parseApprovalKey(key);
  if (parts === undefined) throw approvalNotFound(key);
  const run = await client.describeRun(parts.workflowId);
  // a key of an earlier chain under the same workflow id has another root
  if (run === undefined || !keyMatches(key, { workflowId: parts.workflowId, root: run.root })) {
    throw approvalNotFound(key);
  }
  if (!maySee(principal, run)) throw approvalNotFound(key);
  const entry = run.approvals.find(({ position }) => position === parts.position);
  return { key, run, position: parts.position, ...(entry === undefined ? {} : { entry }) };
}
