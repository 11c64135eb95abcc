// What the doors answered, read as statements about a gate: who won, or that nobody had yet. A call without an
// answer says nothing; its decision may take effect at any time, or never.
import type { Call } from '../evidence.ts';
import { decisionIdOf } from './independent.ts';
import { fieldsOf, textOf } from './raw-event.ts';
import { stateBy } from './story.ts';

export interface Reply {
  call: Call;
  status: number;
  body: Record<string, unknown>;
  begun: number;
  /** when it was there at the latest; Infinity where that is not known */
  ended: number;
}

/** The first answer, and what was asked or sent again after it. */
export function repliesOf(call: Call): Reply[] {
  const { answer, final, begun, ended, finalEnded = Infinity } = call;
  return [
    ...(answer === undefined ? [] : [{ ...answer, ended }]),
    ...(final === undefined ? [] : [{ ...final, ended: finalEnded }]),
  ].map((reply) => ({ call, status: reply.status, body: fieldsOf(reply.body), begun, ended: reply.ended }));
}

/** The last word. */
export function lastReply(call: Call): Reply | undefined {
  return repliesOf(call).at(-1);
}

export function isDecision({ op }: Call): boolean {
  return op !== 'start' && op !== 'cancel' && op !== 'read';
}

/** Ids under which the decision of a call can stand in a history; empty where the door made one of its content. */
export function idsOf(call: Call): string[] {
  const { decisionId, key, person, idempotencyKey } = call;
  const made =
    key === undefined || idempotencyKey === undefined ? [] : [decisionIdOf(person, key, idempotencyKey)];
  return decisionId === undefined ? made : [decisionId, ...made];
}

/** A statement about a gate. `pending` and `absent`: nobody had won at some time between `begun` and `ended`. */
export interface Statement {
  call: Call;
  key: string;
  state: string;
  /** of the winner, where the answer names it */
  decisionId?: string;
  begun: number;
  ended: number;
}

/** Refusals that only an open gate, or one that does not ask yet, gives. */
const openRefusals = ['payload_changed', 'spec_changed', 'invalid_edit', 'not_open'];

export function statementsOf(call: Call): Statement[] {
  const { key } = call;
  if (key === undefined || call.door !== 'http') return [];
  return repliesOf(call).flatMap((reply): Statement[] => {
    const told = call.op === 'read' ? readState(reply) : isDecision(call) ? decidedState(reply) : undefined;
    return told === undefined ? [] : [{ call, key, begun: reply.begun, ended: reply.ended, ...told }];
  });
}

type Told = Pick<Statement, 'state' | 'decisionId'>;

export function isOpenState(state: string): boolean {
  return state === 'pending' || state === 'absent';
}

function readState({ status, body }: Reply): Told | undefined {
  if (status === 404) return { state: 'absent' };
  if (status !== 200) return undefined;
  return told(body['state'], fieldsOf(body['outcome'])['decisionId']);
}

function decidedState({ call, status, body }: Reply): Told | undefined {
  const code = textOf(body['code']);
  if (status === 409 && code === 'already_resolved') {
    const winner = fieldsOf(body['winner']);
    return told(body['state'] ?? winner['state'], winner['decisionId']);
  }
  if (openRefusals.includes(code)) return { state: code === 'not_open' ? 'absent' : 'pending' };
  if (status !== 200 || body['verdict'] !== 'accepted') return undefined;
  // a comment tells how the gate stood, an approval that it won
  return stateBy(call.op) === undefined
    ? told(body['state'], undefined)
    : told(body['state'], body['decisionId']);
}

function told(state: unknown, decisionId: unknown): Told | undefined {
  if (typeof state !== 'string') return undefined;
  return typeof decisionId === 'string' && !isOpenState(state) ? { state, decisionId } : { state };
}
