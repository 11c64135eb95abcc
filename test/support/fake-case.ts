// The case that a run of the fake asks about, as a worker would have frozen it.
import type { CaseRecord, Doubt, GatePhase } from '../../src/core/case.ts';
import { hashPayload } from '../../src/core/hash.ts';
import type { Json } from '../../src/core/json.ts';
import type { Actor } from '../../src/core/verdict.ts';

export interface AskOptions {
  runId: string;
  position?: string;
  tool?: string;
  arguments?: Json;
  ttlMs?: number;
  /** default `before` */
  phase?: GatePhase;
  requestedBy?: Actor;
}

export type OpenCase = Omit<CaseRecord, 'key' | 'root'>;

/** What a person is asked of an effect that nobody knows about. */
const doubt: Doubt = {
  idempotencyKey: 'root:refund',
  why: 'the answer was lost',
  retryPosition: 'refund#retry-1',
  effectHash: `sha256:${'e'.repeat(64)}`,
};

export function fakeCase(options: AskOptions, now: number): OpenCase {
  const { position = 'refund', tool = 'refund', ttlMs = 3_600_000, phase = 'before', requestedBy } = options;
  const args = options.arguments ?? { order: 'ord-1001', amount: '40.00' };
  return {
    v: 1,
    kind: 'case',
    position,
    phase,
    title: `${tool} at ${position}`,
    tool,
    arguments: args,
    payloadHash: hashPayload({ tool, arguments: args }).hash,
    policy: { ttlMs },
    requestedAt: now,
    expiresAt: now + ttlMs,
    ...(phase === 'in-doubt' ? { doubt } : {}),
    ...(requestedBy === undefined ? {} : { requestedBy }),
  };
}
