// Freezes an ungated step. Read-only: it may run more than once, its recorded result is what counts.
import type { PreparedRecord, ProblemRecord } from '../core/case.ts';
import type { OutputRecord, PrepareStepInput } from '../core/recording.ts';
import type { ActivityDeps } from './deps.ts';
import { FreezeProblem, freezeCall, resolveIn } from './freeze-call.ts';

export function createPrepareStep(deps: ActivityDeps) {
  return async function prepareStep(
    input: PrepareStepInput,
  ): Promise<PreparedRecord | OutputRecord | ProblemRecord> {
    const { position, root, what, scope } = input;
    try {
      if ('output' in what) {
        const value = resolveIn(position, what.output, scope);
        return { v: 1, kind: 'output', position, root, value };
      }
      const call = await freezeCall(deps.tools, position, what, scope);
      return { v: 1, kind: 'prepared', position, root, tool: what.tool, ...call };
    } catch (error) {
      return recordProblem(error, position, root);
    }
  };
}

/** A problem that the proposal has is a recorded fact; anything else is a fault of ours, and is thrown. */
export function recordProblem(error: unknown, position: string, root: string): ProblemRecord {
  if (!(error instanceof FreezeProblem)) throw error;
  return { v: 1, kind: 'problem', position, root, code: error.code, message: error.message };
}
