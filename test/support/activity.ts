// The activities alone, without any Temporal: what they are given, and a context to run them in.
import { randomBytes } from 'node:crypto';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { z } from 'zod';
import type { ActivityDeps } from '../../src/activities/deps.ts';
import { createActivities, type Activities } from '../../src/activities/index.ts';
import { approvalKey } from '../../src/core/approval-key.ts';
import type { GrantKey } from '../../src/core/grant.ts';
import type { Json } from '../../src/core/json.ts';
import type { Tool, ToolContext } from '../../src/tool.ts';

export const workflowId = 'refund-ord-1001';
export const root = '019d2b1a-7f3e-7c11-9d55-046acc729732';
export const position = 'refund';
export const key = approvalKey({ workflowId, position, root });
/** a fixed moment; nothing here looks at a clock */
export const now = 1_800_000_000_000;
export const namespace = 'default';

export function makeGrantKey(kid: string): GrantKey {
  return { kid, secret: randomBytes(32).toString('base64url') };
}

export interface Call {
  args: Json;
  context: ToolContext;
}

/** A tool that notes its calls. */
export function recordingTool(more: Partial<Tool> = {}): { tool: Tool; calls: Call[] } {
  const calls: Call[] = [];
  const tool: Tool = {
    name: 'payments.refund',
    arguments: z.strictObject({
      order: z.string(),
      amount: z.coerce.number(),
      currency: z.string().default('EUR'),
    }),
    idempotency: 'key',
    requiresApproval: true,
    run(context, args) {
      calls.push({ context, args: args as Json });
      return Promise.resolve({ refund: 're_1' });
    },
    ...more,
  };
  return { tool, calls };
}

export function depsWith(more: Partial<ActivityDeps> = {}): ActivityDeps {
  return {
    namespace,
    tools: [],
    currentSpecHash: () => undefined,
    grantKeys: () => [],
    proofKeys: () => [],
    log: () => undefined,
    ...more,
  };
}

interface Where {
  workflowId?: string;
  attempt?: number;
}

/** A context as Temporal's: of which run, and which attempt. */
export function environment({
  workflowId: id = workflowId,
  attempt = 1,
}: Where = {}): MockActivityEnvironment {
  const info = { attempt, workflowExecution: { workflowId: id, runId: root } };
  // an activity that fails is logged as a warning, and here most of them are to fail
  return new MockActivityEnvironment(info, { logger: new DefaultLogger('ERROR') });
}

/** Runs one activity in a context of its own. */
export async function run<Name extends keyof Activities>(
  name: Name,
  deps: ActivityDeps,
  input: Parameters<Activities[Name]>[0],
  where: Where = {},
): Promise<Awaited<ReturnType<Activities[Name]>>> {
  type Result = Awaited<ReturnType<Activities[Name]>>;
  const activity = createActivities(deps)[name] as unknown as (given: typeof input) => Promise<Result>;
  return environment(where).run<[typeof input], Result, typeof activity>(activity, input);
}
