// Sandbox. Runs an effect, and asks a person where nobody can know whether it happened (P5): a gate of its
// own at `<position>/in-doubt`. `respond`: it happened, here is its result. `approve`: it did not, try
// again. `reject`, and silence: give up, the run fails with `effect_in_doubt`.
import { CancelledFailure } from '@temporalio/workflow';
import type { Grant, SpecRef } from '../core/case.ts';
import type { Json } from '../core/json.ts';
import { idempotencyKey } from '../core/position.ts';
import type { Actor } from '../core/verdict.ts';
import { showStatus } from './board.ts';
import { isInDoubt, performEffect, type FrozenEffect } from './effect.ts';
import { openGate } from './gate.ts';
import { currentRun } from './run.ts';

/** The policy of the question: that of the effect's own gate, else the deployment's default. */
export interface AskWith {
  ttl?: string | number;
  spec?: SpecRef;
  requestedBy?: Actor;
}

/** @throws ApplicationFailure with a code of core/failures.ts; CancelledFailure */
export async function performOrAsk(
  frozen: FrozenEffect,
  firstGrant: Grant | undefined,
  ask: AskWith,
): Promise<Json> {
  const { position, root, tool, payloadHash, effect } = frozen;
  let grant = firstGrant;
  let attempt = frozen;
  for (let tries = 1; ; tries += 1) {
    try {
      // only the first try: then a person has said that it did not happen
      return await performEffect(attempt, grant, tries === 1 ? currentRun().keysSince : undefined);
    } catch (error) {
      if (!isInDoubt(error)) throw error;
      // a target that takes the key, or can be asked, tells a second try from a new effect; another needs a new key
      const retryPosition = effect.idempotency === 'none' ? `${position}#retry-${tries}` : position;
      const key = idempotencyKey(root, attempt.position, currentRun().prefix);
      const doubt = { idempotencyKey: key, why: error.message, retryPosition, effectHash: payloadHash };
      const proposal = {
        phase: 'in-doubt' as const,
        tool,
        arguments: frozen.arguments,
        effect,
        doubt,
        ...ask,
      };
      const end = await openGate(`${position}/in-doubt`, proposal, (ended) => ended, { isSystemName: true });
      const { state } = end.settlement;
      if (state === 'responded') {
        showStatus('running');
        return end.decision?.result ?? null;
      }
      if (state === 'cancelled') {
        showStatus('cancelled');
        throw new CancelledFailure('the run was cancelled while an effect was in doubt');
      }
      if (state !== 'approved') {
        showStatus('failed');
        throw error;
      }
      showStatus('running');
      grant = end.grant;
      attempt = { ...frozen, position: retryPosition };
    }
  }
}
