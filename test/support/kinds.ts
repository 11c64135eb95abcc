// The two kinds of workflow in which a gate can stand: `runSpec` records by local activities, an own
// workflow by ordinary ones. What a promise says of a gate is shown in both.
import type { CountersignClient } from '../../src/countersign-client.ts';
import type { JsonObject } from '../../src/core/json.ts';
import { openGate, startSpec, type SeenGate } from './gates.ts';
import type { TestTemporal } from './temporal.ts';

export const kinds = ['runSpec', 'oneGated'] as const;
export type Kind = (typeof kinds)[number];

export interface GateOptions {
  /** Default `payments.refund`. */
  tool?: string;
  /** Default a refund of 10.00 for the order that is named as the run. */
  arguments?: JsonObject;
  ttl?: string;
  /** The run stays open when the gate has ended, for what comes late. */
  stayOpen?: boolean;
}

/** Starts a run whose first gate is `refund`, and waits until it is open. */
export async function startGate(
  temporal: TestTemporal,
  countersign: CountersignClient,
  kind: Kind,
  runId: string,
  options: GateOptions = {},
): Promise<SeenGate> {
  const { tool = 'payments.refund', ttl = '1h', stayOpen = false } = options;
  const args = options.arguments ?? { order: runId, amount: '10.00' };
  if (kind === 'runSpec') {
    const refund = { id: 'refund', tool, with: args, before: { approve: { ttl } } };
    const later = { id: 'later', approval: { title: 'Anything else?' } };
    const steps = stayOpen ? [refund, later] : [refund];
    await startSpec(countersign, runId, { version: 1, name: 'kinds', steps }, {});
  } else {
    const input = { name: 'refund', tool, arguments: args, ttl };
    await temporal.client.workflow.start(kind, {
      workflowId: runId,
      taskQueue: temporal.taskQueue,
      args: [stayOpen ? { ...input, lingerMs: 3_600_000 } : input],
    });
  }
  return openGate(countersign, runId);
}
