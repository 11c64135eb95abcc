// Sandbox. Runs one effect by the activity `perform`. It is not cancelled with the run: an effect in flight
// is awaited and recorded. A clear refusal fails with the refusal's code; anything else that ends the last
// attempt is in doubt, since nobody can know whether it happened.
import {
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  proxyActivities,
} from '@temporalio/workflow';
import type { EffectRecord, Grant, PerformInput, PreparedRecord } from '../core/case.ts';
import { isClearFailure, type FailureCode } from '../core/failures.ts';
import type { Json } from '../core/json.ts';
import { idempotencyKey } from '../core/position.ts';
import { performPolicy } from './policies.ts';
import { currentRun, failure } from './run.ts';
import { uncancelled } from './uncancelled.ts';

export type FrozenEffect = Pick<
  PreparedRecord,
  'position' | 'root' | 'tool' | 'arguments' | 'payloadHash' | 'effect'
>;

/** Whether an error of `performEffect` leaves open whether the effect happened. */
export function isInDoubt(error: unknown): error is ApplicationFailure {
  return error instanceof ApplicationFailure && error.type === ('effect_in_doubt' satisfies FailureCode);
}

/**
 * @param keysSince after a workflow reset: since when its key may have been used already (see Run)
 * @throws ApplicationFailure with a code of core/failures.ts; CancelledFailure when the run was cancelled before
 */
export async function performEffect(
  frozen: FrozenEffect,
  grant: Grant | undefined,
  keysSince: number | undefined,
): Promise<Json> {
  if (CancellationScope.current().consideredCancelled)
    throw new CancelledFailure('cancelled before the effect');
  const { position, root, tool, payloadHash, effect } = frozen;
  const { prefix } = currentRun();
  const input: PerformInput = {
    v: 1,
    position,
    root,
    ...(prefix === undefined ? {} : { prefix }),
    tool,
    arguments: frozen.arguments,
    payloadHash,
    ...(grant === undefined ? {} : { grant }),
    ...(keysSince === undefined ? {} : { keysSince }),
  };
  const { perform } = proxyActivities<{ perform: (input: PerformInput) => Promise<EffectRecord> }>({
    ...performPolicy(effect),
    summary: `${tool} · ${idempotencyKey(root, position, prefix)}`,
  });
  try {
    const done = await uncancelled(() => perform(input));
    return done.output;
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
    throw explained(error, position);
  }
}

function explained(error: ActivityFailure, position: string): ApplicationFailure {
  const { cause } = error;
  if (cause instanceof ApplicationFailure && isClearFailure(cause.type)) {
    return failure(cause.type as FailureCode, `step "${position}": ${cause.message}`);
  }
  const why = cause?.message ?? error.message;
  return failure('effect_in_doubt', `step "${position}": the effect may or may not have happened: ${why}`);
}
