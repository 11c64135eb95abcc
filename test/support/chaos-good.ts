// Evidence of chaos runs as good ones leave it: every legal end of a gate, and what lies between. A test that wants
// a bad one changes one thing in it.
import type { Decision } from '../../src/core/decision.ts';
import type { CaseRecord } from '../../src/core/case.ts';
import { callHash, decisionIdOf, effectKey, hashOf } from '../chaos/check/independent.ts';
import type { Call, Evidence } from '../chaos/evidence.ts';
import {
  annId,
  bobId,
  byAnn,
  byBob,
  call,
  evidenceOf,
  ledgerLine,
  lost,
  refund,
  runOf,
  seen,
  won,
} from './chaos-evidence.ts';
import {
  approves,
  asks,
  caseOf,
  completed,
  decisionOn,
  done,
  epoch,
  failed,
  history,
  memo,
  performs,
  place,
  resetOf,
  signal,
  task,
  trailOf,
  verdictOn,
  type EventBody,
} from './chaos-history.ts';

const started = (): Call => call('start', 'eve', [0, 40], { status: 201, body: { id: place.workflowId } });
const finished = (scheduled: number, frozen: CaseRecord): EventBody[] => [
  done(scheduled, frozen),
  task,
  completed({ status: 'completed' }),
];

/** Approved by one, rejected too late by another, looked at before, between and after, done once. */
export function approved(): Evidence {
  const bodies = [
    ...[task, ...asks(refund), signal(byAnn), signal(byBob), task, ...approves(refund, byAnn)],
    ...[performs(refund), ...finished(10, refund)],
  ];
  return evidenceOf({
    runs: [runOf(history(place, bodies), 'completed')],
    calls: [
      started(),
      call('read', 'cat', [350, 380], seen('pending')),
      call('approve', 'ann', [390, 900], won(annId, 'approved'), { shouldSucceed: true }),
      call('reject', 'bob', [450, 950], lost(annId, 'approved')),
      call('approve', 'dan', [390, 3_000], undefined),
      call('read', 'cat', [960, 990], seen('approved', annId)),
    ],
    ledger: [ledgerLine(refund), ledgerLine(refund, { outcome: 'replayed' })],
  });
}

/** Nobody's yes: rejected, withdrawn and expired runs, and one that was cancelled. */
export function refused(): Evidence {
  const ends = (['reject', 'withdraw'] as const).map((kind, index) => {
    const of = { workflowId: `refused-${kind}`, root: `019d2b1a-7f3e-7c11-9d55-00000000000${index}` };
    const frozen = caseOf('refund', {}, of);
    const id = decisionIdOf('ann', frozen.key, 'k-ann');
    const decision = decisionOn(frozen, id, { decision: kind });
    const state = kind === 'reject' ? 'rejected' : 'withdrawn';
    const status = kind === 'reject' ? 'rejected' : 'cancelled';
    const bodies = [
      task,
      ...asks(frozen),
      signal(decision),
      task,
      verdictOn(frozen, decision),
      memo('refund', state),
    ];
    const raw = history(of, [...bodies, completed({ status })]);
    const answered = call(kind, 'ann', [350, 800], won(id, state), { run: of.workflowId, key: frozen.key });
    return { run: runOf(raw, status, { of }), answered };
  });
  const clocked = (['expired', 'cancelled'] as const).map((state, index) => {
    const of = { workflowId: `ended-${state}`, root: `019d2b1a-7f3e-7c11-9d55-00000000001${index}` };
    const ttl = { policy: { ttlMs: 200 }, expiresAt: epoch + 200 };
    const frozen = caseOf('refund', state === 'expired' ? ttl : {}, of);
    const end: EventBody =
      state === 'expired' ? completed({ status: 'rejected' }) : { workflowExecutionCanceled: {} };
    const asked = state === 'expired' ? [] : [{ workflowExecutionCancelRequested: {} }];
    const raw = history(of, [task, ...asks(frozen), ...asked, task, memo('refund', state), end]);
    const where = { run: of.workflowId, key: frozen.key };
    const answered =
      state === 'expired'
        ? call('approve', 'ann', [900, 950], { status: 404, body: { code: 'approval_not_found' } }, where)
        : call('cancel', 'ann', [350, 380], { status: 202, body: {} }, where);
    return { run: runOf(raw, state === 'expired' ? 'rejected' : 'cancelled', { of }), answered };
  });
  const all = [...ends, ...clocked];
  return evidenceOf({ runs: all.map(({ run }) => run), calls: all.map(({ answered }) => answered) });
}

