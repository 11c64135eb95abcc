// Pure. Whoever may write to the namespace can start a run with any input and record anything
// under our names. What is read from there without having been made here is checked by these first: only what
// would break a reader is refused, so that every record of an earlier version stays readable.
import type { Carried, CarriedGate } from './carried.ts';
import type { ApprovalMemo, CaseRecord, PerformInput, VerdictRecord } from './case.ts';

/** ECMA-262, 21.4.1.1: no Date is further from the epoch. */
const farthestMs = 8.64e15;
const phases: readonly unknown[] = ['before', 'step', 'in-doubt'];

type Fields = Record<string, unknown>;

/** Milliseconds that a Date can have. */
export function isTime(value: unknown): value is number {
  return typeof value === 'number' && Math.abs(value) <= farthestMs;
}

/** Its key and root, which a case that the API froze does not have, are the reader's. */
export function isCase(value: unknown): value is CaseRecord {
  if (!isFields(value)) return false;
  const { position, title, payloadHash, phase, policy, requestedAt, expiresAt } = value;
  return (
    [position, title, payloadHash].every(isText) &&
    phases.includes(phase) &&
    isFields(policy) &&
    isTime(requestedAt) &&
    isTime(expiresAt)
  );
}

export function isVerdict(value: unknown): value is VerdictRecord {
  if (!isFields(value)) return false;
  const { position, key, decision, by, case: anew } = value;
  return [position, key].every(isText) && isFields(decision) && isFields(by) && isOptional(anew, isCase);
}

export function isPerformInput(value: unknown): value is PerformInput {
  if (!isFields(value) || value['v'] !== 1) return false;
  const { position, root, tool, payloadHash, prefix } = value;
  return [position, root, tool, payloadHash].every(isText) && isOptional(prefix, isText);
}

export function isMemo(value: unknown): value is ApprovalMemo {
  if (!isFields(value)) return false;
  const { state, phase, tool, title, hash, by, decisionId, requestedAt, expiresAt, at } = value;
  return (
    isText(state) &&
    isOptional(phase, (one) => phases.includes(one)) &&
    [tool, title, hash, by, decisionId].every((one) => isOptional(one, isText)) &&
    [requestedAt, expiresAt, at].every((one) => isOptional(one, isTime))
  );
}

/** Those that can be read. */
export function gatesIn({ gates }: Partial<Carried>): CarriedGate[] {
  return Array.isArray(gates) ? (gates as unknown[]).filter(isCarriedGate) : [];
}

function isCarriedGate(value: unknown): value is CarriedGate {
  if (!isFields(value)) return false;
  const { view, frozen, queue, end } = value;
  return (
    isView(view) &&
    isOptional(frozen, isCase) &&
    isOptional(end, (one) => isFields(one) && isCase(one['case'])) &&
    isOptional(queue, (one) => Array.isArray(one) && one.every(isText))
  );
}

function isView(value: unknown): boolean {
  if (!isFields(value)) return false;
  const { key, position, state, settlement, winner, accepted } = value;
  return (
    [key, position, state].every(isText) &&
    isOptional(settlement, (one) => isFields(one) && isTime(one['at']) && isOptional(one['by'], isFields)) &&
    isOptional(winner, isFields) &&
    isOptional(accepted, (one) => Array.isArray(one) && one.every(isFields))
  );
}

function isOptional(value: unknown, is: (value: unknown) => boolean): boolean {
  return value === undefined || is(value);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
