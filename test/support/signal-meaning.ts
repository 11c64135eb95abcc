// What a signal means to an open gate for one refund, by a rule of its own: from DESIGN §6, with JSON.parse and a
// look at the text, and nothing of the sources. A mutated signal that is as good as before is known by it.
import type { SeenGate } from './gates.ts';
import type { HostileSignal } from './hostile-signals.ts';

export type Meaning = 'ignored' | 'refused' | 'comments' | 'approves' | 'rejects' | 'responds';

const common = ['v', 'key', 'root', 'decision', 'payloadHash', 'decisionId', 'by', 'via', 'reason'];
const hashed = ['approve', 'respond'];
const meanings: Record<string, Meaning> = {
  ...{ approve: 'approves', reject: 'rejects', respond: 'responds', comment: 'comments' },
};

export function meaningOf(
  { signalName = 'decide', payloads = [] }: Pick<HostileSignal, 'signalName' | 'payloads'>,
  gate: Pick<SeenGate, 'key' | 'root' | 'hash'>,
): Meaning {
  if (signalName !== 'decide') return 'ignored';
  const [one] = payloads;
  const encoding = one?.metadata?.['encoding'];
  if (one === undefined || payloads.length > 1 || encoding === undefined) return 'refused';
  if (Buffer.from(encoding).toString('latin1') !== 'json/plain') return 'refused';
  const data = Buffer.from(one.data ?? []);
  const value = strictly(data);
  if (value === undefined) return 'refused';
  const { v, key, root, decision, payloadHash, by, via, reason, decisionId } = value;
  const meaning =
    typeof decision === 'string' && Object.hasOwn(meanings, decision) ? meanings[decision] : undefined;
  if (meaning === undefined || v !== 1 || key !== gate.key || root !== gate.root) return 'refused';
  const own = { approve: ['standing'], respond: ['result'] }[decision as 'approve'] ?? [];
  if (Object.keys(value).some((name) => ![...common, ...own].includes(name))) return 'refused';
  const isHashed = hashed.includes(decision as string);
  if (payloadHash !== gate.hash && (isHashed || payloadHash !== undefined)) return 'refused';
  if (decision === 'respond' && value['result'] === undefined) return 'refused';
  if (data.length > (decision === 'respond' ? 272 : 16) * 1024) return 'refused';
  const isSaid =
    (decisionId === undefined || isText(decisionId, 128)) &&
    (via === undefined || ['api', 'cli', 'inbox', 'slack', 'signal'].includes(via as string)) &&
    (reason === undefined || (typeof reason === 'string' && Buffer.byteLength(reason) <= 4096)) &&
    (by === undefined || isPerson(by));
  return isSaid ? meaning : 'refused';
}

/** Equal for decisions that ask for the same: the order of members and the door do not count. */
export function contentOf({ payloads = [] }: Pick<HostileSignal, 'payloads'>): string {
  const { via: _, ...content } = strictly(Buffer.from(payloads[0]?.data ?? [])) ?? {};
  const isObject = (value: unknown): value is object =>
    typeof value === 'object' && value !== null && !Array.isArray(value);
  return JSON.stringify(content, (_name, value: unknown) =>
    isObject(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value,
  );
}

/** The object that a text is, if every reader would read the same one. */
function strictly(data: Buffer): Record<string, unknown> | undefined {
  const text = data.toString();
  if (!Buffer.from(text).equals(data) || text.startsWith('\ufeff')) return undefined;
  let members = 0;
  let isPlain = true;
  const walk = (value: unknown, depth: number): void => {
    // half a character has no bytes of its own
    if (typeof value === 'string' && Buffer.from(value).toString() !== value) isPlain = false;
    if (typeof value !== 'object' || value === null || !isPlain) return;
    if (depth > 64) isPlain = false;
    if (!Array.isArray(value)) members += Object.keys(value).length;
    for (const [name, member] of Object.entries(value)) {
      walk(name, depth);
      walk(member, depth + 1);
    }
  };
  try {
    const value: unknown = JSON.parse(text);
    walk(value, 1);
    // a member twice leaves one of the two behind
    const tokens = text.match(/"(?:[^"\\]|\\.)*"|:|-?\d[\d.eE+-]*/g) ?? [];
    const isTwice = tokens.filter((token) => token === ':').length !== members;
    const isRounded = tokens.some((token) => /^-?\d+$/.test(token) && !Number.isSafeInteger(Number(token)));
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject && isPlain && !isTwice && !isRounded ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function isPerson(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const { id, name, roles, ...rest } = value as Record<string, unknown>;
  const isList = Array.isArray(roles) && roles.length <= 50 && roles.every((role) => isText(role, 256));
  return (
    Object.keys(rest).length === 0 &&
    isText(id, 256) &&
    (name === undefined || isText(name, 256)) &&
    (roles === undefined || isList)
  );
}

function isText(value: unknown, most: number): boolean {
  return typeof value === 'string' && value.length > 0 && value.length <= most;
}
