// What a gate promises, as little code as that takes, written from DESIGN §6 and not from the sources: the first
// accepted decision in delivery order that settles wins, whoever is faster in being judged.
import type { DecisionKind } from '../../src/core/decision.ts';
import type { GateState, RefusalCode } from '../../src/core/verdict.ts';

/** A decision, as far as it matters here; the test makes the signal from it. Times in milliseconds. */
export interface Sent {
  id: string;
  kind: DecisionKind;
  hash?: string;
  by: string;
  /** by a door's key; absent: by hand */
  signedAt?: number;
  /** a signed one that was made to be pasted */
  isPasted?: boolean;
  /** names another run by root or key */
  isAstray?: boolean;
  /** edit and amend: what their arguments hash to */
  newHash?: string;
}

export interface ModelGate {
  hash: string;
  deadline: number;
  requester?: string;
  isOpen: boolean;
  state: GateState;
  winner?: Sent;
  queue: Sent[];
  judging?: { sent: Sent; takenUpAt: number };
  /** what ends it once nobody waits */
  due?: 'expired' | 'cancelled';
  isCancelled: boolean;
  /** once it is approved: whether its effect starts; that of a run that was cancelled meanwhile does not */
  acts?: boolean;
  accepted: Set<string>;
  answers: Map<string, Answer>;
}

export type Answer = 'pending' | 'accepted' | RefusalCode;

export function newGate(gate: Pick<ModelGate, 'hash' | 'deadline' | 'requester'>): ModelGate {
  const nothing = { isOpen: false, isCancelled: false, queue: [], accepted: new Set<string>() };
  return { ...gate, ...nothing, state: 'pending', answers: new Map() };
}

export function delivered(gate: ModelGate, sent: Sent): void {
  const { isOpen, state, queue, accepted, answers } = gate;
  const late = state === 'expired' ? 'expired' : 'already_resolved';
  if (sent.isAstray === true) answers.set(sent.id, 'unknown_key');
  else if (accepted.has(sent.id)) answers.set(sent.id, 'accepted');
  else if (!isOpen) answers.set(sent.id, 'not_open');
  else if (state !== 'pending') answers.set(sent.id, late);
  else {
    queue.push(sent);
    answers.set(sent.id, 'pending');
  }
}

/** The decision that is being judged has its verdict. */
export function judged(gate: ModelGate, checkFailed: boolean): void {
  if (gate.judging === undefined) throw new Error('nothing is being judged');
  const { sent, takenUpAt } = gate.judging;
  delete gate.judging;
  const code = checkFailed ? 'check_failed' : refusal(gate, sent, takenUpAt);
  gate.answers.set(sent.id, code ?? 'accepted');
  if (code !== undefined) return;
  gate.accepted.add(sent.id);
  gate.hash = sent.newHash ?? gate.hash;
  const state = settles[sent.kind];
  if (state !== undefined) end(gate, state, sent);
}

/** What the gate does by itself when a workflow task has told it all: takes up the next, or ends. */
export function goesOn(gate: ModelGate, now: number): void {
  while (gate.isOpen && gate.state === 'pending' && gate.judging === undefined) {
    const sent = gate.queue.shift();
    if (sent === undefined && gate.due === undefined) break;
    if (sent === undefined) end(gate, gate.due ?? 'expired');
    else if (gate.accepted.has(sent.id)) gate.answers.set(sent.id, 'accepted');
    else gate.judging = { sent, takenUpAt: now };
  }
  if (gate.state === 'approved') gate.acts ??= !gate.isCancelled;
}

function end(gate: ModelGate, state: GateState, winner?: Sent): void {
  gate.state = state;
  if (winner !== undefined) gate.winner = winner;
  for (const sent of gate.queue.splice(0)) delivered(gate, sent);
}

const settles: Partial<Record<DecisionKind, GateState>> = {
  ...{
    approve: 'approved',
    edit: 'approved',
    reject: 'rejected',
    withdraw: 'withdrawn',
    respond: 'responded',
  },
};

function refusal(gate: ModelGate, sent: Sent, takenUpAt: number): RefusalCode | undefined {
  const { kind, by, signedAt, isPasted, hash } = sent;
  const isRequesters = kind === 'amend' || kind === 'withdraw';
  if (isRequesters && signedAt === undefined) return 'unproven';
  if (isRequesters && by !== gate.requester) return 'not_allowed';
  const isInTime = signedAt !== undefined && signedAt < gate.deadline && isPasted !== true;
  if (takenUpAt >= gate.deadline && !isInTime) return 'expired';
  return hash !== undefined && hash !== gate.hash ? 'payload_changed' : undefined;
}
