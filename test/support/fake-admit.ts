// How the fake judges a decision that an open gate took up: the rules of src/activities/admit-decision.ts,
// in their order, with a schema that refuses the argument `bad`.
import type { Decision, DecisionKind } from '../../src/core/decision.ts';
import { hashPayload } from '../../src/core/hash.ts';
import type { Json } from '../../src/core/json.ts';
import type { DecisionFact, FactBody } from '../../src/core/trail-fact.ts';
import type { RefusalCode } from '../../src/core/verdict.ts';
import type { FakeGate } from './fake-run.ts';

/** A payload frozen anew. */
export interface Anew {
  arguments: Json;
  hash: string;
}

type Admission = { anew?: Anew } | { code: RefusalCode; message: string };

const taken: Record<FakeGate['phase'], readonly DecisionKind[]> = {
  before: ['approve', 'reject', 'edit', 'respond', 'amend', 'withdraw', 'comment'],
  step: ['approve', 'reject', 'withdraw', 'comment'],
  'in-doubt': ['approve', 'reject', 'respond', 'comment'],
};

export function admitLikeTheWorker(gate: FakeGate, decision: Decision, now: number): Admission {
  const { decision: kind, by, payloadHash, proof } = decision;
  const isRequester = gate.requestedBy !== undefined && gate.requestedBy.id === by.id;
  const mayWithdraw = isRequester || by.roles?.includes('admin') === true;
  if (!taken[gate.phase].includes(kind)) return no('not_allowed', `this gate takes no ${kind}`);
  if ((kind === 'edit' || kind === 'amend') && decision.arguments === undefined) {
    return no('malformed', `a decision "${kind}" needs arguments`);
  }
  if (kind === 'respond' && decision.result === undefined) return no('malformed', 'respond needs a result');
  if (proof === undefined && (kind === 'amend' || kind === 'withdraw')) {
    return no('unproven', `${kind} always needs a proof`);
  }
  if (kind === 'amend' && !isRequester) return no('not_allowed', 'only the requester may amend this request');
  if (kind === 'withdraw' && !mayWithdraw) return no('not_allowed', 'only the requester or an admin');
  if (now >= gate.expiresAt) return no('expired', 'the approval expired');
  if (payloadHash !== undefined && payloadHash !== gate.hash) {
    return no('payload_changed', 'decided on another hash');
  }
  if (kind !== 'edit' && kind !== 'amend') return {};
  const args = decision.arguments ?? null;
  if (typeof args !== 'object' || args === null || 'bad' in args)
    return no('invalid_edit', 'bad: is not taken');
  return { anew: { arguments: args, hash: hashPayload({ tool: gate.tool, arguments: args }).hash } };
}

/** The fact that an accepted decision is, as src/core/trail-gates.ts makes it. */
export function acceptedFact(
  fact: DecisionFact,
  payload: { arguments: Json; payloadHash: string },
): FactBody {
  switch (fact.decision.decision) {
    case 'approve':
      return { type: 'approval_granted', ...fact };
    case 'edit':
      return { type: 'approval_edited', ...fact, ...payload };
    case 'amend':
      return { type: 'approval_amended', ...fact, ...payload };
    case 'withdraw':
      return { type: 'approval_withdrawn', ...fact };
    case 'respond':
      return { type: 'approval_responded', ...fact };
    case 'comment':
      return { type: 'approval_commented', ...fact };
    default:
      return { type: 'approval_rejected', ...fact };
  }
}

function no(code: RefusalCode, message: string): Admission {
  return { code, message };
}