/** Amended, commented, then approved with other arguments: those run. */
export function edited(): Evidence {
  const amended = caseOf('refund', { arguments: { order: 'run-1/refund', amount: '2.00' } });
  const final = caseOf('refund', { arguments: { order: 'run-1/refund', amount: '3.00' } });
  const amend = decisionOn(refund, decisionIdOf('eve', refund.key, 'k-eve'), {
    ...{ decision: 'amend', by: { id: 'eve' }, arguments: amended.arguments ?? null },
  });
  const comment = decisionOn(amended, decisionIdOf('cat', refund.key, 'k-cat'), {
    decision: 'comment',
    by: { id: 'cat' },
  });
  const edit = decisionOn(amended, annId, { decision: 'edit', arguments: final.arguments ?? null });
  const { payloadHash } = amended;
  const bodies = [
    ...[task, ...asks(refund), signal(amend), signal(comment), signal(edit), task],
    ...[verdictOn(refund, amend, { case: amended }), memo('refund', 'pending'), verdictOn(amended, comment)],
    ...[...approves(amended, edit, final), performs(final), ...finished(13, final)],
  ];
  return evidenceOf({
    runs: [runOf(history(place, bodies), 'completed')],
    calls: [
      started(),
      call('amend', 'eve', [340, 900], won(amend.decisionId, 'pending', { payloadHash }), {}),
      call('comment', 'cat', [450, 1_200], won(comment.decisionId, 'approved'), { payloadHash }),
      call('edit', 'ann', [550, 1_200], won(annId, 'approved'), { payloadHash, shouldSucceed: true }),
    ],
    ledger: [ledgerLine(final)],
  });
}

/** A target without keys, whose answer was lost: a question, and at most one effect. */
export function inDoubt(): Evidence {
  const plain = caseOf('refund', { tool: 'pay.none' });
  const key = effectKey(place, 'refund');
  const doubt = {
    idempotencyKey: key,
    why: 'lost',
    retryPosition: 'refund#retry-1',
    effectHash: plain.payloadHash,
  };
  const question = caseOf('refund/in-doubt', {
    ...{ phase: 'in-doubt', tool: 'pay.none', arguments: plain.arguments ?? null, doubt },
    payloadHash: hashOf({ tool: 'pay.none', arguments: plain.arguments, idempotencyKey: key }),
  });
  const decision = decisionOn(plain, annId);
  const bodies = [
    ...[task, ...asks(plain), signal(decision), task, ...approves(plain, decision)],
    ...[performs(plain), failed(9, 'TimeoutError'), task, ...asks(question)],
  ];
  return evidenceOf({
    runs: [runOf(history(place, bodies), 'in_doubt', { pending: [question.key] })],
    calls: [
      started(),
      call('approve', 'ann', [350, 900], won(annId, 'approved'), { payloadHash: plain.payloadHash }),
    ],
    ledger: [ledgerLine(plain, { key: null })],
  });
}

/** The effect was refused by a check of its own: it surely did not happen. */
export function misused(): Evidence {
  const other = { order: 'run-1/refund', amount: '999.00' };
  const bodies = [
    ...[task, ...asks(refund), signal(byAnn), task, ...approves(refund, byAnn)],
    ...[performs(refund, { arguments: other }), failed(9, 'payload_changed'), task],
    {
      workflowExecutionFailed: {
        failure: { message: 'changed', applicationFailureInfo: { type: 'payload_changed' } },
      },
    },
  ];
  return evidenceOf({
    runs: [runOf(history(place, bodies), 'failed', { kind: 'own' })],
    calls: [call('approve', 'ann', [350, 900], won(annId, 'approved'))],
  });
}

/** Approved and done, then reset to before the gate: approved again by another, and the target did it once. */
export function resetRun(): Evidence {
  const again = decisionOn(refund, bobId, { by: { id: 'bob' } });
  const before = [task, ...asks(refund), signal(byAnn), task, ...approves(refund, byAnn)];
  const base = history(place, [...before, performs(refund), ...finished(9, refund)]);
  const newRunId = '119d2b1a-7f3e-7c11-9d55-046acc729732';
  const at = epoch + 10_000;
  const anew = [
    ...asks(refund),
    signal(again),
    task,
    ...approves(refund, again),
    performs(refund),
    ...finished(9, refund),
  ];
  const raw = resetOf(base, place.root, 2, newRunId, anew, at);
  const trail = trailOf(place, [
    { runId: place.root, history: base, cutAfter: 1 },
    { runId: newRunId, history: raw, copied: 1 },
  ]);
  return evidenceOf({
    runs: [{ ...runOf(raw, 'completed'), histories: [base, raw], trail }],
    calls: [
      call('approve', 'ann', [350, 900], won(annId, 'approved')),
      call('read', 'cat', [1_000, 1_100], seen('approved', annId)),
      call('read', 'cat', [9_900, 10_100], seen('pending')),
      call('read', 'cat', [11_100, 11_150], seen('approved', bobId)),
      call('approve', 'bob', [10_350, 11_000], won(bobId, 'approved')),
    ],
    ledger: [ledgerLine(refund), ledgerLine(refund, { outcome: 'replayed' })],
    lastFaultAt: at,
    settledAt: at + 2_000,
  });
}

