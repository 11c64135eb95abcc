// P6: the trail over continue-as-new, decoded from events alone. No event says what was carried: the decoder takes
// over the gates of the execution before by the workflow's own rule (core/carried.ts).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { carriedProblem, gatesToCarry, receiptsToCarry } from '../src/core/carried.ts';
import type { GateView } from '../src/core/gate-state.ts';
import type { Execution, HistoryEvent } from '../src/core/history-event.ts';
import type { Json } from '../src/core/json.ts';
import { decodeTrail } from '../src/core/trail.ts';
import type { TrailFact } from '../src/core/trail-fact.ts';
import {
  caseOf, decisionAt, events, freeze, keyOf, root, settled, signal, start, started, task, verdict, workflowId, type Body,
} from './support/trail-events.ts'; // prettier-ignore

const second = '019d2b1a-0000-7c11-9d55-000000000002';
const third = '019d2b1a-0000-7c11-9d55-000000000003';

function execution(runId: string, bodies: Body[], more: Partial<Execution> = {}): Execution {
  return { workflowId, runId, events: events(bodies), ...more };
}

const continued = (nextRunId: string): Body => ({ type: 'run_continued', nextRunId });
const next = (continuedRunId: string): Body => ({
  ...{ type: 'run_started', workflowType: 'mine', input: null, firstRunId: root },
  continuedRunId,
});
const told = (facts: readonly TrailFact[]): string[] =>
  facts.map((fact) => {
    const code = fact.type === 'decision_refused' ? ` ${fact.code} ${fact.decision?.decisionId ?? ''}` : '';
    return `${fact.type}${code}${fact.superseded === true ? ' cut' : ''}`;
  });

test('P6: a gate that was open is decided in the next execution; one question, one answer', () => {
  const approve = decisionAt('refund', 'd-1');
  const facts = decodeTrail([
    execution(root, [started('mine'), freeze('refund'), task, continued(second)]),
    execution(second, [next(root), task, continued(third)]),
    execution(third, [next(second), signal(approve), task, verdict(approve)]),
  ]);
  assert.deepEqual(told(facts), [
    'run_started', 'approval_requested', 'run_continued', 'run_continued', 'approval_granted',
  ]); // prettier-ignore
  const [granted] = facts.slice(-1);
  assert.ok(granted?.type === 'approval_granted');
  assert.deepEqual([granted.temporalRunId, granted.identity, granted.decision], [third, 'api@host', approve]);
});

test('P2: decisions that waited are judged in the next execution, with who sent them; those behind the winner are late', () => {
  const [first, winner, late] = [
    decisionAt('refund', 'd-1', { decision: 'comment' }),
    decisionAt('refund', 'd-2'),
    decisionAt('refund', 'd-3', { decision: 'reject' }),
  ];
  const facts = decodeTrail([
    execution(root, [
      ...[started('mine'), freeze('refund'), task, signal(first), signal(winner), signal(late), task],
      ...[verdict(first), continued(second)],
    ]),
    execution(second, [next(root), task, verdict(winner)]),
  ]);
  assert.deepEqual(told(facts), [
    'run_started', 'approval_requested', 'approval_commented', 'run_continued', 'approval_granted',
    'decision_refused already_resolved d-3',
  ]); // prettier-ignore
  assert.ok(facts.slice(-2).every((fact) => 'identity' in fact && fact.identity === 'api@host'));
});

test('P2: what an earlier execution settled is already resolved or expired in a later one; its winner is no new fact', () => {
  const [approve, late] = [decisionAt('refund', 'd-1'), decisionAt('refund', 'd-2')];
  const later = decisionAt('other', 'd-3');
  const unknown = decisionAt('never', 'd-4');
  const facts = decodeTrail([
    execution(root, [
      ...[started('mine'), freeze('refund'), freeze('other'), task, signal(approve), task, verdict(approve)],
      ...[settled('other', 'expired'), continued(second)],
    ]),
    execution(second, [
      ...[next(root), signal(approve), signal(late), signal(later), signal(unknown), task],
      settled('other', 'expired'), // shown again: no second end
    ]),
  ]);
  assert.deepEqual(told(facts).slice(3), [
    'approval_granted', 'approval_expired', 'run_continued', 'decision_refused already_resolved d-2',
    'decision_refused expired d-3', 'decision_refused not_open d-4',
  ]); // prettier-ignore
});

