// Linearizability of a write-once register: a gate. There is one write that counts, so no search is needed. An
// order of all operations that fits their times exists if and only if all answers name one winner, and there is a
// moment for its write that is neither before the write was begun, nor before a look that found the gate open was
// begun, nor after an answer that named the winner had ended.

/** `value` undefined: a look that found nothing written. */
export interface Look {
  value?: string;
  begun: number;
  ended: number;
}

/** When the write of a value was begun first; undefined where that is not known. */
export type WriteBegun = (value: string) => number | undefined;

export type RegisterProblem<L extends Look> =
  | { problem: 'two-winners'; first: L; second: L }
  | { problem: 'named-too-early'; look: L; begun: number }
  | { problem: 'open-too-late'; named: L; open: L };

/** The first contradiction; undefined when there is none. */
export function registerProblem<L extends Look>(
  looks: readonly L[],
  writeBegun: WriteBegun,
): RegisterProblem<L> | undefined {
  const named = looks.filter(({ value }) => value !== undefined);
  const [first] = named;
  if (first === undefined) return undefined;
  const second = named.find(({ value }) => value !== first.value);
  if (second !== undefined) return { problem: 'two-winners', first, second };
  const earliest = named.reduce((least, look) => (look.ended < least.ended ? look : least));
  const begun = writeBegun(first.value ?? '');
  if (begun !== undefined && earliest.ended < begun)
    return { problem: 'named-too-early', look: earliest, begun };
  const open = looks.find((look) => look.value === undefined && look.begun > earliest.ended);
  return open === undefined ? undefined : { problem: 'open-too-late', named: earliest, open };
}
