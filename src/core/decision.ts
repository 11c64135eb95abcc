// Sandbox-safe. The one message that decides, and its hand-checked shape: the workflow reads it from a
// raw signal, so nothing here may throw, and no library may change what old histories mean.
import type { GatePhase } from './case.ts';
import { jsonValueProblem, utf8Length } from './json-value.ts';
import type { Json } from './json.ts';
import type { Actor } from './verdict.ts';

export type DecisionKind =
  'approve' | 'reject' | 'edit' | 'respond' | 'amend' | 'withdraw' | 'delegate' | 'unvote' | 'comment';

/** Doors that a decision can come by; a hand-sent one is `signal`. */
export type Via = 'api' | 'cli' | 'inbox' | 'slack' | 'signal';

/** The signal `decide` (DESIGN §6). */
export interface Decision {
  v: 1;
  key: string;
  root: string;
  decision: DecisionKind;
  /** present for approve, edit and respond */
  payloadHash?: string;
  decisionId: string;
  by: Actor;
  via: Via;
  reason?: string;
  arguments?: Json;
  output?: Json;
  result?: Json;
  to?: string;
  until?: string;
  standing?: Json;
  proof?: string;
}

export type DecisionReading =
  { ok: true; decision: Decision } | { ok: false; code: 'malformed' | 'too_large'; problem: string };

/** 16 KiB: four times the longest reason, so that only a payload can make a decision long. */
export const decisionLimitBytes = 16 * 1024;
/** 4 KiB: a page of text; it is shown in lists, messages and the trail. */
export const reasonLimitBytes = 4 * 1024;
/** The payload limit (256 KiB) and the rest of the decision, for edit, amend and respond. */
export const longDecisionLimitBytes = 256 * 1024 + decisionLimitBytes;

interface KindRule {
  needsHash: boolean;
  /** a payload travels in it, so the longer limit holds */
  long?: boolean;
  extra: readonly (keyof Decision)[];
}

const kindRules: Record<DecisionKind, KindRule> = {
  approve: { needsHash: true, extra: ['standing'] },
  reject: { needsHash: false, extra: [] },
  edit: { needsHash: true, long: true, extra: ['arguments', 'output'] },
  respond: { needsHash: true, long: true, extra: ['result'] },
  amend: { needsHash: false, long: true, extra: ['arguments'] },
  withdraw: { needsHash: false, extra: [] },
  delegate: { needsHash: false, extra: ['to', 'until'] },
  unvote: { needsHash: false, extra: [] },
  comment: { needsHash: false, extra: [] },
};

/** Does that kind of decision name the payload that it was made on? */
/** What each kind of gate takes; delegation and unvoting come with the policies. */
export const kindsAt: Readonly<Record<GatePhase, readonly DecisionKind[]>> = {
  before: ['approve', 'reject', 'edit', 'respond', 'amend', 'withdraw', 'comment'],
  step: ['approve', 'reject', 'withdraw', 'comment'],
  'in-doubt': ['approve', 'reject', 'respond', 'comment'],
};

export function needsPayloadHash(kind: DecisionKind): boolean {
  return kindRules[kind].needsHash;
}

/** The most bytes of JSON that a decision of that kind has, its proof included. */
export function decisionLimitOf(kind: DecisionKind): number {
  return kindRules[kind].long === true ? longDecisionLimitBytes : decisionLimitBytes;
}

const commonFields = new Set([
  'v',
  'key',
  'root',
  'decision',
  'payloadHash',
  'decisionId',
  'by',
  'via',
  'reason',
  'proof',
]);
const vias: readonly string[] = ['api', 'cli', 'inbox', 'slack', 'signal'];
const hashPattern = /^sha256:[0-9a-f]{64}$/;