test('P6: a reset to before a continuation: what the later execution did is told, and cut off', () => {
  const [reject, approve] = [
    decisionAt('refund', 'd-1', { decision: 'reject' }),
    decisionAt('refund', 'd-2'),
  ];
  const before = events([started('mine'), freeze('refund'), task, continued(second)]);
  const after: HistoryEvent[] = [
    ...before.slice(0, 2),
    { eventId: 3, at: start + 9000, type: 'reset', baseRunId: root, reason: '' },
    { eventId: 4, at: start + 9001, ...signal(approve) },
    { eventId: 5, at: start + 9002, ...task },
    { eventId: 6, at: start + 9003, ...verdict(approve) },
  ];
  const facts = decodeTrail([
    { workflowId, runId: root, events: before, cutAfter: 2 },
    execution(second, [next(root), signal(reject), task, verdict(reject)], { cutAfter: 0 }),
    { workflowId, runId: third, events: after, copied: 2 },
  ]);
  assert.deepEqual(told(facts), [
    'run_started', 'approval_requested', 'run_continued cut', 'approval_rejected cut', 'run_reset', 'approval_granted',
  ]); // prettier-ignore
});

test('P6: a reset of a later execution goes on from the gates that were carried into it', () => {
  const [reject, approve] = [
    decisionAt('refund', 'd-1', { decision: 'reject' }),
    decisionAt('refund', 'd-2'),
  ];
  const cut = events([next(root), task, signal(reject), task, verdict(reject)]);
  const after: HistoryEvent[] = [
    ...cut.slice(0, 1),
    { eventId: 2, at: start + 9000, type: 'reset', baseRunId: second, reason: '' },
    { eventId: 3, at: start + 9001, ...signal(approve) },
    { eventId: 4, at: start + 9002, ...task },
    { eventId: 5, at: start + 9003, ...verdict(approve) },
  ];
  const facts = decodeTrail([
    execution(root, [started('mine'), freeze('refund'), task, continued(second)]),
    { workflowId, runId: second, events: cut, cutAfter: 1 },
    { workflowId, runId: third, events: after, copied: 1 },
  ]);
  assert.deepEqual(told(facts).slice(2), [
    'run_continued',
    'approval_rejected cut',
    'run_reset',
    'approval_granted',
  ]);
});

test('P6: where the earlier executions are not kept any more, what was carried tells of the open gates', () => {
  const [waiting, approve] = [
    decisionAt('refund', 'd-1', { decision: 'comment' }),
    decisionAt('refund', 'd-2'),
  ];
  const late = decisionAt('done', 'd-3');
  const pending: GateView = { key: keyOf('refund'), position: 'refund', state: 'pending' };
  const settledView: GateView = { ...pending, key: keyOf('done'), position: 'done', state: 'rejected' };
  const gates = [
    { view: settledView },
    { view: pending, name: 'refund', frozen: caseOf('refund'), queue: [JSON.stringify(waiting)] },
  ];
  const input = { round: 7, carried: { v: 1, kind: 'carried', root, runId: root, gates } } as unknown as Json;
  const begin: Body = { ...next(root), input } as Body;
  const facts = decodeTrail([
    execution(second, [begin, task, verdict(waiting), signal(late), signal(approve), task, verdict(approve)]),
  ]);
  assert.deepEqual(told(facts), [
    'run_started', 'approval_requested', 'approval_commented', 'decision_refused already_resolved d-3', 'approval_granted',
  ]); // prettier-ignore
  // of another run, or of none: nothing is made up
  const foreign = {
    ...(input as object),
    carried: { v: 1, kind: 'carried', root: second, gates },
  } as unknown as Json;
  assert.deepEqual(told(decodeTrail([execution(second, [{ ...begin, input: foreign } as Body, task])])), [
    'run_started',
  ]);
});

const by = { id: 'ann', verified: false };

function view(index: number, more: Partial<GateView> = {}): GateView {
  const position = `pay#${index + 2}`;
  const winner = decisionAt(position, `d-${index}`);
  const settlement = { state: 'approved' as const, by, decisionId: winner.decisionId, at: start };
  return { key: keyOf(position), position, state: 'approved', settlement, winner, ...more };
}

