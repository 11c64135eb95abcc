// The linearizability check of a write-once register, held against an exhaustive search, against histories that a
// simulated register made, and against what makes such a history wrong.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { registerProblem, type Look } from './chaos/check/register.ts';

/** A write answers what stands there afterwards, a read what stands there or nothing; a lost answer is neither. */
interface Operation {
  /** of a write: its own value */
  writes?: string;
  begun: number;
  ended: number;
  /** a value, `nothing` (only a read can find that), or `lost` */
  answer: string;
}

function problemIn(operations: readonly Operation[]) {
  const looks = operations
    .filter(({ answer }) => answer !== 'lost')
    .map(({ begun, ended, answer }): Look => ({
      begun,
      ended,
      ...(answer === 'nothing' ? {} : { value: answer }),
    }));
  return registerProblem(looks, (value) => operations.find(({ writes }) => writes === value)?.begun)?.problem;
}

/** Is there any order, true to the times, in which a write-once register gives these answers? Tries them all. */
function isLinearizable(operations: readonly Operation[]): boolean {
  const place = (rest: readonly Operation[], value: string | undefined): boolean => {
    if (rest.every(({ answer }) => answer === 'lost')) return true;
    return rest.some((next, index) => {
      // something that ended before this one began must come first; an unanswered one may come at any time
      const isLater = rest.some((other) => other.answer !== 'lost' && other.ended < next.begun);
      if (isLater) return false;
      const after = value ?? next.writes;
      const fits = next.answer === 'lost' || next.answer === (after ?? 'nothing');
      return fits && place(rest.toSpliced(index, 1), after);
    });
  };
  return place(operations, undefined);
}

const values = ['a', 'b', 'c'];
const times = fc.tuple(fc.nat(12), fc.nat(6)).map(([begun, lasts]) => ({ begun, ended: begun + lasts }));

const read = fc
  .tuple(times, fc.constantFrom('nothing', ...values))
  .map(([time, answer]): Operation => ({ ...time, answer }));
const write = fc
  .tuple(times, fc.constantFrom('lost', ...values))
  .map(([time, answer]): Omit<Operation, 'writes'> => ({ ...time, answer }));

test('it says the same as an exhaustive search, of 20,000 small histories', () => {
  let good = 0;
  let total = 0;
  fc.assert(
    fc.property(fc.array(write, { maxLength: 3 }), fc.array(read, { maxLength: 4 }), (writes, reads) => {
      const named = writes.map((one, index): Operation => ({ ...one, writes: values[index] ?? 'c' }));
      const operations = [...named, ...reads.filter(({ answer }) => isWritten(answer, named))];
      // a write is answered by what somebody wrote
      fc.pre(named.every(({ answer }) => answer === 'lost' || isWritten(answer, named)));
      const expected = isLinearizable(operations);
      assert.equal(problemIn(operations) === undefined, expected, JSON.stringify(operations));
      total += 1;
      if (expected) good += 1;
    }),
    { numRuns: 20_000 },
  );
  // both sorts are there, so that agreement means something
  assert.ok(good > total / 20 && good < total - total / 20, `${good} of ${total} are linearizable`);
});

function isWritten(answer: string, writes: readonly Operation[]): boolean {
  return answer === 'nothing' || writes.some((one) => one.writes === answer);
}

interface Wish {
  kind: 'write' | 'read' | 'write without an answer';
  /** when it takes effect */
  at: number;
  before: number;
  after: number;
}

/** Runs the operations on a real register, each at its own moment between its begin and its end. */
function simulate(wishes: readonly Wish[]): Operation[] {
  let value: string | undefined;
  return wishes
    .toSorted((a, b) => a.at - b.at)
    .map(({ kind, at, before, after }, index): Operation => {
      const time = { begun: at - before, ended: at + after };
      if (kind === 'read') return { ...time, answer: value ?? 'nothing' };
      const writes = `write ${index}`;
      value ??= writes;
      return { ...time, writes, answer: kind === 'write' ? value : 'lost' };
    });
}

const wish = fc.record<Wish>({
  kind: fc.constantFrom('write', 'write', 'read', 'read', 'write without an answer'),
  at: fc.double({ min: 0, max: 100, noNaN: true }),
  before: fc.double({ min: 0.01, max: 20, noNaN: true }),
  after: fc.double({ min: 0.01, max: 20, noNaN: true }),
});
const histories = fc.array(wish, { minLength: 10, maxLength: 30 }).map(simulate);

test('what a register really did is never called wrong, in 10,000 histories', () => {
  fc.assert(
    fc.property(histories, (operations) => assert.equal(problemIn(operations), undefined)),
    { numRuns: 10_000 },
  );
});

/** Makes a good history wrong; undefined where it has no place for that. */
type Mutation = (operations: readonly Operation[]) => Operation[] | undefined;

const isNamed = ({ answer }: Operation): boolean => answer !== 'lost' && answer !== 'nothing';
const firstNaming = (operations: readonly Operation[]): Operation | undefined =>
  operations.filter(isNamed).sort((a, b) => a.ended - b.ended)[0];

const mutations: Record<string, Mutation> = {
  'a loser is told that it won': (operations) => {
    const loser = operations.find(
      (one) => one.writes !== undefined && isNamed(one) && one.answer !== one.writes,
    );
    if (loser === undefined || operations.filter(isNamed).length < 2) return undefined;
    return operations.map((one) => (one === loser ? { ...one, answer: loser.writes ?? '' } : one));
  },
  'the winner is told that it lost': (operations) => {
    const winner = operations.find((one) => one.writes !== undefined && one.answer === one.writes);
    const others = operations.filter((one) => isNamed(one) && one !== winner);
    if (winner === undefined || others.length === 0) return undefined;
    return operations.map((one) => (one === winner ? { ...one, answer: 'somebody else' } : one));
  },
  'one reader is told of another winner': (operations) => {
    const reader = operations.find((one) => one.writes === undefined && isNamed(one));
    if (reader === undefined || operations.filter(isNamed).length < 2) return undefined;
    return operations.map((one) => (one === reader ? { ...one, answer: 'somebody else' } : one));
  },
  'somebody who begins after the first answer finds nothing': (operations) => {
    const first = firstNaming(operations);
    return (
      first && [...operations, { begun: first.ended + 0.001, ended: first.ended + 1, answer: 'nothing' }]
    );
  },
  'the winner is named before its write begins': (operations) => {
    const winner = operations.find(
      ({ writes }) => writes !== undefined && operations.some(({ answer }) => answer === writes),
    );
    return winner && [...operations, { begun: -2, ended: winner.begun - 0.001, answer: winner.writes ?? '' }];
  },
  'the register forgets: later operations find another value': (operations) => {
    const first = firstNaming(operations);
    const later = operations.filter((one) => first !== undefined && one.begun > first.ended && isNamed(one));
    return later.length === 0
      ? undefined
      : operations.map((one) => (later.includes(one) ? { ...one, answer: 'the second value' } : one));
  },
};

for (const [name, mutate] of Object.entries(mutations)) {
  test(`it is called wrong when ${name}`, () => {
    let made = 0;
    fc.assert(
      fc.property(histories, (operations) => {
        const wrong = mutate(operations);
        if (wrong === undefined) return;
        made += 1;
        assert.notEqual(problemIn(wrong), undefined, JSON.stringify(wrong));
      }),
      { numRuns: 2_000 },
    );
    assert.ok(made > 300, `only ${made} of 2,000 histories had a place for it`);
  });
}
