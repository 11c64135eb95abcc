// What stands in histories and is no fact of a gate: signals that are no decisions, and records of somebody else's
// activities, or under our names but not ours.
import { longDecisionLimitBytes } from '../../src/core/decision.ts';
import type { Json } from '../../src/core/json.ts';
import type { RefusalCode } from '../../src/core/verdict.ts';
import { caseOf, decisionAt, local, signal, type Body } from './trail-events.ts';

/** Without `code`: it is no `decide`, so it is ignored. */
export const poorSignals: { body: Body; code?: RefusalCode }[] = [
  { body: signal(null), code: 'malformed' },
  { body: signal({ approve: true }), code: 'malformed' },
  { body: signal({ ...decisionAt('gate-1', 'poor'), arguments: {} }), code: 'malformed' },
  { body: { type: 'signaled', name: 'decide', input: [], identity: 'by hand' }, code: 'malformed' },
  { body: { type: 'signaled', name: 'decide', input: [{}], identity: 'by hand' }, code: 'malformed' },
  { body: inputs('{'), code: 'malformed' },
  { body: inputs('{}', '{}'), code: 'malformed' },
  { body: inputs('\u{feff}{}'), code: 'malformed' },
  { body: inputs(' '.repeat(longDecisionLimitBytes + 1)), code: 'too_large' },
  { body: signal({ ...decisionAt('gate-1', 'poor'), reason: 'x'.repeat(5_000) }), code: 'too_large' },
  { body: signal(decisionAt('gate-1', 'poor'), 'decided') },
  { body: signal(decisionAt('gate-1', 'poor'), '__temporal_x') },
];

function inputs(...texts: string[]): Body {
  const input = texts.map((text) => ({
    metadata: { encoding: Buffer.from('json/plain') },
    data: Buffer.from(text),
  }));
  return { type: 'signaled', name: 'decide', input, identity: 'by hand' };
}

const poorCase: Json = { ...(caseOf('gate-9') as unknown as Record<string, Json>), requestedAt: 1e300 };

/** None of them is a fact. */
export const poorRecords: Body[] = [
  local('theirs', caseOf('gate-9')),
  local('freezeCase', null),
  local('freezeCase', { ...caseOf('gate-9'), v: 99 }),
  local('freezeCase', poorCase),
  local('freezeCase', { v: 1, kind: 'problem', position: 'gate-9', code: 'unknown_tool' }),
  local('prepareStep', { v: 1, kind: 'prepared', position: 9 }),
  local('admitDecision', { v: 1, kind: 'verdict' }),
  local('admitDecision', 'accepted'),
  {
    type: 'local_activity',
    activityType: 'theirs',
    failure: { type: 'Error', message: 'm', details: [null] },
  },
  { type: 'activity_scheduled', activityType: 'theirs', input: null },
  { type: 'activity_scheduled', activityType: 'perform', input: null },
  { type: 'activity_scheduled', activityType: 'perform', input: { v: 1, position: 'gate-9' } },
  { type: 'memo_changed', fields: { mine: 1, 'approval/gate-9': { state: 'expired', at: 0 } } },
  { type: 'memo_changed', fields: { 'approval/gate-1': null, 'approval/': { state: 'expired' } } },
];
