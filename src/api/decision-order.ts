// What a caller asks for at a gate, and the id of it: the same wish of the same person has the same id in
// every API process, so that a repeated request is one decision.
import type { Decision } from '../core/decision.ts';
import { reasonLimitBytes } from '../core/decision.ts';
import { canonicalize } from '../core/canonical.ts';
import { sha256Hex } from '../core/hash.ts';
import { utf8Length } from '../core/json-value.ts';
import { ApiProblem } from './problem.ts';

export interface DecisionOrder {
  kind: 'approve' | 'reject';
  key: string;
  /** the hash that the caller saw */
  payloadHash?: string;
  reason?: string;
  idempotencyKey?: string;
  via: 'api' | 'cli';
}

/** @throws ApiProblem payload_hash_required, too_large */
export function checkOrder({ kind, payloadHash, reason }: DecisionOrder): void {
  if (kind === 'approve' && payloadHash === undefined) {
    throw new ApiProblem(
      'payload_hash_required',
      'an approval needs the hash of what it approves, in If-Match (not "*") or as payloadHash',
    );
  }
  const bytes = reason === undefined ? 0 : utf8Length(reason);
  if (bytes > reasonLimitBytes) {
    throw new ApiProblem('too_large', `reason has ${bytes} bytes, the limit is ${reasonLimitBytes}`, {
      limitBytes: reasonLimitBytes,
    });
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
    decision.reason === order.reason
  );
}

function contentParts({ kind, payloadHash, reason }: DecisionOrder): (string | null)[] {
  return [kind, payloadHash ?? null, reason ?? null];
}
