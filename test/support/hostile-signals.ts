// Signals as no door of countersign sends them: made by hand and sent by raw gRPC, so that not even
// Temporal's SDK has a say in their form.
import { randomUUID } from 'node:crypto';
import type { RawPayload } from '../../src/core/signal.ts';
import type { RefusalCode } from '../../src/core/verdict.ts';
import { decisionOn, type SeenGate } from './gates.ts';
import type { TestTemporal } from './temporal.ts';

export interface HostileSignal {
  title: string;
  /** default `decide` */
  signalName?: string;
  /** none: the signal has no input at all */
  payloads?: RawPayload[];
  header?: Record<string, RawPayload>;
  /** What an open gate answers; `ignored`: it is no decision at all; `none`: nothing stands in the way of it. */
  expected: RefusalCode | 'ignored' | 'none';
  /** of a signal that reads as a decision: before the gate is open and after its end it has another answer */
  decisionId?: string;
}

export function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

export function payload(text: string | Uint8Array, encoding: string | Uint8Array = 'json/plain'): RawPayload {
  return {
    metadata: { encoding: typeof encoding === 'string' ? bytes(encoding) : encoding },
    data: typeof text === 'string' ? bytes(text) : text,
  };
}

export async function sendRaw(
  { connection, namespace }: Pick<TestTemporal, 'connection' | 'namespace'>,
  workflowId: string,
  { signalName = 'decide', payloads, header }: Pick<HostileSignal, 'signalName' | 'payloads' | 'header'>,
): Promise<void> {
  await connection.workflowService.signalWorkflowExecution({
    namespace,
    workflowExecution: { workflowId },
    signalName,
    ...(payloads === undefined ? {} : { input: { payloads } }),
    ...(header === undefined ? {} : { header: { fields: header } }),
    identity: 'somebody by hand',
    requestId: randomUUID(),
  });
}