/** Reads a decision from JSON text. `bytes` is the text's length in UTF-8. Never throws. */
export function readDecisionText(text: string, bytes: number): DecisionReading {
  if (bytes > longDecisionLimitBytes) {
    return tooLarge(`a decision is at most ${longDecisionLimitBytes} bytes, got ${bytes}`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return malformed('not JSON');
  }
  return readDecision(value, bytes);
}

/** Checks the shape of a decision: every field, its type, and that nothing else is there. Never throws. */
export function readDecision(value: unknown, bytes: number): DecisionReading {
  if (!isRecord(value)) return malformed('a decision is one JSON object');
  if (value['v'] !== 1) return malformed('v must be 1');
  const kind = value['decision'];
  if (typeof kind !== 'string' || !Object.hasOwn(kindRules, kind)) {
    return malformed(`decision must be one of ${Object.keys(kindRules).join(', ')}`);
  }
  const rule = kindRules[kind as DecisionKind];
  const limit = decisionLimitOf(kind as DecisionKind);
  if (bytes > limit) return tooLarge(`a decision "${kind}" is at most ${limit} bytes, got ${bytes}`);
  for (const name of Object.keys(value)) {
    if (!commonFields.has(name) && !rule.extra.includes(name as keyof Decision)) {
      return malformed(`a decision "${kind}" has no field "${name.slice(0, 40)}"`);
    }
  }
  // Before anything walks it: JSON text may nest deeper than a stack, and a handler that throws wedges the run.
  const problem = jsonValueProblem(value);
  if (problem !== undefined) return malformed(problem.message);
  const reading = readFields(value, kind as DecisionKind, rule);
  return typeof reading === 'string' ? malformed(reading) : reading;
}

function readFields(
  value: Record<string, unknown>,
  kind: DecisionKind,
  rule: KindRule,
): DecisionReading | string {
  const { key, root, payloadHash, decisionId, via, reason, proof, to, until } = value;
  if (!isText(key, 640)) return 'key must be the approval key, a string of at most 640 characters';
  if (!isText(root, 64)) return 'root must be the run identity, a string of at most 64 characters';
  if (payloadHash !== undefined && !(typeof payloadHash === 'string' && hashPattern.test(payloadHash))) {
    return 'payloadHash must be "sha256:" and 64 hex digits';
  }
  if (rule.needsHash && payloadHash === undefined) return `a decision "${kind}" needs payloadHash`;
  if (decisionId !== undefined && !isText(decisionId, 128)) {
    return 'decisionId must be a string of at most 128 characters';
  }
  if (via !== undefined && !vias.includes(via as string)) return `via must be one of ${vias.join(', ')}`;
  if (reason !== undefined && typeof reason !== 'string') return 'reason must be a string';
  if (reason !== undefined && utf8Length(reason) > reasonLimitBytes) {
    return tooLarge(`a reason is at most ${reasonLimitBytes} bytes`);
  }
  if (proof !== undefined && !isText(proof, decisionLimitBytes)) return 'proof must be a compact JWS';
  if (to !== undefined && !isText(to, 256)) return 'to must be a string of at most 256 characters';
  if (until !== undefined && !isText(until, 64)) return 'until must be a time, ISO 8601';
  const by = value['by'] === undefined ? { id: 'unknown' } : readActor(value['by']);
  if (typeof by === 'string') return by;
  const { by: _by, via: _via, decisionId: _id, ...rest } = value;
  const content = { ...rest, v: 1, key, root, decision: kind, by } as Omit<Decision, 'decisionId' | 'via'>;
  return {
    ok: true,
    decision: {
      ...content,
      via: (via as Via | undefined) ?? 'signal',
      decisionId: decisionId ?? contentId(content),
    },
  };
}

function readActor(value: unknown): Actor | string {
  if (!isRecord(value)) return 'by must be an object {id, name?, roles?}';
  const { id, name, roles, ...rest } = value;
  const [foreign] = Object.keys(rest);
  if (foreign !== undefined) return `by has no field "${foreign.slice(0, 40)}"`;
  if (!isText(id, 256)) return 'by.id must be a string of at most 256 characters';
  if (name !== undefined && !isText(name, 256)) return 'by.name must be a string of at most 256 characters';
  if (roles !== undefined && !isRoles(roles)) return 'by.roles must be at most 50 strings';
  return { id, ...(name === undefined ? {} : { name }), ...(roles === undefined ? {} : { roles }) };
}

function isRoles(value: unknown): value is string[] {
  return Array.isArray(value) && value.length <= 50 && value.every((role) => isText(role, 256));
}

/** Whether two decisions ask for the same thing: everything but the proof and the door is equal. */
export function sameDecision(a: Decision, b: Decision): boolean {
  const { proof: _a, via: _va, ...left } = a;
  const { proof: _b, via: _vb, ...right } = b;
  return sortedJson(left) === sortedJson(right);
}

/**
 * An id for a decision that came without one. It only tells a repeated message from another one, so
 * FNV-1a (64 bits, draft-eastlake-fnv) is enough; the sandbox has no cryptographic hash.
 */
function contentId(content: object): string {
  let hash = 0xcbf29ce484222325n;
  for (const char of sortedJson(content)) {
    hash ^= BigInt(char.codePointAt(0) ?? 0);
    hash = (hash * 0x100000001b3n) & 0xffffffffffffffffn;
  }
  return `content-${hash.toString(16).padStart(16, '0')}`;
}

function sortedJson(value: unknown): string {
  return JSON.stringify(value, (_name, member: unknown) =>
    isRecord(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isText(value: unknown, limit: number): value is string {
  return typeof value === 'string' && value.length > 0 && value.length <= limit;
}

function malformed(problem: string): DecisionReading {
  return { ok: false, code: 'malformed', problem };
}

function tooLarge(problem: string): DecisionReading {
  return { ok: false, code: 'too_large', problem };
}
