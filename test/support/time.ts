// Days in a moment, on a real server (dynamic configuration frontend.WorkflowTimeSkippingEnabled).
import { randomUUID } from 'node:crypto';
import { msToTs } from '@temporalio/common/lib/time.js';
import type { TestTemporal } from './temporal.ts';

/**
 * Lets that run's own clock go forward by `durationMs` as soon as it waits for nothing but time. Its timers
 * fire in order on the way; other runs keep their time.
 */
export async function fastForward(
  temporal: TestTemporal,
  workflowId: string,
  durationMs: number,
): Promise<void> {
  await temporal.connection.workflowService.updateWorkflowExecutionOptions({
    namespace: temporal.namespace,
    workflowExecution: { workflowId },
    workflowExecutionOptions: {
      timeSkippingConfig: {
        enabled: true,
        fastForwardConfig: {
          id: randomUUID(),
          duration: msToTs(durationMs),
        },
      },
    },
    updateMask: { paths: ['time_skipping_config'] },
  });
}
