// P6: the trail is decoded from events alone, in the order in which the run saw them; what no event says
// (early, late, overtaken and unchecked decisions) it derives by the run's own rules.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { HistoryEvent } from '../src/core/history-event.ts';
import type { Json } from '../src/core/json.ts';
import { decodeTrail } from '../src/core/trail.ts';
import type { TrailFact } from '../src/core/trail-fact.ts';
import {
  caseOf, decisionAt, done, events, freeze, keyOf, local, payloadHash, root, scheduled, settled, signal, start, started,
  task, trailOf, verdict, workflowId, type Body,
} from './support/trail-events.ts'; // prettier-ignore

const typesOf = (facts: readonly TrailFact[]): string[] => facts.map(({ type }) => type);

/** `code:decisionId` of each refusal, in order. */
function refusals(facts: readonly TrailFact[]): string[] {
  return facts.flatMap((fact) =>
    fact.type === 'decision_refused' ? [`${fact.code}:${fact.decision?.decisionId ?? ''}`] : [],
  );
}

test('P6: an approved run reads from its start to its end, each fact at its event', () => {
  const approve = decisionAt('refund', 'd-1', { reason: 'Nein – 1 000 €\u202e' });
  const facts = trailOf([
    started(), task, freeze('refund'), signal(approve), task, verdict(approve), scheduled,
    { type: 'activity_started', scheduledEventId: 7, attempt: 3 },
    { type: 'activity_completed', scheduledEventId: 7, result: done as unknown as Json }, task,
    { type: 'run_completed', result: { status: 'completed', output: 1 } },
  ]); // prettier-ignore
  assert.deepEqual(typesOf(facts), [
    'run_started', 'step_started', 'approval_requested', 'approval_granted', 'effect_started', 'tool_result',
    'step_completed', 'run_finished',
  ]); // prettier-ignore
  assert.deepEqual(
    facts.map(({ seq }) => seq),
    [1, 2, 3, 4, 5, 6, 7, 8],
  );
  assert.deepEqual(
    facts.map(({ eventId }) => eventId),
    [1, 3, 3, 6, 7, 9, 9, 11],
  );
  const [, , requested, granted, , result] = facts;
  const place = { position: 'refund', temporalRunId: root };
  assert.deepEqual(requested, {
    ...place, seq: 3, at: new Date(start + 2000).toISOString(), eventId: 3, type: 'approval_requested', key: keyOf('refund'),
    phase: 'before', title: 'Refund', tool: 'payments.refund', arguments: { amount: '1.00' }, payloadHash,
    policy: { ttlMs: 60_000 }, requestedAt: new Date(start).toISOString(), expiresAt: new Date(start + 60_000).toISOString(),
  }); // prettier-ignore
  const by = { id: 'ann', verified: true };
  assert.deepEqual(granted, {
    ...place, seq: 4, at: new Date(start + 5000).toISOString(), eventId: 6, type: 'approval_granted', key: keyOf('refund'),
    decision: approve, by, identity: 'api@host',
  }); // prettier-ignore
  assert.ok(result?.type === 'tool_result');
  assert.deepEqual(
    [result.attempts, result.idempotencyKey, result.output],
    [3, `${root}:refund`, { refund: 're_1' }],
  );
});

test('P2: a decision that the history has before its gate opened is not_open, wherever it stands in the task', () => {
  const early = decisionAt('refund', 'early');
  // own types: the marker comes after the signals of its task
  assert.deepEqual(refusals(trailOf([started(), signal(early), task, freeze('refund')])), ['not_open:early']);
  // other types: the run sees a task's signals before its activities' results, in either order
  const own = [
    started('mine'),
    { type: 'activity_scheduled', activityType: 'freezeCase', input: null },
    task,
  ] as Body[];
  const frozen: Body = {
    type: 'activity_completed',
    scheduledEventId: 2,
    result: caseOf('refund') as unknown as Json,
  };
  const reject = decisionAt('refund', 'late', { decision: 'reject' });
  for (const order of [
    [frozen, signal(early)],
    [signal(early), frozen],
  ]) {
    const facts = trailOf([...own, ...order, task, signal(reject), task, verdict(reject)]);
    assert.deepEqual(typesOf(facts), [
      'run_started',
      'decision_refused',
      'approval_requested',
      'approval_rejected',
    ]);
    assert.deepEqual(refusals(facts), ['not_open:early']);
  }
});

