// Sandbox. Child runs. A parent that is reset starts its children anew, with new run ids, so a child does
// not make its keys from its own: it is handed the root of the top run and its place below it.
import { executeChild, ParentClosePolicy, workflowInfo } from '@temporalio/workflow';
import { workflowIdProblem } from '../core/approval-key.ts';
import type { Json } from '../core/json.ts';
import { memoFields } from '../core/names.ts';
import { checkPayload } from './freeze.ts';
import { currentRun, failure, releasePosition, takePosition } from './run.ts';
import { working } from './standstill.ts';

export interface ChildRunOptions {
  /** the arguments of the child workflow, JSON */
  args?: Json[];
  /** default: this workflow's */
  taskQueue?: string;
}

/**
 * Runs a child workflow at the position `name` and returns its result. Its id is `<this id>/<position>`; its
 * gates have keys of their own, its effects the keys `<root>:<prefix>/<position>`, the same over a reset of
 * this run: an open old child is ended then and the new one asks again, a finished one runs again on the
 * same keys. @throws ApplicationFailure `invalid_name`, `duplicate_position`, `invalid_start` (id too
 * long); ChildWorkflowFailure
 */
export async function childRun<Result = Json>(
  name: string,
  workflowType: string,
  options: ChildRunOptions = {},
): Promise<Result> {
  return working(() => runChild<Result>(name, workflowType, options));
}

async function runChild<Result>(
  name: string,
  workflowType: string,
  options: ChildRunOptions,
): Promise<Result> {
  const run = currentRun();
  const position = takePosition(run, name, 'child');
  try {
    const workflowId = `${workflowInfo().workflowId}/${position}`;
    const problem = workflowIdProblem(workflowId);
    if (problem !== undefined) throw failure('invalid_start', `child run "${position}": ${problem}`);
    const { args = [], taskQueue } = options;
    checkPayload(position, args);
    const since = run.keysSince === undefined ? {} : { keysSince: run.keysSince };
    const prefix = run.prefix === undefined ? position : `${run.prefix}/${position}`;
    return (await executeChild(workflowType, {
      workflowId,
      args,
      ...(taskQueue === undefined ? {} : { taskQueue }),
      memo: { [memoFields.root]: { root: run.root, prefix, ...since } },
      // after a reset of this run the old child may still be open; without this the reset run would fail
      workflowIdReusePolicy: 'TERMINATE_IF_RUNNING',
      parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
      staticSummary: `child run ${position}`,
    })) as Result;
  } finally {
    releasePosition(run, name);
  }
}
