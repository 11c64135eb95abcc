// What a caller asks for at a gate, and the id of it: the same wish of the same person has the same id in
// every API process, so that a repeated request is one decision.
import { needsPayloadHash, reasonLimitBytes, type Decision, type DecisionKind } from '../core/decision.ts';
import { canonicalize, ValueProblemError } from '../core/canonical.ts';
import { hashPayload, sha256Hex } from '../core/hash.ts';
import type { Json } from '../core/json.ts';
import { utf8Length } from '../core/json-value.ts';
import { ApiProblem } from './problem.ts';

export const orderKinds = [
  'approve',
  'reject',
  'edit',
  'respond',
  'amend',
  'withdraw',
  'comment',
] as const satisfies readonly DecisionKind[];
export type OrderKind = (typeof orderKinds)[number];

/** What a decision brings with it: `arguments` an edit or an amendment, `result` a respond. */
export interface OrderPayload {
  arguments?: Json;
  result?: Json;
}

export interface DecisionOrder extends OrderPayload {
  kind: OrderKind;
  key: string;
  /** the hash that the caller saw */
  payloadHash?: string;
  reason?: string;
  idempotencyKey?: string;
  via: 'api' | 'cli';
}

/** @throws ApiProblem payload_hash_required, too_large, invalid_request */
export function checkOrder(order: DecisionOrder): void {
  const { kind, payloadHash, reason } = order;
  if (needsPayloadHash(kind) && payloadHash === undefined) {
    throw new ApiProblem(
      'payload_hash_required',
      `"${kind}" needs the hash of what it decides on, in If-Match (not "*") or as payloadHash`,
    );
  }
  const bytes = reason === undefined ? 0 : utf8Length(reason);
  if (bytes > reasonLimitBytes) {
    throw new ApiProblem('too_large', `reason has ${bytes} bytes, the limit is ${reasonLimitBytes}`, {
      limitBytes: reasonLimitBytes,
    });
  }
  try {
    payloadParts(order);
  } catch (error) {
    if (!(error instanceof ValueProblemError)) throw error;
    const code = error.code === 'payload_too_large' ? 'too_large' : 'invalid_request';
    throw new ApiProblem(code, error.message, { pointer: error.pointer });
  }
}

/**
 * 128 bits of a hash over who, where and their Idempotency-Key; without one, over who, where and what. The
 * two lists differ in length, so that no key can be chosen to meet a content.
 */
export function decisionIdOf(callerId: string, order: DecisionOrder): string {
  const { key, idempotencyKey } = order;
  const parts =
    idempotencyKey === undefined ? [callerId, key, ...contentParts(order)] : [callerId, key, idempotencyKey];
  return sha256Hex(canonicalize(parts)).slice(0, 32);
}

/** To be compared within one decision id. */
export function contentOf(order: DecisionOrder): string {
  return canonicalize(contentParts(order));
}

/** Does `decision` ask for what `order` asks for? */
export function hasContentOf(order: DecisionOrder, decision: Decision): boolean {
  return (
    decision.decision === order.kind &&
    decision.payloadHash === order.payloadHash &&
    decision.reason === order.reason &&
    bringsTheSame(order, decision)
  );
}

export function bringsTheSame(one: OrderPayload, other: OrderPayload): boolean {
  return canonicalize(payloadParts(one)) === canonicalize(payloadParts(other));
}

function contentParts(order: DecisionOrder): (string | null)[] {
  const { kind, payloadHash, reason } = order;
  return [kind, payloadHash ?? null, reason ?? null, ...payloadParts(order)];
}

/** One hash for a decision that brings something with it. @throws ValueProblemError */
function payloadParts({ arguments: args, result }: OrderPayload): string[] {
  return [args, result].flatMap((value) => (value === undefined ? [] : [hashPayload(value).hash]));
}
