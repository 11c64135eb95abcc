// Signals that are a good decision but for what a seeded mutation made of them: its text, its members, its encoding,
// how many arguments there are, the signal's name, its headers, its size. Some are as good as before; what each
// one means is told by signal-meaning.ts.
import fc from 'fast-check';
import type { Decision } from '../../src/core/decision.ts';
import type { RawPayload } from '../../src/core/signal.ts';
import { decisionOn, type SeenGate } from './gates.ts';
import { bytes, payload, type HostileSignal } from './hostile-signals.ts';

export interface MutatedSignal extends Pick<HostileSignal, 'signalName' | 'payloads' | 'header'> {
  mutation: Mutation;
}

export const mutations = ['text', 'bytes', 'member', 'value', 'encoding', 'arguments', 'name', 'header', 'size', 'other gate'] as const; // prettier-ignore
export type Mutation = (typeof mutations)[number];

/** The same ones for the same gate and seed. */
export function mutatedSignals(gate: SeenGate, options: { seed: number; count: number }): MutatedSignal[] {
  const { seed, count } = options;
  return fc.sample(fc.oneof(...mutations.map((mutation) => mutated(mutation, gate))), {
    seed,
    numRuns: count,
  });
}

const json = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<unknown>(
      null,
      true,
      '',
      'approve',
      'reject',
      'comment',
      'edit',
      'withdraw',
      '\ud83e',
      1,
      0,
      -1,
    ),
    fc.string({ unit: 'binary', maxLength: 20 }),
    fc.integer({ min: -1000, max: 1000 }),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.string({ maxLength: 8 }), tie('value'), { maxKeys: 3 }),
  ),
})).value;

function mutated(mutation: Mutation, gate: SeenGate): fc.Arbitrary<MutatedSignal> {
  const good = fc
    .record({
      decisionId: fc.noBias(fc.uuid()),
      kind: fc.constantFrom('approve', 'approve', 'reject', 'comment'),
    })
    .map(({ decisionId, kind }) => decisionOn(gate, kind as 'approve', { decisionId, reason: 'as agreed' }));
  const text = good.map((decision) => JSON.stringify(decision));
  const arbitrary: Record<Mutation, () => fc.Arbitrary<Omit<MutatedSignal, 'mutation'>>> = {
    text: () => spoiledText(text).map((one) => ({ payloads: [payload(one)] })),
    bytes: () => spoiledBytes(text).map((one) => ({ payloads: [payload(one)] })),
    member: () => members(good).map((one) => ({ payloads: [payload(JSON.stringify(one))] })),
    value: () => json.map((one) => ({ payloads: [payload(JSON.stringify(one))] })),
    encoding: () => fc.tuple(text, encodings).map(([one, metadata]) => ({ payloads: [{ ...metadata, data: bytes(one) }] })),
    arguments: () => fc.array(oneArgument(text), { maxLength: 30 }).map((payloads) => ({ payloads })),
    name: () => fc.tuple(names, text).map(([signalName, one]) => ({ signalName, payloads: [payload(one)] })),
    header: () => fc.tuple(headers, text, fc.boolean()).map(([header, one, isGood]) => ({ header, payloads: [payload(isGood ? one : 'null')] })),
    size: () => sized(good).map((one) => ({ payloads: [payload(one)] })),
    'other gate': () => elsewhere(gate, good).map((one) => ({ payloads: [payload(JSON.stringify(one))] })),
  }; // prettier-ignore
  return arbitrary[mutation]().map((signal) => ({ ...signal, mutation }));
}

interface Place {
  from: number;
  length: number;
  /** what is put there: characters of JSON, mostly */
  put: string;
}

const place: fc.Arbitrary<Place> = fc.record({
  from: fc.nat(2_000),
  length: fc.nat(3),
  put: fc.oneof(fc.constantFrom('', '"', '{', '}', ',', ':', '\\', ' ', '1', '\u0000', 'é'), fc.string({ maxLength: 3 })),
}); // prettier-ignore

function spoiledText(text: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.tuple(text, fc.array(place, { minLength: 1, maxLength: 3 })).map(([good, places]) =>
    places.reduce((one, { from, length, put }) => {
      const at = from % (one.length + 1);
      return one.slice(0, at) + put + one.slice(at + length);
    }, good),
  );
}

function spoiledBytes(text: fc.Arbitrary<string>): fc.Arbitrary<Uint8Array> {
  const flips = fc.array(fc.tuple(fc.nat(2_000), fc.nat(255)), { minLength: 1, maxLength: 4 });
  return fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc.tuple(text, flips).map(([good, changes]) => {
      const data = bytes(good);
      for (const [at, byte] of changes) data[at % data.length] = byte;
      return data;
    }),
  );
}

