// The Node door of the package. Workflow code uses the other one, `countersign/workflow`.
import type { z } from 'zod';
import type { Tool, ToolDefinition } from './tool.ts';

export { createActivities } from './activities/index.ts';
export type { ActivityDeps } from './activities/deps.ts';
export { buildApp } from './api/app.ts';
export { createClient, type ClientOptions } from './client.ts';
export type { CountersignClient, RunDescription } from './countersign-client.ts';
export { createWorker, type WorkerDeps } from './worker.ts';
export { ToolRefusedError, type Tool, type ToolContext, type ToolDefinition } from './tool.ts';
export type { Decision } from './core/decision.ts';
export type { TrailFact } from './core/trail-fact.ts';

/**
 * Checks a tool's definition and returns it. @throws TypeError for a bad name, a missing `idempotency`, or
 * a `keyMaxLength` under 43 (a SHA-256 in base64url)
 */
export function defineTool<Schema extends z.ZodType, Output>(
  definition: ToolDefinition<Schema, Output>,
): Tool {
  const { name, idempotency, keyMaxLength } = definition;
  if (!/^[A-Za-z0-9._-]{1,64}$/.test(name)) {
    throw new TypeError(`tool ${JSON.stringify(name)}: a name has 1 to 64 of A-Z a-z 0-9 . _ -`);
  }
  if (!['key', 'lookup', 'none'].includes(idempotency)) {
    throw new TypeError(
      `tool "${name}": idempotency must be "key", "lookup" or "none"; a guess would pay twice`,
    );
  }
  if (keyMaxLength !== undefined && keyMaxLength < 43) {
    throw new TypeError(`tool "${name}": keyMaxLength must be at least 43, got ${keyMaxLength}`);
  }
  return definition;
}
