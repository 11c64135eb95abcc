// The Node door of the package. Workflow code uses the other one, `countersign/workflow`.
export { createActivities } from './activities/index.ts';
export type { ActivityDeps } from './activities/deps.ts';
export { buildApp } from './api/app.ts';
export { createClient, type ClientOptions } from './client.ts';
export type { CountersignClient, RunDescription } from './countersign-client.ts';
export { connectTemporal, type TemporalTarget } from './temporal-connection.ts';
export { createWorker, type WorkerDeps } from './worker.ts';
export { openSecrets, type Secrets } from './secrets.ts';
export { ensureNamespaceReady, ensureSearchAttributes } from './temporal-setup.ts';
export {
  defineTool,
  ToolInDoubtError,
  ToolRefusedError,
  ToolRetryError,
  type Found,
  type Tool,
  type ToolContext,
  type ToolDefinition,
} from './tool.ts';
export { httpTool, type HttpToolOptions } from './tools/http-tool.ts';
export { openTriggers, type HookTrigger, type TriggerConfig } from './triggers.ts';
export type { Decision } from './core/decision.ts';
export type { TrailFact } from './core/trail-fact.ts';