test('P2: what waits behind the winner is already_resolved; the winner sent again is no new fact', () => {
  const [first, second] = [decisionAt('refund', 'd-1'), decisionAt('refund', 'd-2', { decision: 'reject' })];
  const facts = trailOf([
    started(), freeze('refund'), task, signal(first), signal(second), signal(first), task, verdict(first),
    signal(second), signal({ ...first, via: 'cli', proof: 'a.b.c' }), task,
  ]); // prettier-ignore
  assert.equal(typesOf(facts).filter((type) => type === 'approval_granted').length, 1);
  assert.deepEqual(refusals(facts), ['already_resolved:d-2', 'already_resolved:d-2']);
  const [refused] = facts.filter((fact) => fact.type === 'decision_refused');
  assert.match(refused?.message ?? '', /already approved by ann/);
  assert.deepEqual(refused?.decision, second);
});

test('P6: what the winner overtook stands at its own signal, when that came after the verdict of its task', () => {
  const [first, second] = [decisionAt('refund', 'd-1'), decisionAt('refund', 'd-2', { decision: 'reject' })];
  const judged = verdict(first) as Extract<Body, { type: 'local_activity' }>;
  const facts = trailOf([
    started('mine'), freeze('refund'), task, signal(first), task,
    { type: 'activity_scheduled', activityType: 'admitDecision', input: null },
    { type: 'activity_completed', scheduledEventId: 6, result: judged.result ?? null },
    signal(second), task,
  ]); // prettier-ignore
  const [refused] = facts.filter((fact) => fact.type === 'decision_refused');
  assert.deepEqual([refused?.code, refused?.eventId], ['already_resolved', 8]);
});

test('P6: a refused decision is recorded whole; the gate stays open for the next one', () => {
  const [stale, good] = [
    decisionAt('refund', 'd-1', { payloadHash: `sha256:${'b'.repeat(64)}` }),
    decisionAt('refund', 'd-2'),
  ];
  const facts = trailOf([
    started(), freeze('refund'), task, signal(stale), task, verdict(stale, { verdict: 'refused', code: 'payload_changed', message: 'm' }),
    signal(good), task, verdict(good),
  ]); // prettier-ignore
  assert.deepEqual(typesOf(facts).slice(3), ['decision_refused', 'approval_granted']);
  assert.ok(facts[3]?.type === 'decision_refused');
  assert.deepEqual(
    [facts[3].code, facts[3].decision, facts[3].by],
    ['payload_changed', stale, { id: 'ann', verified: true }],
  );
});

test('P6: a decision whose check failed is told by the failure, or by being passed over', () => {
  const [first, second, third] = ['d-1', 'd-2', 'd-3'].map((id) => decisionAt('refund', id));
  assert.ok(first && second && third);
  const failure = {
    type: 'check_failed',
    message: 'no key set',
    details: [{ key: first.key, decisionId: 'd-1' }],
  };
  const facts = trailOf([
    started(), freeze('refund'), task, signal(first), signal(second), signal(third), task,
    { type: 'local_activity', activityType: 'admitDecision', failure },
    { type: 'local_activity', activityType: 'admitDecision', failure: { ...failure, type: 'timeout', details: [] } },
    verdict(third),
  ]); // prettier-ignore
  assert.deepEqual(refusals(facts), ['check_failed:d-1', 'check_failed:d-2']);
  assert.deepEqual(
    facts.filter(({ type }) => type === 'decision_refused').map(({ eventId }) => eventId),
    [8, 10],
  );
  const granted = facts.at(-1);
  assert.ok(granted?.type === 'approval_granted');
  assert.equal(granted.decision.decisionId, 'd-3');
});