/** Every kind that CASES 36 names, and its relatives. Each would approve `gate` but for its one fault. */
export function hostileSignals(gate: SeenGate): HostileSignal[] {
  const good = (): string => JSON.stringify(decisionOn(gate, 'approve'));
  const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);
  const malformed = (title: string, ...payloads: RawPayload[]): HostileSignal => {
    return { title, payloads, expected: 'malformed' };
  };
  /** The good decision with members changed or added; `undefined` takes one out. */
  const changed = (title: string, change: Record<string, unknown>): HostileSignal =>
    malformed(title, payload(JSON.stringify({ ...decisionOn(gate, 'approve'), ...change })));
  const readable = (
    title: string,
    expected: HostileSignal['expected'],
    change: Record<string, unknown> = {},
    rewrite = (text: string): string => text,
  ): HostileSignal => {
    const decision = { ...decisionOn(gate, 'approve'), ...change };
    const text = rewrite(JSON.stringify(decision));
    return { title, payloads: [payload(text)], expected, decisionId: decision.decisionId };
  };
  const spoiled = (at: number): RawPayload[] =>
    Array.from({ length: at }, (_, index) =>
      index === at - 1 ? payload('{', 'nobody/knows') : payload(good()),
    );

  return [
    malformed('null', payload('null')),
    { title: 'no argument', expected: 'malformed' },
    malformed('an empty list of arguments'),
    malformed('what the SDK makes of undefined', payload('', 'binary/null')),
    malformed('a number', payload('42')),
    malformed('a string', payload('"approve"')),
    malformed('a list', payload(`[${good()}]`)),
    malformed('200 levels of nesting', payload(nested(200))),
    malformed('100,000 levels of nesting', payload(nested(100_000))),
    malformed('200 levels in a member', payload(good().replace(/}$/, `,"standing":${nested(200)}}`))),
    malformed('8,000 levels in a member', payload(good().replace(/}$/, `,"standing":${nested(8_000)}}`))),
    malformed(
      '100,000 levels in an edit',
      payload(JSON.stringify(decisionOn(gate, 'edit')).replace(/}$/, `,"arguments":${nested(100_000)}}`)),
    ),
    malformed('bad JSON', payload('{"v": 1,')),
    malformed('two texts in one', payload(good() + good())),
    malformed('no bytes', payload('')),
    malformed('a byte order mark', payload(`\ufeff${good()}`)),
    malformed('bytes that are no UTF-8', payload(new Uint8Array([0x7b, 0xff, 0xfe, 0x7d]))),
    malformed('an unknown encoding', payload(good(), 'nobody/knows')),
    malformed('an encrypted one', payload(good(), 'binary/encrypted')),
    malformed('json/protobuf', {
      metadata: { encoding: bytes('json/protobuf'), messageType: bytes('temporal.api.common.v1.Payloads') },
      data: bytes(good()),
    }),
    malformed('an encoding that is no text', payload(good(), new Uint8Array([0xff, 0xff]))),
    malformed('no metadata', { data: bytes(good()) }),
    malformed('metadata without an encoding', { metadata: { other: bytes('x') }, data: bytes(good()) }),
    malformed('a payload without anything', {}),
    malformed('a bad second argument', ...spoiled(2)),
    malformed('a good second argument', payload(good()), payload(good())),
    malformed('a bad ninth argument', ...spoiled(9)),
    malformed('a bad 500th argument', ...spoiled(500)),
    changed('another version', { v: 2 }),
    changed('a decision that there is not', { decision: 'aprove' }),
    changed('a decision from the prototype', { decision: 'constructor' }),
    changed('a key that is a number', { key: 42 }),
    changed('a key of 641 characters', { key: 'k'.repeat(641) }),
    changed('no root', { root: undefined }),
    changed('an approval without a hash', { payloadHash: undefined }),
    changed('a hash of another kind', { payloadHash: `md5:${'0'.repeat(64)}` }),
    changed('a decision id that is a list', { decisionId: [] }),
    changed('a person that is a string', { by: 'ann' }),
    changed('a person with a secret power', { by: { id: 'ann', verified: true } }),
    changed('a door that there is not', { via: 'telegram' }),
    changed('a reason that is an object', { reason: { text: 'yes' } }),
    changed('half a character in the reason', { reason: '\ud83e' }),
    changed('arguments in an approval', { arguments: { order: 'other', amount: '1000.00' } }),
    changed('a result in an approval', { result: 1 }),
    changed('a field that there is not', { force: true }),
    malformed('a prototype', payload(good().replace(/}$/, ',"__proto__":{"decision":"approve"}}'))),
    { title: 'a 1.9 MB string', payloads: [payload(`"${'x'.repeat(1_900_000)}"`)], expected: 'too_large' },
    { ...changed('a reason of 5 KiB', { reason: 'x'.repeat(5 * 1024) }), expected: 'too_large' },
    { ...changed('a proof of 17 KiB', { proof: 'x'.repeat(17 * 1024) }), expected: 'too_large' },
    readable('a member twice', 'malformed', {}, (text) =>
      text.replace('"decision":', '"decision":"reject","decision":'),
    ),
    readable('a made-up proof', 'unproven', { proof: 'a.b.c' }),
    readable('another hash', 'payload_changed', { payloadHash: `sha256:${'0'.repeat(64)}` }),
    readable('a kind that this gate does not take', 'not_allowed', { decision: 'unvote' }),
    readable("another run's root", 'unknown_key', { root: randomUUID() }),
    readable('a key that is none', 'unknown_key', { key: 'no key at all' }),
    { title: 'another signal', signalName: 'approve', payloads: [payload(good())], expected: 'ignored' },
    { title: 'another case', signalName: 'Decide', payloads: [payload(good())], expected: 'ignored' },
    {
      title: "Temporal's own prefix",
      signalName: '__temporal_x',
      payloads: [payload('{', 'nobody/knows')],
      expected: 'ignored',
    },
    { title: 'its stack trace', signalName: '__stack_trace', expected: 'ignored' },
    { title: 'its metadata', signalName: '__temporal_workflow_metadata', expected: 'ignored' },
  ];
}

/** A header is not part of a decision: whatever stands in it, the decision counts. */
export const badHeader: Record<string, RawPayload> = {
  trace: payload('{', 'nobody/knows'),
  empty: {},
  '': { metadata: {}, data: new Uint8Array([0xff]) },
};