/** A gate in a child run: its effect has the parent's root. */
export function childRun(): Evidence {
  const childRoot = '219d2b1a-7f3e-7c11-9d55-046acc729733';
  const of = { workflowId: `${place.workflowId}/sub`, root: place.root, prefix: 'sub' };
  const frozen = caseOf('pay', {}, of);
  const id = decisionIdOf('ann', frozen.key, 'k-ann');
  const decision = decisionOn(frozen, id);
  const bodies = [
    ...[task, ...asks(frozen), signal(decision), task, ...approves(frozen, decision)],
    ...[performs(frozen, {}, of), done(9, frozen, of), task, completed({})],
  ];
  const raw = history(of, bodies, {
    ...{ runId: childRoot, workflowType: 'oneGated', parent: place.workflowId },
    handed: { root: place.root, prefix: 'sub' },
  });
  const child = runOf(raw, 'completed', { of, kind: 'child' });
  const parent = history(place, [task, completed({})], { workflowType: 'parentOf' });
  return evidenceOf({
    runs: [runOf(parent, 'completed', { kind: 'own' }), child],
    calls: [
      call('approve', 'ann', [350, 900], won(id, 'approved'), {
        ...{ run: of.workflowId, key: frozen.key, payloadHash: frozen.payloadHash },
      }),
    ],
    ledger: [ledgerLine(frozen, {}, of)],
  });
}

/** A parent that waits as its child does, and a child that its parent has not come to. */
export function waitingChild(): Evidence {
  const of = { workflowId: `${place.workflowId}/sub`, root: place.root, prefix: 'sub' };
  const frozen = caseOf('pay', {}, of);
  const raw = history(of, [task, ...asks(frozen)], {
    ...{ runId: '219d2b1a-7f3e-7c11-9d55-046acc729733', workflowType: 'oneGated', parent: place.workflowId },
    handed: { root: place.root, prefix: 'sub' },
  });
  const child = runOf(raw, 'awaiting_approval', { of, kind: 'child', pending: [frozen.key] });
  const parent = runOf(history(place, [task], { workflowType: 'parentOf' }), 'running', { kind: 'own' });
  const later = { ...child, run: `${place.workflowId}/later`, histories: [], trail: [], view: undefined };
  return evidenceOf({ runs: [parent, child, { ...later, status: 'unknown' }] });
}

/** Two decisions wait while the run continues as new: the first is judged in the next execution, and refused. */
export function carried(): Evidence {
  const stale: Decision = { ...byBob, decision: 'approve', payloadHash: callHash('pay.keyed', {}) };
  const nextId = '319d2b1a-7f3e-7c11-9d55-046acc729732';
  const first = history(
    place,
    [
      task,
      ...asks(refund),
      signal(stale),
      signal(byAnn),
      task,
      { workflowExecutionContinuedAsNew: { newExecutionRunId: nextId } },
    ],
    { workflowType: 'carriedGates' },
  );
  const rest = [
    ...[
      task,
      memo('refund', 'pending'),
      verdictOn(refund, stale, { verdict: 'refused', code: 'payload_changed' }),
    ],
    ...[...approves(refund, byAnn), performs(refund), ...finished(7, refund)],
  ];
  const second = history(place, rest, {
    ...{ runId: nextId, firstRunId: place.root, continues: place.root, workflowType: 'carriedGates' },
    at: epoch + 1_000,
  });
  const trail = trailOf(place, [
    { runId: place.root, history: first },
    { runId: nextId, history: second },
  ]);
  const recorded: Call['answer'] = {
    status: 202,
    body: { decisionId: annId, verdict: 'pending', state: 'pending' },
  };
  return evidenceOf({
    runs: [{ ...runOf(second, 'completed', { kind: 'carried' }), histories: [first, second], trail }],
    calls: [
      call('approve', 'ann', [390, 700], recorded, {
        final: won(annId, 'approved')!,
        finalEnded: epoch + 2_500,
      }),
      call(
        'approve',
        'bob',
        [290, 1_600],
        { status: 412, body: { code: 'payload_changed' } },
        { payloadHash: stale.payloadHash! },
      ),
    ],
    ledger: [ledgerLine(refund)],
  });
}

/** The run of `POST /approvals`: its gate is open from the first event. */
export function requested(): Evidence {
  const { key: _key, root: _root, ...asked } = refund;
  const bodies = [
    ...[task, signal(byAnn), task, ...approves(refund, byAnn), performs(refund), ...finished(7, refund)],
  ];
  const raw = history(place, bodies, { workflowType: 'requestApproval', input: { v: 1, case: asked } });
  return evidenceOf({
    runs: [runOf(raw, 'completed', { kind: 'requestApproval' })],
    calls: [call('approve', 'ann', [150, 900], won(annId, 'approved'))],
    ledger: [ledgerLine(refund)],
  });
}

export const goodEvidence = {
  approved,
  refused,
  edited,
  inDoubt,
  misused,
  resetRun,
  childRun,
  waitingChild,
  carried,
  requested,
};
