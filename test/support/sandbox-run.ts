// Runs real workflow code in the SDK's real sandbox without a server: the test hands over each activation (what
// a worker is told in one workflow task) and gets the commands back. The SDK gives no public way to it, so the
// modules under lib/ are of the pinned version.
import { readFileSync } from 'node:fs';
import vm from 'node:vm';
import { defaultPayloadConverter, TypedSearchAttributes } from '@temporalio/common';
import { msToTs } from '@temporalio/common/lib/time.js';
import proto, { type coresdk } from '@temporalio/proto';
import { ReusableVMWorkflowCreator } from '@temporalio/worker/lib/workflow/reusable-vm.js';
import { activityNames } from '../../src/core/names.ts';
import type { RawPayload } from '../../src/core/signal.ts';

export type Job = coresdk.workflow_activation.IWorkflowActivationJob;
export type Command = coresdk.workflow_commands.IWorkflowCommand;

export interface SandboxStart {
  workflowId: string;
  root: string;
  namespace: string;
  workflowType: string;
  input: unknown;
  /** milliseconds since the epoch */
  now: number;
}

export interface SandboxRun {
  /** One workflow task, its jobs in their order. @throws Error when the task fails */
  task(jobs: readonly Job[], now: number): Promise<Command[]>;
  query(name: string, ...args: unknown[]): Promise<unknown>;
  dispose(): Promise<void>;
}

/** All that the SDK has (@temporalio/workflow/lib/flags): a new run's worker is told of every one. */
const internalFlags = [1, 2, 3, 4, 5, 6];

/** @param bundlePath as `testBundle()` gives it */
export function openSandbox(bundlePath: string): (start: SandboxStart) => Promise<SandboxRun> {
  const code = readFileSync(bundlePath, 'utf8');
  const bundle = {
    code,
    filename: bundlePath,
    sourceMap: { version: 3, sources: [], mappings: '', names: [] },
  };
  // its create() would also install the hooks that map stack traces: ten times the time, and nobody reads them here
  const creator = new ReusableVMWorkflowCreator(
    new vm.Script(code, { filename: bundlePath }),
    bundle as unknown as ConstructorParameters<typeof ReusableVMWorkflowCreator>[1],
    undefined as unknown as number, // a limit would be a watchdog thread for each call
    new Set(Object.values(activityNames)),
  );
  return (start) => startIn(creator, start);
}

async function startIn(creator: ReusableVMWorkflowCreator, start: SandboxStart): Promise<SandboxRun> {
  const { workflowId, root, namespace, workflowType, now } = start;
  const startTime = new Date(now);
  const options = {
    info: {
      ...{ workflowId, workflowType, namespace, taskQueue: 'none', runId: root },
      ...{ firstExecutionRunId: root, originalExecutionRunId: root, startTime, runStartTime: startTime },
      ...{ searchAttributes: {}, typedSearchAttributes: new TypedSearchAttributes(), attempt: 1 },
      ...{ taskTimeoutMs: 10_000, historyLength: 3, historySize: 0, continueAsNewSuggested: false },
      unsafe: { now: () => now, isReplaying: false, isReplayingHistoryEvents: false },
    },
    ...{ randomnessSeed: [1, 2, 3, 4, 5, 6, 7, 8], now, showStackTraceSources: false },
  };
  const workflow = await creator.createWorkflow(
    options as unknown as Parameters<ReusableVMWorkflowCreator['createWorkflow']>[0],
  );
  const activate = async (jobs: readonly Job[], at: number): Promise<Command[]> => {
    const { successful, failed } = await workflow.activate(
      proto.coresdk.workflow_activation.WorkflowActivation.fromObject({
        ...{ runId: root, timestamp: msToTs(at), isReplaying: false, historyLength: 3 },
        ...{ availableInternalFlags: internalFlags, jobs },
      }),
    );
    if (failed) throw new Error(`the workflow task failed: ${failed.failure?.message ?? '(no message)'}`);
    return successful?.commands ?? [];
  };
  let isFirst = true;
  let last = now;
  return {
    async task(jobs, at) {
      const first = isFirst ? [initialize(start)] : [];
      isFirst = false;
      last = at;
      return activate([...first, ...jobs], at);
    },
    async query(name, ...args) {
      const queryWorkflow = { queryId: name, queryType: name, arguments: args.map(toPayload) };
      const [command] = await activate([{ queryWorkflow }], last);
      const answer = command?.respondToQuery?.succeeded?.response;
      if (!answer) throw new Error(`the query "${name}" was not answered`);
      return defaultPayloadConverter.fromPayload(answer);
    },
    dispose: () => workflow.dispose(),
  };
}

function initialize({ workflowId, workflowType, root, input, now }: SandboxStart): Job {
  return {
    initializeWorkflow: {
      ...{ workflowId, workflowType, firstExecutionRunId: root, attempt: 1 },
      ...{ arguments: [toPayload(input)], startTime: msToTs(now) },
    },
  };
}

const toPayload = (value: unknown): RawPayload => defaultPayloadConverter.toPayload(value);

export function signalJob(signalName: string, value: unknown): Job {
  return { signalWorkflow: { signalName, input: [toPayload(value)], identity: 'somebody' } };
}

/** `failure`: the activity used up its attempts; else its result. */
export function resolvedJob(
  { seq, isLocal, type }: ScheduledActivity,
  outcome: { result: unknown } | { failure: string },
): Job {
  if ('result' in outcome) {
    const completed = { result: toPayload(outcome.result) };
    return { resolveActivity: { seq, isLocal, result: { completed } } };
  }
  const message = outcome.failure;
  const cause = { message, applicationFailureInfo: { type: 'check_failed' } };
  const activityFailureInfo = { activityId: String(seq), activityType: { name: type } };
  const failure = isLocal ? cause : { message, cause, activityFailureInfo };
  return { resolveActivity: { seq, isLocal, result: { failed: { failure } } } };
}

export interface ScheduledActivity {
  seq: number;
  isLocal: boolean;
  type: string;
  input: unknown;
}

/** The activity that a command schedules, local or not. */
export function scheduledIn(command: Command): ScheduledActivity | undefined {
  const scheduled = command.scheduleLocalActivity ?? command.scheduleActivity;
  const [argument] = scheduled?.arguments ?? [];
  if (!scheduled || !argument) return undefined;
  return {
    seq: scheduled.seq ?? 0,
    isLocal: Boolean(command.scheduleLocalActivity),
    type: scheduled.activityType ?? '',
    input: defaultPayloadConverter.fromPayload(argument),
  };
}

/** Whether a command ends the execution. */
export function isClosing(command: Command): boolean {
  const { completeWorkflowExecution, failWorkflowExecution, cancelWorkflowExecution } = command;
  return Boolean(completeWorkflowExecution ?? failWorkflowExecution ?? cancelWorkflowExecution);
}
