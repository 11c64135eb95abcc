// Sandbox. The only way to the read-only activities. In countersign's own workflow types they are local
// activities (one marker, no workflow task more), under a run-wide first-in-first-out lock: with several
// in flight, live results come one an activation and replayed ones together, continuations interleave,
// and the history does not replay. In other workflows, whose code may run local activities beside ours,
// they are ordinary ones. This is the only file that may name proxyLocalActivities (a lint rule).
import {
  inWorkflowContext,
  isCancellation,
  proxyActivities,
  proxyLocalActivities,
  TemporalFailure,
  workflowInfo,
  type ActivityOptions,
  type LocalActivityOptions,
} from '@temporalio/workflow';
import type { CaseRecord, PreparedRecord, ProblemRecord, VerdictRecord } from '../core/case.ts';
import { workflowTypes } from '../core/names.ts';
import type {
  AdmitDecisionInput,
  FreezeCaseInput,
  OutputRecord,
  PrepareStepInput,
} from '../core/recording.ts';
import { uncancelled } from './uncancelled.ts';

interface ReadOnlyActivities {
  prepareStep: (input: PrepareStepInput) => Promise<PreparedRecord | OutputRecord | ProblemRecord>;
  freezeCase: (input: FreezeCaseInput) => Promise<CaseRecord | ProblemRecord>;
  admitDecision: (input: AdmitDecisionInput) => Promise<VerdictRecord>;
}

type RecordPolicy = LocalActivityOptions & ActivityOptions;

let last: Promise<unknown> = Promise.resolve();

/**
 * Runs one read-only activity and records its result. It is not cancelled with the run: a recording takes
 * milliseconds, and half a fact is none. @throws TemporalFailure when its attempts are used up
 */
export function record<Name extends keyof ReadOnlyActivities>(
  name: Name,
  input: Parameters<ReadOnlyActivities[Name]>[0],
  policy: RecordPolicy,
  summary: string,
): Promise<Awaited<ReturnType<ReadOnlyActivities[Name]>>> {
  const call = () => {
    // evicted: what still waits here runs outside of any workflow, and an error there ends the worker's thread
    if (!inWorkflowContext()) return new Promise<never>(() => undefined);
    return uncancelled(() => {
      const activities = isOwnType()
        ? proxyLocalActivities<ReadOnlyActivities>({ ...policy, summary })
        : proxyActivities<ReadOnlyActivities>({ ...policy, summary });
      const activity = activities[name] as (argument: typeof input) => Promise<unknown>;
      return activity(input);
    });
  };
  const result = last.then(call);
  last = result.catch(() => undefined);
  return result as Promise<Awaited<ReturnType<ReadOnlyActivities[Name]>>>;
}

/**
 * Whether an error is a recording that used up its attempts (and not a bug of the workflow's). An ordinary
 * activity rejects with an ActivityFailure around the cause, a local one with the cause itself.
 */
export function isRecordingFailure(error: unknown): error is TemporalFailure {
  return error instanceof TemporalFailure && !isCancellation(error);
}

function isOwnType(): boolean {
  return Object.hasOwn(workflowTypes, workflowInfo().workflowType);
}
