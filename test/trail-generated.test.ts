// P6: the trail of generated histories. Resets, continue-as-new, refused signals and records of others in any order:
// each thing that happened is told once, in its order, and what was cut off is marked.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { fuzzSeed, isFullFuzz } from './support/fuzz.ts';
import { stepKinds, type Expected, type Step } from './support/trail-run.ts';
import { writeHistory } from './support/trail-writer.ts';
import type { Execution, HistoryEvent } from '../src/core/history-event.ts';
import { decodeKnown, decodeTrail } from '../src/core/trail.ts';
import type { TrailFact } from '../src/core/trail-fact.ts';

const numRuns = isFullFuzz ? 10_000 : 2_000;
const often = [
  ...(['open', 'open', 'decide', 'decide', 'decide', 'decide', 'again', 'task'] as const),
  ...(['judge', 'judge', 'judge', 'judge', 'judge', 'act', 'act', 'act'] as const),
];
const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom(...stepKinds, ...often),
  pick: fc.nat(999),
  more: fc.nat(999),
});
const plan = fc.record({
  kind: fc.constantFrom('runSpec' as const, 'mine' as const, 'requestApproval' as const),
  steps: fc.array(step, { minLength: 10, maxLength: 50, size: 'max' }),
});

/** A fact as the writer tells it. */
function told(fact: TrailFact): Expected {
  const { type, temporalRunId, eventId, position, superseded } = fact;
  const code = fact.type === 'decision_refused' ? fact.code : undefined;
  const decisionId = 'decision' in fact ? fact.decision?.decisionId : undefined;
  return {
    ...{ type, temporalRunId, eventId },
    ...(position === undefined ? {} : { position }),
    ...(code === undefined ? {} : { code }),
    ...(decisionId === undefined ? {} : { decisionId }),
    ...(superseded === undefined ? {} : { superseded }),
  };
}

function assertDense(facts: readonly TrailFact[]): void {
  facts.forEach(({ seq }, index) => assert.equal(seq, index + 1));
}

const seen = new Map<string, number>();
function count({ type, code, superseded }: Expected): void {
  for (const what of [code ?? type, ...(superseded === undefined ? [] : ['superseded'])]) {
    seen.set(what, (seen.get(what) ?? 0) + 1);
  }
}

test('P6: a trail tells each thing that happened once, in its order, over resets and continue-as-new', () => {
  fc.assert(
    fc.property(plan, (planned) => {
      const { executions, facts } = writeHistory(planned);
      const known = decodeKnown(executions);
      const trail = known.map(({ fact }) => fact);
      assert.deepEqual(trail.map(told), facts);
      assertDense(trail);
      known.forEach(({ knownAt }, index) =>
        assert.ok(knownAt >= (known[index - 1]?.knownAt ?? 0), 'known earlier than the fact before'),
      );
      facts.forEach(count);
    }),
    { numRuns, seed: fuzzSeed },
  );
  const all = [
    ...['run_started', 'step_started', 'step_completed', 'approval_requested', 'approval_granted', 'approval_rejected'],
    ...['approval_withdrawn', 'approval_responded', 'approval_commented', 'approval_edited', 'approval_amended'],
    ...['approval_expired', 'approval_cancelled', 'effect_started', 'tool_result', 'effect_failed', 'effect_in_doubt'],
    ...['signal_ignored', 'run_finished', 'run_cancelled', 'run_terminated', 'run_reset', 'run_continued', 'superseded'],
    ...['malformed', 'too_large', 'unknown_key', 'not_open', 'already_resolved', 'expired', 'check_failed', 'payload_changed'],
  ]; // prettier-ignore
  for (const what of all)
    assert.ok((seen.get(what) ?? 0) >= numRuns / 100, `${what}: ${seen.get(what) ?? 0} times`);
  if (isFullFuzz)
    console.log(`seed ${fuzzSeed}, ${numRuns} histories: ${JSON.stringify(Object.fromEntries(seen))}`);
});

test('P6: as a history grows, its trail grows at the end only', () => {
  fc.assert(
    fc.property(plan, fc.nat(), (planned, cutAt) => {
      const { executions } = writeHistory(planned);
      const last = executions.at(-1) as Execution;
      const events = last.events.slice(0, Math.max(last.copied ?? 0, cutAt % last.events.length));
      const before = decodeTrail([...executions.slice(0, -1), { ...last, events }]);
      assert.deepEqual(decodeTrail(executions).slice(0, before.length), before);
    }),
    { numRuns: numRuns / 4, seed: fuzzSeed },
  );
});

test('P6: a history that no run could make still decodes, densely numbered', () => {
  const spoil = fc.record({ at: fc.nat(), how: fc.constantFrom('drop', 'twice', 'swap', 'other', 'empty') });
  fc.assert(
    fc.property(
      plan,
      fc.array(spoil, { minLength: 1, maxLength: 6 }),
      fc.boolean(),
      (planned, spoils, isCut) => {
        const executions = writeHistory(planned).executions.map((one) => ({
          ...one,
          events: [...one.events],
        }));
        for (const { at, how } of spoils) {
          const { events } = executions[at % executions.length] as { events: HistoryEvent[] };
          spoilAt(events, at % events.length, how);
        }
        assertDense(decodeTrail(isCut ? executions.slice(1) : executions));
      },
    ),
    { numRuns: numRuns / 4, seed: fuzzSeed },
  );
});

function spoilAt(events: HistoryEvent[], at: number, how: string): void {
  const event = events[at];
  const other = events[(at * 7 + 3) % events.length];
  if (event === undefined || other === undefined) return;
  if (how === 'drop') events.splice(at, 1);
  if (how === 'twice') events.splice(at, 0, event);
  if (how === 'swap') [events[at], events[events.indexOf(other)]] = [other, event];
  // what one kind of event has, under the name of another; the raw input of a signal is always a list
  if (how === 'other' && event.type !== 'signaled')
    events[at] = { ...event, ...other, type: event.type } as HistoryEvent;
  if (how === 'empty') events[at] = { ...event, ...{ result: null, input: [], fields: {} } };
}
