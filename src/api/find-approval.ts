// POST /runs/:id/approve and /reject take an approval key, or the id of a run in which it is clear what is
// meant. Nothing is guessed: with two approvals pending, the caller is told their keys.
import type { CountersignClient, RunDescription } from '../countersign-client.ts';
import { keyMatches, parseApprovalKey } from '../core/approval-key.ts';
import { maySee, type Principal } from './auth.ts';
import { decisionIdOf, type DecisionOrder } from './decision-order.ts';
import { ApiProblem, runNotFound } from './problem.ts';
import { isPending } from './run-view.ts';

type Order = Omit<DecisionOrder, 'key'>;

/** The approval key that `id` means. @throws ApiProblem run_not_found, approval_not_found, ambiguous_approval */
export async function findApproval(
  client: Pick<CountersignClient, 'describeRun'>,
  principal: Principal,
  id: string,
  order: Order,
): Promise<string> {
  const parts = parseApprovalKey(id);
  if (parts !== undefined) {
    const run = await client.describeRun(parts.workflowId);
    if (run !== undefined && keyMatches(id, { workflowId: run.runId, root: run.root })) return id;
  }
  // a run id may look like a key
  const run = await client.describeRun(id);
  if (run === undefined || !maySee(principal, run)) throw runNotFound(id);
  return approvalIn(run, principal, order);
}

function approvalIn(run: RunDescription, principal: Principal, order: Order): string {
  const { approvals, closeStatus } = run;
  // a request that is repeated means what it meant the first time, whatever is pending by now
  const repeated =
    order.idempotencyKey === undefined
      ? undefined
      : approvals.find(({ key, memo }) => memo.decisionId === decisionIdOf(principal.id, { ...order, key }));
  if (repeated !== undefined) return repeated.key;
  const pending = closeStatus === undefined ? approvals.filter(isPending) : [];
  const [only, ...others] = pending;
  if (only !== undefined && others.length === 0) return only.key;
  if (only !== undefined) {
    const keys = pending.map(({ key }) => key);
    const detail = `${keys.length} approvals are pending in run ${run.runId.slice(0, 255)}; name one of them`;
    throw new ApiProblem('ambiguous_approval', detail, { runId: run.runId, keys });
  }
  // who won is told by the one that was settled last
  const last = approvals.reduce<(typeof approvals)[number] | undefined>(
    (latest, entry) => ((entry.memo.at ?? 0) >= (latest?.memo.at ?? 0) ? entry : latest),
    undefined,
  );
  if (last !== undefined) return last.key;
  throw new ApiProblem('approval_not_found', `No approval is pending in run ${run.runId.slice(0, 255)}`, {
    runId: run.runId,
  });
}
