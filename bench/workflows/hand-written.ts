// Sandbox. What an engineer writes with Temporal alone: a signal, a timer, one activity with a key. It is the
// measure for a gated effect, so it does no more than it must.
import { condition, defineSignal, proxyActivities, setHandler, workflowInfo } from '@temporalio/workflow';

export { collect } from './collect.ts';

interface HandWrittenInput {
  order: string;
  ttlMs: number;
}

interface Decision {
  approve: boolean;
  by: { id: string };
  reason: string;
}

const decide = defineSignal<[Decision]>('decide');

const { refund } = proxyActivities<{
  refund: (call: { key: string; order: string; amount: string }) => Promise<unknown>;
}>({
  startToCloseTimeout: '1m',
  heartbeatTimeout: '4s',
  retry: { initialInterval: '500ms', maximumInterval: '1m', maximumAttempts: 10 },
});

export async function handWritten({ order, ttlMs }: HandWrittenInput): Promise<unknown> {
  let decision: Decision | undefined;
  setHandler(decide, (sent) => {
    decision ??= sent;
  });
  const decided = await condition(() => decision !== undefined, ttlMs);
  if (!decided || decision?.approve !== true) return { status: 'rejected' };
  const key = `${workflowInfo().firstExecutionRunId}:refund`;
  return { status: 'completed', output: await refund({ key, order, amount: '10.00' }) };
}