test('P6: a comment that was sent twice before it was judged is one fact, whatever is judged after it', () => {
  const comment = decisionAt('refund', 'd-1', { decision: 'comment' });
  const approve = decisionAt('refund', 'd-2');
  const before = [started(), freeze('refund'), task, signal(comment), signal(comment), signal(approve), task, verdict(comment)]; // prettier-ignore
  const facts = trailOf([...before, verdict(approve)]);
  assert.deepEqual(typesOf(facts).slice(3), ['approval_commented', 'approval_granted']);
  const failure = { type: 'timeout', message: 'm', details: [] };
  const checked: Body = {
    type: 'local_activity',
    activityType: 'admitDecision',
    failure,
    summary: keyOf('refund'),
  };
  assert.deepEqual(refusals(trailOf([...before, checked])), ['check_failed:d-2']);
});

test('P8: signals that are no decision, or not ours, are facts and nothing more', () => {
  const good = decisionAt('refund', 'd-1');
  const foreignRun = decisionAt('refund', 'd-2', { root: root.replace('01', '02') });
  const facts = trailOf([
    started(), freeze('refund'), task, signal(null), signal({ ...good, arguments: {} }), signal({ ...good, reason: 'x'.repeat(5000) }),
    { type: 'signaled', name: 'decide', input: [], identity: 'tctl' }, signal(foreignRun), signal({ ...good, key: 'no-key' }),
    signal(good, 'decided'), signal(good), task, verdict(good),
  ]); // prettier-ignore
  assert.deepEqual(refusals(facts), [
    'malformed:', 'malformed:', 'too_large:', 'malformed:', 'unknown_key:d-2', 'unknown_key:d-1',
  ]); // prettier-ignore
  assert.deepEqual(
    facts.filter((fact) => fact.type === 'signal_ignored').map(({ name }) => name),
    ['decided'],
  );
  assert.equal(facts.at(-1)?.type, 'approval_granted');
});

test('P11: expiry and cancellation are the clock and the run, by nobody; a later decision is refused', () => {
  const late = decisionAt('refund', 'late');
  for (const [state, type, code] of [
    ['expired', 'approval_expired', 'expired'],
    ['cancelled', 'approval_cancelled', 'already_resolved'],
  ] as const) {
    const facts = trailOf([
      started(),
      freeze('refund'),
      task,
      settled('refund', state),
      task,
      signal(late),
      task,
    ]);
    assert.deepEqual(typesOf(facts).slice(3), [type, 'decision_refused']);
    const { seq: _seq, at: _at, ...end } = facts[3] ?? {};
    assert.deepEqual(end, {
      temporalRunId: root,
      eventId: 4,
      position: 'refund',
      type,
      key: keyOf('refund'),
    });
    assert.deepEqual(refusals(facts), [`${code}:late`]);
  }
});

test('P6: gates side by side keep their own decisions', () => {
  const [a, b] = [decisionAt('pay/a', 'd-a'), decisionAt('pay/b', 'd-b', { decision: 'reject' })];
  const facts = trailOf([
    started('mine'), freeze('pay/a'), freeze('pay/b'), task, signal(b), signal(a), task,
    verdict(b, { position: 'pay/b' }), verdict(a, { position: 'pay/a' }),
  ]); // prettier-ignore
  assert.deepEqual(facts.slice(-2).map(({ type, position }) => [type, position]), [
    ['approval_rejected', 'pay/b'], ['approval_granted', 'pay/a'],
  ]); // prettier-ignore
});

