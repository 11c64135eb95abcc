// The activities of a worker, made from what they need.
import { Context } from '@temporalio/activity';
import { createAdmitDecision } from './admit-decision.ts';
import type { ActivityDeps } from './deps.ts';
import { createFreezeCase } from './freeze-case.ts';
import { createPerform } from './perform.ts';
import { createPrepareStep } from './prepare-step.ts';

export type Activities = ReturnType<typeof createActivities>;

/** Register these on the worker under exactly these names (core/names.ts). */
export function createActivities(deps: ActivityDeps) {
  const place = () => ({ workflowId: Context.current().info.workflowExecution?.workflowId ?? '' });
  return {
    prepareStep: createPrepareStep(deps),
    freezeCase: createFreezeCase(deps),
    admitDecision: createAdmitDecision(deps, place),
    perform: createPerform(deps),
  };
}
