// Sandbox. A workflow that uses names in the order in which it is told to, in itself and in its child runs.
import { ApplicationFailure } from '@temporalio/workflow';
import type { Carried } from '../../../src/core/carried.ts';
import type { Json } from '../../../src/core/json.ts';
import { continueRun, restore } from '../../../src/workflows/carry.ts';
import { childRun } from '../../../src/workflows/child-run.ts';
import { effect } from '../../../src/workflows/primitives.ts';

export type NameToUse = { effect: string } | { child: string; uses: NameToUse[] } | { continues: true };

export interface NamesToUse {
  order: string;
  uses: NameToUse[];
  /** what became of the uses before */
  ends?: string[];
  carried?: Carried;
}

/** @returns of each use `done`, or how it was refused */
export async function usesNames(input: NamesToUse): Promise<Json> {
  restore(input.carried);
  const ends = [...(input.ends ?? [])];
  for (const [index, use] of input.uses.entries()) {
    if ('continues' in use) {
      const uses = input.uses.slice(index + 1);
      return continueRun<typeof usesNames>((carried) => [{ order: input.order, uses, ends, carried }]);
    }
    ends.push(await endOf(use, input.order));
  }
  return ends;
}

async function endOf(use: Exclude<NameToUse, { continues: true }>, order: string): Promise<string> {
  try {
    if ('effect' in use) await effect(use.effect, 'notify.send', { order });
    else await childRun(use.child, 'usesNames', { args: [{ order, uses: use.uses }] });
    return 'done';
  } catch (error) {
    if (!(error instanceof ApplicationFailure)) throw error;
    return `${error.type}: ${error.message}`;
  }
}
