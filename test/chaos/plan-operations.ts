// Who decides what on the gates of a run, by which door, when, and how often. A gate has a story (approved, a
// race, amended first, …) and, beside it, messages that must change nothing.
import type { PlannedGate } from './plan-runs.ts';
import type { StartOperation } from './plan.ts';
import { isOfDoor, isOfTarget, type Fault } from './plan-faults.ts';
import type { Random } from './random.ts';

export type DecisionName = 'approve' | 'reject' | 'edit' | 'amend' | 'withdraw' | 'respond' | 'comment';

export interface DecisionOperation {
  op: DecisionName;
  /** ms after the run of the plan began; not before its gate allows it */
  at: number;
  client: string;
  person: string;
  run: string;
  /** index in the run's gates */
  gate: number;
  door: 'http' | 'raw-signed' | 'raw-unsigned';
  /** `open`: once the gate asks; `early`: at once, by a predicted key; `late`: when it has ended */
  timing: 'open' | 'early' | 'late';
  /** `stale`: on another hash than the one that is shown */
  payload: 'shown' | 'stale';
  /** so many of the same at once */
  copies: number;
  /** with an Idempotency-Key, or without one */
  keyed: boolean;
  /** the plan means it to succeed when nothing else was there first */
  shouldSucceed: boolean;
}

export interface OtherOperation {
  op: 'cancel' | 'malformed' | 'read';
  at: number;
  client: string;
  person: string;
  run: string;
  gate: number;
  /** of `malformed`: which one, from 0, below 1 */
  choice: number;
}

interface Wishes {
  allowed: ReadonlySet<string>;
  /** those that strike this run */
  faults: readonly Fault[];
}

type Story = 'approve' | 'reject' | 'edit' | 'amend' | 'withdraw' | 'respond' | 'race' | 'none';

/** All that people do is over so soon; faults have their own times. */
const spanMs = 1_500;

/** What goes on for seconds is met by decisions all the way. */
const longSpans: Partial<Record<Fault['name'], number>> = { 'spec-edited': 3_500, 'ten-builds': 8_000 };

export function planDecisions(
  random: Random,
  start: StartOperation,
  wishes: Wishes,
): (DecisionOperation | OtherOperation)[] {
  const { allowed, faults } = wishes;
  const operations = start.gates.flatMap((gate, index) => [
    ...planStory(random, start, gate, index, wishes),
    ...planNoise(random, start, index, wishes),
  ]);
  if (allowed.has('cancel') && faults.length === 0 && random.chance(0.05)) {
    operations.push(other(random, start, 'cancel', random.whole(200, spanMs), 0));
  }
  return operations;
}

function planStory(
  random: Random,
  start: StartOperation,
  gate: PlannedGate,
  index: number,
  { allowed, faults }: Wishes,
): DecisionOperation[] {
  const isVictim = index === 0 && faults.some(({ name }) => isOfTarget(name) || isOfDoor(name));
  // decisions on a gate whose time is nearly up race with the clock
  const span = Math.max(spanMs, ...faults.map(({ name }) => longSpans[name] ?? 0));
  const at = gate.expires
    ? random.whole(Math.max(0, gate.ttlMs - 400), gate.ttlMs + 400)
    : random.whole(0, span);
  const one = (op: DecisionName, more: Partial<DecisionOperation> = {}): DecisionOperation =>
    decision(random, start, op, at, index, { ...more, shouldSucceed: !gate.expires });
  if (gate.expires && random.chance(0.5)) return [];
  // whoever starts by a Temporal client is no requester: only an admin takes that back
  const hasRequester = start.kind === 'runSpec' || start.kind === 'requestApproval';
  const byStarter = { person: hasRequester ? start.person : 'admin', door: 'http' } as const;
  switch (isVictim ? 'approve' : storyOf(random, allowed, hasRequester)) {
    case 'none':
      return [];
    case 'approve':
      return [
        one('approve', { copies: allowed.has('duplicate') && random.chance(0.3) ? random.whole(2, 3) : 1 }),
      ];
    case 'reject':
      return [one('reject')];
    case 'edit':
      return [one('edit')];
    case 'respond':
      return [one('respond')];
    case 'withdraw':
      return [one('withdraw', byStarter)];
    case 'amend':
      return [one('amend', byStarter), one('approve', { at: at + random.whole(0, 400) })];
    case 'race':
      return Array.from({ length: random.whole(2, 4) }, () =>
        one(random.pick(['approve', 'reject', 'approve', 'edit'] as const), {
          at: at + random.whole(0, 20),
          client: `client-${random.whole(1, 6)}`,
        }),
      );
  }
}

