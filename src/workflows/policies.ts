// Sandbox. Every timeout and retry of the activities, each with its reason.
import type { ActivityOptions, LocalActivityOptions } from '@temporalio/workflow';
import type { EffectOptions } from '../core/case.ts';

/**
 * Freezing computes for milliseconds. 10 s bounds a hang (a schema that never ends), five attempts ride
 * out a worker that is short of memory; after that the run fails (`preparation_failed`) and nobody was asked.
 */
export const freezePolicy = {
  startToCloseTimeout: '10s',
  retry: { maximumAttempts: 5, initialInterval: '100ms', maximumInterval: '1s' },
} satisfies LocalActivityOptions & ActivityOptions;

/**
 * A verdict needs memory only. 2 s and three attempts are over before anybody gives up on an answer;
 * after that it is `check_failed`, the gate stays open, and the person can send it again.
 */
export const admitPolicy = {
  startToCloseTimeout: '2s',
  retry: { maximumAttempts: 3, initialInterval: '50ms', maximumInterval: '200ms' },
} satisfies LocalActivityOptions & ActivityOptions;

/**
 * A run of a spec continues as new between two steps beyond so many events, or when Temporal suggests it (at
 * 4,096 by default, or by size; older servers never do). A tenth of the 51,200 at which Temporal ends a run, so
 * that one step may still bring 45,000: 10,000 decisions, the most that a run takes, are fewer.
 */
export const continueAfterEvents = 5_000;

/**
 * What a run of a spec may hand to its next execution: its input, outputs and receipts. Three quarters of what
 * Temporal takes as one payload (2 MiB); with more it stays in this execution.
 */
export const continuedInputBytes = 1536 * 1024;

/**
 * One attempt is as long as the tool says. `perform` heartbeats every second, so a dead worker is noticed
 * after 4 s however long the tool may run. Backoff from 0.5 s to 1 min: a target that is down for
 * minutes is not lost, and not flooded.
 */
export function performPolicy(effect: EffectOptions): ActivityOptions {
  return {
    startToCloseTimeout: effect.startToCloseMs,
    heartbeatTimeout: '4s',
    retry: {
      initialInterval: '500ms',
      backoffCoefficient: 2,
      maximumInterval: '1m',
      maximumAttempts: effect.idempotency === 'none' ? 1 : effect.maximumAttempts,
    },
  };
}
