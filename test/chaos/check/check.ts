// All invariants over the evidence of one chaos run. Pure: the same evidence, kept as JSON, is judged the same.
import type { Evidence, Violation } from '../evidence.ts';
import { checkN1 } from './n1.ts';
import { checkN2 } from './n2.ts';
import { checkN3 } from './n3.ts';
import { checkN4 } from './n4.ts';
import { checkN5 } from './n5.ts';
import { checkN6 } from './n6.ts';
import { checkN7 } from './n7.ts';
import { readStories } from './story.ts';

export function check(whole: Evidence): Violation[] {
  // a child that its parent never came to is no run
  const runs = whole.runs.filter(({ kind, histories }) => kind !== 'child' || histories.length > 0);
  const evidence = { ...whole, runs };
  const stories = readStories(evidence);
  return [
    ...checkN1(evidence, stories),
    ...checkN2(evidence, stories),
    ...checkN3(evidence, stories),
    ...checkN4(evidence, stories),
    ...checkN5(evidence, stories),
    ...checkN6(evidence, stories),
    ...checkN7(evidence, stories),
  ];
}