/** Members replaced, taken away, and added. */
function members(good: fc.Arbitrary<Decision>): fc.Arbitrary<Record<string, unknown>> {
  const known = [
    ...['v', 'key', 'root', 'decision', 'payloadHash', 'decisionId', 'by', 'via', 'reason', 'proof'],
    ...['arguments', 'output', 'result', 'to', 'until', 'standing', 'force', '__proto__'],
  ];
  const change = fc.record({
    name: fc.constantFrom(...known),
    value: fc.oneof(json, fc.constant(undefined)),
  });
  return fc.tuple(good, fc.array(change, { minLength: 1, maxLength: 2 })).map(([decision, changes]) =>
    // defined, not assigned: a member named __proto__ is one
    Object.fromEntries([...Object.entries(decision), ...changes.map(({ name, value }) => [name, value] as const)]),
  ); // prettier-ignore
}

const encodings: fc.Arbitrary<RawPayload> = fc.oneof(
  fc.constant({}),
  fc.constantFrom<RawPayload>(
    { metadata: {} },
    { metadata: { encoding: bytes('json/plain'), extra: bytes('x') } },
  ),
  fc
    .oneof(
      fc.constantFrom(
        'json/protobuf',
        'binary/plain',
        'binary/null',
        'binary/encrypted',
        'JSON/plain',
        'json/plain ',
      ),
      fc.string({ unit: 'binary', maxLength: 12 }),
    )
    .map((encoding) => ({ metadata: { encoding: bytes(encoding) } })),
  fc.uint8Array({ maxLength: 12 }).map((encoding) => ({ metadata: { encoding } })),
);

function oneArgument(text: fc.Arbitrary<string>): fc.Arbitrary<RawPayload> {
  const poor = fc.constantFrom<RawPayload>({}, payload('{', 'nobody/knows'), payload(''), payload('null'));
  return fc.oneof(
    text.map((one) => payload(one)),
    poor,
  );
}

const names = fc.oneof(
  fc.constantFrom(
    'Decide',
    'decide ',
    'decided',
    'message',
    '__temporal_x',
    '__stack_trace',
    '__proto__',
    'constructor',
  ),
  fc.constantFrom('', 'x'.repeat(255), 'x'.repeat(1_001)),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 40 }),
);

const headers: fc.Arbitrary<Record<string, RawPayload>> = fc.dictionary(
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.oneof(
    fc.constantFrom<RawPayload>({}, payload('{', 'nobody/knows'), { metadata: {} }),
    fc.uint8Array({ maxLength: 40 }).map((data) => ({ metadata: { encoding: data }, data })),
    json.map((value) => payload(JSON.stringify(value))),
  ),
  { maxKeys: 6 },
);

/** Around the limits of a reason, of a decision and of a message, and deep ones. */
function sized(good: fc.Arbitrary<Decision>): fc.Arbitrary<string> {
  const reason = fc.constantFrom(4_095, 4_096, 4_097, 8_000);
  const whole = fc.constantFrom(16_383, 16_384, 16_385, 100_000, 290_000);
  const levels = fc.constantFrom(10, 63, 200, 10_000, 100_000);
  return fc.oneof(
    { weight: 6, arbitrary: fc.tuple(good, reason).map(([one, size]) => JSON.stringify({ ...one, reason: 'x'.repeat(size) })) },
    { weight: 6, arbitrary: fc.tuple(good, whole).map(([one, size]) => JSON.stringify(one).padEnd(size)) },
    { weight: 6, arbitrary: fc.tuple(good, levels).map(([one, depth]) => JSON.stringify(one).replace(/}$/, `,"standing":${'['.repeat(depth)}${']'.repeat(depth)}}`)) },
    { weight: 1, arbitrary: fc.constant(`"${'x'.repeat(1_900_000)}"`) },
  ); // prettier-ignore
}

/** In form a decision, but for something else: another gate, run, payload, kind, or with a proof of nobody. */
function elsewhere(gate: SeenGate, good: fc.Arbitrary<Decision>): fc.Arbitrary<Decision> {
  const change = fc.constantFrom<Partial<Decision>>(
    { key: gate.key.replace(gate.position, 'nowhere') },
    { key: 'no key at all' },
    { root: '00000000-0000-4000-8000-000000000000' },
    { payloadHash: `sha256:${'0'.repeat(64)}` },
    { decision: 'unvote' },
    { decision: 'withdraw' },
    { decision: 'amend', arguments: { order: 'other', amount: '1000.00' } },
    { decision: 'edit', arguments: { order: 'other', amount: -1 } },
    { decision: 'edit', payloadHash: gate.hash },
    { proof: 'a.b.c' },
  );
  return fc.tuple(good, change).map(([decision, changes]) => ({ ...decision, ...changes }));
}