test('the newest 200 settled gates are carried, in their order, and every open one', () => {
  const open = view(0, { state: 'pending' });
  const gates = [open, ...Array.from({ length: 250 }, (_, index) => view(index + 1))];
  const kept = gatesToCarry(gates).map(({ gate }) => gate);
  const budget = 160 * 1024;
  const length = JSON.stringify(view(250)).length;
  const fitting = Math.min(200, Math.floor(budget / length));
  assert.equal(fitting, 200);
  assert.deepEqual(kept, [open, ...gates.slice(-fitting)]);
  assert.deepEqual(gatesToCarry(kept).map(({ gate }) => gate), kept, 'again and again the same'); // prettier-ignore
});

test('a long winner is not carried, a long list of comments only in part, and what is carried is stable', () => {
  const long = decisionAt('pay#2', 'd-0', { decision: 'edit', arguments: { note: 'x'.repeat(9_000) } });
  const [edited] = gatesToCarry([view(0, { winner: long })]);
  assert.equal(edited?.view.winner, undefined);
  assert.equal(edited?.view.settlement?.decisionId, 'd-0');
  const comments = Array.from({ length: 50 }, (_, index) =>
    decisionAt('pay#2', `c-${index}`, { decision: 'comment', reason: 'x'.repeat(1_000) }),
  );
  const [asked] = gatesToCarry([view(0, { state: 'pending', accepted: [...comments.slice(0, 49), long, ...comments.slice(49)] })]); // prettier-ignore
  const { accepted = [] } = asked?.view ?? {};
  assert.ok(accepted.length > 5 && accepted.length < 20, `${accepted.length} are carried`);
  assert.deepEqual(accepted, comments.slice(-accepted.length));
});

test('P4: only what the execution before carried, of the same run, may be taken', () => {
  const carried = { v: 1, kind: 'carried', root, runId: second };
  assert.equal(carriedProblem(carried, { root, continuedFrom: second }), undefined);
  assert.match(carriedProblem(carried, { root: second, continuedFrom: second }) ?? '', /of another run/);
  assert.match(carriedProblem(carried, { root, continuedFrom: third }) ?? '', /was carried by/);
  assert.match(carriedProblem(carried, { root, continuedFrom: undefined }) ?? '', /was carried by/);
  for (const other of [null, 1, 'x', {}, { ...carried, v: 2 }, { ...carried, kind: 'case' }]) {
    assert.match(carriedProblem(other, { root, continuedFrom: second }) ?? '', /not made by carry/);
  }
});

test('P8: what messages can add to what is carried is bounded in bytes, of any text', () => {
  const wide = (count: number) => '字'.repeat(count);
  const bytes = (value: unknown) => Buffer.byteLength(JSON.stringify(value));
  const gates = Array.from({ length: 250 }, (_, index) => {
    const winner = decisionAt(`pay#${index + 2}`, wide(128), { reason: wide(1_300) });
    const comments = Array.from({ length: 20 }, (__, one) =>
      decisionAt('pay#2', `c-${one}`, { decision: 'comment', reason: wide(1_300) }),
    );
    return view(index, { winner, accepted: comments });
  });
  const settled = gatesToCarry(gates).map(({ view: kept }) => kept);
  assert.ok(settled.length > 0);
  assert.ok(bytes(settled) <= 160 * 1024 + 1, `${bytes(settled)} bytes of settled gates`);
  const [asked] = gatesToCarry([{ ...view(0), ...gates[0], state: 'pending' }]);
  assert.ok(bytes(asked?.view.accepted) <= 16 * 1024 + 1);
  const long = decisionAt('pay#2', 'd-0', { decision: 'edit', arguments: { note: wide(3_000) } });
  assert.equal(gatesToCarry([view(0, { winner: long })])[0]?.view.winner, undefined);
  const receipts = Array.from({ length: 1_000 }, (_, index) => ({
    decisionId: `${index}${wide(120)}`,
    decision: 'reject' as const,
    verdict: 'refused' as const,
    code: 'already_resolved' as const,
    message: `already approved by ${wide(256)}`,
  }));
  const kept = receiptsToCarry(receipts);
  assert.ok(bytes(kept) <= 384 * 1024 + 1, `${bytes(kept)} bytes of receipts`);
  assert.deepEqual(kept, receipts.slice(-kept.length), 'the newest');
  assert.ok(kept.length > 200);
});