test('P5: a clear refusal is effect_failed, every other end is effect_in_doubt', () => {
  const ends: [string, string][] = [
    ['effect_failed', 'effect_failed'], ['grant_invalid', 'effect_failed'], ['payload_changed', 'effect_failed'],
    ['approval_required', 'effect_failed'], ['effect_in_doubt', 'effect_in_doubt'], ['timeout', 'effect_in_doubt'],
    ['Error', 'effect_in_doubt'], ['unknown_tool', 'effect_in_doubt'], ['', 'effect_in_doubt'],
  ]; // prettier-ignore
  for (const [code, type] of ends) {
    const failure = { type: code, message: 'm', details: [] };
    const facts = trailOf([started(), scheduled, { type: 'activity_failed', scheduledEventId: 2, failure }]);
    assert.deepEqual(typesOf(facts), ['run_started', 'effect_started', type], code);
  }
});

test('P6: each way to end a run is its own fact', () => {
  const failure = { type: 'effect_in_doubt', message: 'm', details: [] };
  const ends: [Body, Record<string, unknown>][] = [
    [{ type: 'run_completed', result: { status: 'rejected', step: 'refund' } }, { type: 'run_finished', status: 'rejected' }],
    [{ type: 'run_failed', failure }, { type: 'run_finished', status: 'failed', error: { code: 'effect_in_doubt', message: 'm' } }],
    [{ type: 'run_cancelled' }, { type: 'run_cancelled' }],
    [{ type: 'run_terminated', reason: 'by hand' }, { type: 'run_terminated', reason: 'by hand' }],
    [{ type: 'run_terminated', reason: '' }, { type: 'run_terminated' }],
    [{ type: 'run_continued' }, { type: 'run_continued' }],
  ]; // prettier-ignore
  for (const [body, expected] of ends) {
    const {
      seq: _seq,
      at: _at,
      temporalRunId: _run,
      eventId: _event,
      ...fact
    } = trailOf([started(), body]).at(-1) ?? {};
    assert.deepEqual(fact, expected);
  }
});

test('P6: after a reset the cut facts stay, superseded; copied events are told once; seq goes on', () => {
  const approve = decisionAt('refund', 'd-1');
  const before = events([
    started(),
    task,
    freeze('refund'),
    signal(approve),
    task,
    verdict(approve),
    scheduled,
  ]);
  const after: HistoryEvent[] = [
    ...before.slice(0, 3),
    { eventId: 4, at: start + 9000, type: 'reset', baseRunId: root, reason: 'bad deploy' },
    { eventId: 5, at: start + 9001, ...signal(approve) },
    { eventId: 6, at: start + 9002, ...task },
    { eventId: 7, at: start + 9003, ...verdict(approve) },
  ];
  const facts = decodeTrail([
    { workflowId, runId: root, events: before, cutAfter: 3 },
    { workflowId, runId: 'second', events: after, copied: 3 },
  ]);
  assert.deepEqual(
    facts.map(({ seq }) => seq),
    facts.map((_fact, index) => index + 1),
  );
  const told = facts.map(
    ({ type, superseded, temporalRunId }) => `${type} ${superseded === true ? 'cut' : temporalRunId}`,
  );
  assert.deepEqual(told, [
    `run_started ${root}`, `step_started ${root}`, `approval_requested ${root}`, 'approval_granted cut', 'effect_started cut',
    'run_reset second', 'approval_granted second',
  ]); // prettier-ignore
});

test('P6: a continued run keeps its root, and starts once', () => {
  const approve = decisionAt('refund', 'd-1');
  const next: Body = {
    type: 'run_started',
    workflowType: 'mine',
    firstRunId: root,
    continuedRunId: root,
    input: null,
  };
  const facts = decodeTrail([
    { workflowId, runId: root, events: events([started('mine'), task, { type: 'run_continued' }]) },
    {
      workflowId,
      runId: 'second',
      events: events([next, freeze('refund'), task, signal(approve), task, verdict(approve)]),
    },
  ]);
  assert.deepEqual(typesOf(facts), [
    'run_started',
    'run_continued',
    'approval_requested',
    'approval_granted',
  ]);
  assert.deepEqual(facts.map(({ seq, temporalRunId }) => [seq, temporalRunId]), [
    [1, root], [2, root], [3, 'second'], [4, 'second'],
  ]); // prettier-ignore
});

