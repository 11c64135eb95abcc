// Makes a Temporal worker that can run everything countersign has. No main, no environment: the CLI and
// your own program call it.
import { fileURLToPath } from 'node:url';
import { Worker, type NativeConnection, type WorkerOptions } from '@temporalio/worker';
import type { ActivityDeps } from './activities/deps.ts';
import { createActivities } from './activities/index.ts';
import { defaultTaskQueue } from './core/names.ts';
import type { Tool } from './tool.ts';

export interface WorkerDeps extends ActivityDeps {
  connection: NativeConnection;
  /** default `countersign` */
  taskQueue?: string;
  /** a bundle made by Temporal's bundleWorkflowCode; saves 1–4 s a start */
  workflowBundle?: WorkerOptions['workflowBundle'];
  /** your own workflows' module: it must re-export what it needs of `countersign/workflow` */
  workflowsPath?: string;
  /** your own activities, beside countersign's */
  activities?: Record<string, (...args: never[]) => unknown>;
  /**
   * Cached runs; one is about 0.6 MB, so the default of 600 stays under 400 MB. 0: none (as for 1, the SDK
   * takes 2). Half of it, at most 40, is how many workflow tasks are taken at a time.
   */
  maxCachedWorkflows?: number;
}

/**
 * @throws Error when two tools have one name, or an activity of yours takes a name of countersign's
 */
export async function createWorker(deps: WorkerDeps): Promise<Worker> {
  checkTools(deps.tools);
  const ours = createActivities(deps);
  for (const name of Object.keys(deps.activities ?? {})) {
    if (Object.hasOwn(ours, name))
      throw new Error(`activity "${name}" is countersign's own; name yours otherwise`);
  }
  const workflows =
    deps.workflowBundle === undefined
      ? { workflowsPath: deps.workflowsPath ?? ownWorkflowsPath() }
      : { workflowBundle: deps.workflowBundle };
  const cachedRuns = deps.maxCachedWorkflows ?? 600;
  return Worker.create({
    ...unexposed,
    connection: deps.connection,
    namespace: deps.namespace,
    taskQueue: deps.taskQueue ?? defaultTaskQueue,
    ...workflows,
    activities: { ...deps.activities, ...ours },
    maxCachedWorkflows: cachedRuns,
    maxConcurrentWorkflowTaskExecutions: tasksAtATime(cachedRuns),
    // A killed worker's cached runs wait this long before another takes them (Temporal's default is 10 s).
    stickyQueueScheduleToStartTimeout: '2s',
    // `perform` beats every second; left to itself the SDK would pass on one beat in 80 % of their timeout.
    maxHeartbeatThrottleInterval: '1s',
    // SIGTERM: effects in flight get this long before they are cancelled; longer than most targets answer.
    shutdownGraceTime: '10s',
  });
}

/**
 * The SDK ends an activation after 5 s of wall-clock time, and Node then often ends the whole process ("async
 * hook stack has become corrupted", nodejs/node#38503). A few thousand signals that wait for a run take that
 * long, so whoever may signal could kill worker after worker. Not in the SDK's types; it is passed on.
 */
const unexposed: object = { isolateExecutionTimeout: '1m' };

/**
 * A run that is evicted while a local activity of its task is in flight loses it, and stands until the task
 * times out (the SDK evicts the run that was used last longest ago, busy or not). With half as many tasks as
 * cached runs an idle one is older; without a cache only one task at a time is safe.
 */
function tasksAtATime(cachedRuns: number): number {
  return cachedRuns === 0 ? 1 : Math.min(40, Math.max(2, Math.floor(cachedRuns / 2)));
}

function checkTools(tools: readonly Tool[]): void {
  const names = tools.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new Error(`two tools are named "${twice}"; a tool's name is its identity`);
}

/** Beside this file: `.ts` in the repository, `.js` in the package. */
function ownWorkflowsPath(): string {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  return fileURLToPath(new URL(`./workflows/index.${extension}`, import.meta.url));
}
