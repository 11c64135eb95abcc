// The ledger's lines, each with the effects of the histories that may have sent it: by the key, or, where the
// target takes none, by what was sent.
import type { CaseRecord } from '../../../src/core/case.ts';
import type { Evidence, LedgerLine } from '../evidence.ts';
import { canonical } from './independent.ts';
import { stateBy, type Effect, type Story } from './story.ts';

export interface Sending {
  story: Story;
  effect: Effect;
}

/** The line says that the target did it; every other outcome did nothing, or nothing again. */
export function isCarriedOut({ outcome }: LedgerLine): boolean {
  return outcome === 'done';
}

export function needsApproval({ tools }: Pick<Evidence, 'tools'>, tool: string): boolean {
  return tools?.find(({ name }) => name === tool)?.requiresApproval ?? tool.startsWith('pay');
}

export function sendingsOf(stories: readonly Story[]): Sending[] {
  return stories.flatMap((story) => story.effects.map((effect) => ({ story, effect })));
}

/** The effects that this line can be of. A child that was started anew sends under the same key as before. */
export function sendersOf(line: LedgerLine, sendings: readonly Sending[]): Sending[] {
  if (line.key !== null) return sendings.filter(({ effect }) => effect.key === line.key);
  const sent = canonical(line.body);
  return sendings.filter(({ effect }) => canonical(effect.input.arguments) === sent);
}

/** The same scheduled activity is in every lineage that a reset copied it to. */
export function distinct(sendings: readonly Sending[]): Sending[] {
  return [...new Map(sendings.map((one) => [one.effect.id, one])).values()];
}

/**
 * The case that was approved for an effect, in the lineage that ran it: at its own gate, or at that of the doubt
 * whose question was whether to try again.
 */
export function approvedCase({ story, effect }: Sending): CaseRecord | undefined {
  const { position } = effect.input;
  for (const { verdicts } of story.gates) {
    for (const { record, case: shown } of verdicts) {
      if (record.verdict !== 'accepted' || stateBy(record.decision.decision) !== 'approved') continue;
      const approved = record.case ?? shown;
      if ((approved.doubt?.retryPosition ?? approved.position) === position) return approved;
    }
  }
  return undefined;
}

/** Of the payload that the effect itself has: at a gate in doubt the question has another one. */
export function effectHash(approved: CaseRecord): string {
  return approved.doubt?.effectHash ?? approved.payloadHash;
}
