// Handmade histories for the trail decoder: events as src/history.ts gives them, and the records in them.
import { approvalKey } from '../../src/core/approval-key.ts';
import type { CaseRecord, EffectRecord, PerformInput, VerdictRecord } from '../../src/core/case.ts';
import type { Decision } from '../../src/core/decision.ts';
import type { Execution, HistoryEvent } from '../../src/core/history-event.ts';
import type { Json } from '../../src/core/json.ts';
import { decodeTrail } from '../../src/core/trail.ts';
import type { TrailFact } from '../../src/core/trail-fact.ts';

export type Body<E = HistoryEvent> = E extends HistoryEvent ? Omit<E, 'eventId' | 'at'> : never;

export const workflowId = 'refund-ord-1001';
export const root = '019d2b1a-7f3e-7c11-9d55-046acc729732';
export const start = 1_800_000_000_000;
export const payloadHash = `sha256:${'a'.repeat(64)}`;
export const keyOf = (position: string): string => approvalKey({ workflowId, position, root });

/** Events numbered from `firstId`, a second apart. */
export function events(bodies: Body[], firstId = 1): HistoryEvent[] {
  return bodies.map((body, index) => ({ eventId: firstId + index, at: start + index * 1000, ...body }));
}

export function trailOf(bodies: Body[], more: Partial<Execution> = {}): TrailFact[] {
  return decodeTrail([{ workflowId, runId: root, events: events(bodies), ...more }]);
}

export const task: Body = { type: 'task_completed' };

export function started(workflowType = 'runSpec'): Body {
  const specRun = {
    v: 1,
    spec: {},
    input: { order: 'ord-1' },
    trigger: { kind: 'test' },
    startedBy: { id: 'eve' },
  };
  const input: Json = workflowType === 'runSpec' ? specRun : { order: 'ord-1' };
  return { type: 'run_started', workflowType, firstRunId: root, input };
}

export function caseOf(position: string, more: Partial<CaseRecord> = {}): CaseRecord {
  return {
    v: 1, kind: 'case', position, key: keyOf(position), root, phase: 'before', title: 'Refund', tool: 'payments.refund',
    arguments: { amount: '1.00' }, payloadHash, policy: { ttlMs: 60_000 }, requestedAt: start, expiresAt: start + 60_000, ...more,
  }; // prettier-ignore
}

export function decisionAt(position: string, decisionId: string, more: Partial<Decision> = {}): Decision {
  return {
    v: 1, key: keyOf(position), root, decision: 'approve', payloadHash, decisionId, by: { id: 'ann' }, via: 'api', ...more,
  }; // prettier-ignore
}

export function signal(value: unknown, name = 'decide'): Body {
  const input = [
    { metadata: { encoding: Buffer.from('json/plain') }, data: Buffer.from(JSON.stringify(value)) },
  ];
  return { type: 'signaled', name, input, identity: 'api@host' };
}

export const local = (activityType: string, result: unknown): Body => {
  return { type: 'local_activity', activityType, result: result as Json };
};
export const freeze = (position: string, more?: Partial<CaseRecord>): Body =>
  local('freezeCase', caseOf(position, more));

export function verdict(decision: Decision, more: Partial<VerdictRecord> = {}): Body {
  const position = 'refund';
  const by = { ...decision.by, verified: true };
  const record = {
    v: 1,
    kind: 'verdict',
    position,
    key: decision.key,
    root,
    decision,
    by,
    verdict: 'accepted',
    ...more,
  };
  return local('admitDecision', record);
}

export function settled(position: string, state: 'expired' | 'cancelled'): Body {
  return { type: 'memo_changed', fields: { [`approval/${position}`]: { state, at: start + 60_000 } } };
}

export const performInput: PerformInput = {
  v: 1, position: 'refund', root, tool: 'payments.refund', arguments: { amount: '1.00' }, payloadHash,
}; // prettier-ignore
export const scheduled: Body = {
  type: 'activity_scheduled', activityType: 'perform', input: performInput as unknown as Json,
}; // prettier-ignore
export const done: EffectRecord = {
  v: 1, kind: 'effect', position: 'refund', root, tool: 'payments.refund', idempotencyKey: `${root}:refund`, payloadHash,
  output: { refund: 're_1' },
}; // prettier-ignore