test('P6: a start that says nothing of itself is told by what Temporal knows of it', () => {
  const triggerOf = (more: object, input: Json = { v: 1, spec: {}, input: {} }, workflowType = 'runSpec') => {
    const [fact] = trailOf([{ type: 'run_started', workflowType, firstRunId: root, input, ...more }]);
    return fact?.type === 'run_started' ? fact.trigger : assert.fail();
  };
  const plain = { kind: 'temporal', identity: 'orders@shop' };
  assert.deepEqual(triggerOf({ identity: 'orders@shop' }), plain);
  assert.deepEqual(triggerOf({ identity: 'orders@shop' }, null, 'mine'), plain);
  assert.deepEqual(triggerOf({}), { kind: 'temporal' });
  assert.deepEqual(triggerOf({ identity: 'worker', parentId: 'month-end' }), {
    kind: 'run',
    id: 'month-end',
  });
  const own = { kind: 'nightly', id: '7' };
  assert.deepEqual(triggerOf({ identity: 'x' }, { v: 1, spec: {}, input: {}, trigger: own }), own);
  for (const trigger of [null, 'hook', 7, {}, { kind: 7 }, []]) {
    assert.deepEqual(triggerOf({ identity: 'orders@shop' }, { v: 1, input: {}, trigger }), plain);
  }
});

test("P6: results of a user's own activities that only look like ours are not read", () => {
  const looksLike = [
    caseOf('refund'),
    { kind: 'case' },
    { kind: 'verdict' },
    { kind: 'prepared' },
    null,
    7,
    'case',
  ];
  const bodies = looksLike.flatMap((result): Body[] => [
    local('theirs', result), local('freezeCase', { v: 99, kind: 'case' }), { type: 'activity_scheduled', activityType: 'theirs', input: null },
  ]); // prettier-ignore
  assert.deepEqual(typesOf(trailOf([started('mine'), ...bodies, task])), ['run_started']);
});

test('P6: whatever is in a history, it decodes, densely numbered', () => {
  const approve = decisionAt('refund', 'd-1');
  const odd: Body[] = [
    started(), task, signal(approve), signal(1), freeze('refund'), verdict(approve), settled('refund', 'expired'), scheduled,
    { type: 'activity_scheduled', activityType: 'perform', input: null }, { type: 'activity_scheduled', activityType: 'perform', input: {} },
    { type: 'activity_completed', scheduledEventId: 3, result: null }, { type: 'activity_completed', scheduledEventId: 3, result: {} },
    { type: 'activity_failed', scheduledEventId: 3, failure: { type: '', message: '', details: [null] } },
    { type: 'local_activity', activityType: 'admitDecision', failure: { type: '', message: '', details: [1] } },
    { type: 'memo_changed', fields: { 'approval/refund': null, other: 1 } }, { type: 'run_completed', result: null },
    local('freezeCase', null), local('freezeCase', { v: 1, kind: 'problem' }), { type: 'run_cancelled' },
  ]; // prettier-ignore
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...odd), { maxLength: 30 }), (bodies) => {
      const facts = trailOf(bodies);
      assert.deepEqual(
        facts.map(({ seq }) => seq),
        facts.map((_fact, index) => index + 1),
      );
      const ends = facts.filter(({ type }) => /^approval_(granted|expired)$/.test(type));
      const opened = facts.filter(({ type }) => type === 'approval_requested');
      assert.ok(ends.length <= opened.length, 'a gate ended more than once');
    }),
    { numRuns: 500 },
  );
});