function storyOf(random: Random, allowed: ReadonlySet<string>, hasRequester: boolean): Story {
  const weights: [Story, number][] = [
    ['approve', 12],
    ['race', 5],
    ['reject', 2],
    ['edit', 2],
    ['amend', hasRequester ? 2 : 0],
    ['withdraw', 1],
    ['respond', 1],
  ];
  const open = weights.filter(([story]) => allowed.has(story));
  return open.every(([, weight]) => weight === 0) ? 'none' : random.weighted(open);
}

/** What must change nothing: too early, too late, of another payload, no decision at all; and who only looks. */
function planNoise(
  random: Random,
  start: StartOperation,
  index: number,
  { allowed }: Wishes,
): (DecisionOperation | OtherOperation)[] {
  const noise: (DecisionOperation | OtherOperation)[] = [];
  const at = (): number => random.whole(0, spanMs);
  const refused = { shouldSucceed: false } as const;
  const kind = (): DecisionName => random.pick(['approve', 'approve', 'reject']);
  const may = (name: string, probability: number): boolean => allowed.has(name) && random.chance(probability);
  if (may('early', 0.12)) {
    noise.push(decision(random, start, kind(), random.whole(0, 200), index, { ...refused, timing: 'early' }));
  }
  if (may('late', 0.2)) {
    noise.push(decision(random, start, kind(), at(), index, { ...refused, timing: 'late' }));
  }
  if (may('stale', 0.1)) {
    noise.push(decision(random, start, 'approve', at(), index, { ...refused, payload: 'stale' }));
  }
  if (may('comment', 0.08)) noise.push(decision(random, start, 'comment', at(), index, refused));
  if (may('malformed', 0.2)) noise.push(other(random, start, 'malformed', at(), index));
  const reads = random.whole(0, 2);
  for (let count = 0; allowed.has('read') && count < reads; count += 1) {
    noise.push(other(random, start, 'read', at(), index));
  }
  return noise;
}

/** An approval by HTTP, of what is shown, beside those of the plan. */
export function approvalBy(
  client: string,
  run: string,
  more: Partial<DecisionOperation> = {},
): DecisionOperation {
  return {
    ...{ op: 'approve', at: 0, client, person: 'dan', run, gate: 0, door: 'http', timing: 'open' },
    ...{ payload: 'shown', copies: 1, keyed: true, shouldSucceed: true },
    ...more,
  };
}

function decision(
  random: Random,
  start: StartOperation,
  op: DecisionName,
  at: number,
  gate: number,
  more: Partial<DecisionOperation>,
): DecisionOperation {
  const door =
    more.door ??
    random.weighted([
      ['http', 6],
      ['raw-signed', 2],
      ['raw-unsigned', 2],
    ] as const);
  return {
    op,
    at,
    client: `client-${random.whole(1, 6)}`,
    person: random.pick(['ann', 'bob', 'cat', 'dan']),
    run: start.run,
    gate,
    door,
    timing: 'open',
    payload: 'shown',
    copies: 1,
    keyed: random.chance(0.8),
    shouldSucceed: true,
    ...more,
  };
}

function other(
  random: Random,
  start: StartOperation,
  op: OtherOperation['op'],
  at: number,
  gate: number,
): OtherOperation {
  const client = `client-${random.whole(1, 6)}`;
  const person = random.pick(['ann', 'bob', 'cat', 'dan']);
  return { op, at, client, person, run: start.run, gate, choice: random.next() };
}
