// What a test of the checks does: takes good evidence, changes one thing, and looks whether it is caught.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { check } from '../chaos/check/check.ts';
import type { Call, Evidence, Violation } from '../chaos/evidence.ts';
import { byAnn, evidenceOf, refund, runOf } from './chaos-evidence.ts';
import {
  approves,
  asks,
  completed,
  done,
  history,
  performs,
  place,
  signal,
  task,
  type EventBody,
} from './chaos-history.ts';

export interface Bad {
  what: string;
  evidence: () => Evidence;
  caught: Violation['invariant'];
  words: RegExp;
}

/** The good one with one thing changed. */
export function changed(from: () => Evidence, change: (evidence: Evidence) => void): () => Evidence {
  return () => {
    const evidence = structuredClone(from());
    change(evidence);
    return evidence;
  };
}

export function callOf(evidence: Evidence, person: string, op = 'approve'): Call {
  const found = evidence.calls.find((one) => one.person === person && one.op === op);
  assert.ok(found !== undefined);
  return found;
}

/** One run of one gate, with the events that follow the asking. */
export function runWith(
  bodies: readonly EventBody[],
  more: Partial<Evidence> = {},
  status = 'completed',
): Evidence {
  const raw = history(place, [task, ...asks(refund), ...bodies]);
  return evidenceOf({ runs: [runOf(raw, status)], ...more });
}

export function withoutSignal(evidence: Evidence, index: number): void {
  const [run] = evidence.runs;
  const { events } = run?.histories[0] as { events: Record<string, unknown>[] };
  const signals = events.filter((event) => 'workflowExecutionSignaledEventAttributes' in event);
  events.splice(events.indexOf(signals[index] ?? {}), 1);
}

export const paid = [performs(refund), done(9, refund), task, completed({ status: 'completed' })];
export const approveAnn = [signal(byAnn), task, ...approves(refund, byAnn)];
export const otherRun = { ...place, workflowId: 'run-2', root: '019d2b1a-7f3e-7c11-9d55-0000000000ff' };

/** One test for each, named after what it catches. */
export function testsThatCatch(bad: readonly Bad[]): void {
  describe('what is wrong is caught', () => {
    for (const { what, evidence, caught, words } of bad) {
      test(`${caught}: ${what}`, () => {
        const violations = check(evidence());
        const told = violations.map((one) => `${one.invariant} ${one.what}`).join('\n');
        assert.ok(
          violations.some((one) => one.invariant === caught && words.test(one.what)),
          told || 'no violation',
        );
      });
    }
  });
}
