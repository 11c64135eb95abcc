// N3: the ledger has exactly one effect for an approved gate, and none for any other. The only other legal end is
// in doubt, with at most one. Whether the target did it is the ledger's word alone.
import type { Evidence, LedgerLine, Violation } from '../evidence.ts';
import {
  approvedCase,
  distinct,
  isCarriedOut,
  needsApproval,
  sendersOf,
  sendingsOf,
  type Sending,
} from './effects.ts';
import { canonical } from './independent.ts';
import type { Gate, Story } from './story.ts';

/** Codes of a failure that says for sure that it did not happen. */
const clearCodes = ['approval_required', 'grant_invalid', 'payload_changed', 'effect_failed'];

export function checkN3(evidence: Evidence, stories: readonly Story[]): Violation[] {
  const done = evidence.ledger.filter(isCarriedOut);
  const sendings = sendingsOf(stories);
  return [
    ...done.flatMap((line) => foreign(line, sendings, evidence)),
    ...repeated(done, sendings),
    ...sendings.flatMap((sending) => untrue(sending, done, sendings)),
    ...stories.flatMap((story) =>
      story.isCurrent ? story.gates.flatMap((gate) => missing(story, gate)) : [],
    ),
  ];
}

/** A line that no run sent, or that none may have sent. */
function foreign(line: LedgerLine, sendings: readonly Sending[], evidence: Evidence): Violation[] {
  const senders = sendersOf(line, sendings);
  const [first] = senders;
  const what = `the ledger has an effect with ${tell(line)}`;
  if (first === undefined)
    return [{ invariant: 'N3', what: `${what}, and no run has one with that key or body` }];
  const { tool, position } = first.effect.input;
  if (!needsApproval(evidence, tool) || senders.some((one) => approvedCase(one) !== undefined)) return [];
  const why = `"${tool}" at "${position}" was never approved`;
  return [{ invariant: 'N3', run: first.story.run, what: `${what}, and ${why}` }];
}

/** More lines than effects: one a key; without keys one for each time that the effect was scheduled. */
function repeated(done: readonly LedgerLine[], sendings: readonly Sending[]): Violation[] {
  const groups = new Map<string, LedgerLine[]>();
  for (const line of done) {
    const name = line.key ?? canonical(line.body);
    groups.set(name, [...(groups.get(name) ?? []), line]);
  }
  return [...groups.values()].flatMap((lines): Violation[] => {
    const [line] = lines;
    if (line === undefined) return [];
    const senders = sendersOf(line, sendings);
    const allowed = line.key === null ? distinct(senders).length : 1;
    if (lines.length <= Math.max(1, allowed)) return [];
    const run = senders[0]?.story.run;
    const what = `the ledger has ${lines.length} effects with ${tell(line)}, ${Math.max(1, allowed)} allowed`;
    return [{ invariant: 'N3', ...(run === undefined ? {} : { run }), what }];
  });
}

/** What the run recorded of an effect, against the ledger. */
function untrue(sending: Sending, done: readonly LedgerLine[], all: readonly Sending[]): Violation[] {
  const { story, effect } = sending;
  const lines = done.filter((line) => sendersOf(line, [sending]).length > 0);
  const said = `effect "${effect.input.position}" (key ${effect.key})`;
  const violation = (what: string): Violation[] => [
    { invariant: 'N3', run: story.run, what: `${said} ${what}` },
  ];
  if (effect.done !== undefined && lines.length === 0)
    return violation('is recorded as done, and is not in the ledger');
  if (effect.failed === undefined || !clearCodes.includes(effect.failed) || lines.length === 0) return [];
  // a lineage that a reset cut off, or another round without a key, may have done it
  const others = all.filter(({ effect: other }) => other.id !== effect.id && other.key === effect.key);
  const senders = distinct(lines.flatMap((line) => sendersOf(line, all)));
  if (others.length > 0 || lines.length < senders.length) return [];
  return violation(`is recorded as surely not done (${effect.failed}), and it is in the ledger`);
}

/** An approved gate whose run goes on, or ended as planned, without the effect. */
function missing({ run, gates, effects, end }: Story, gate: Gate): Violation[] {
  const { outcome, case: approved, position } = gate;
  if (outcome?.state !== 'approved' || approved.phase !== 'before') return [];
  const own = effects.filter(({ input }) => input.position === position);
  if (own.length > 0)
    return own.length === 1 || isRetried(gate, own.length, gates) ? [] : scheduledTwice(run, position);
  // a run that was cancelled, terminated or failed by name may have ended before it; an open one has N5
  if (end?.how !== 'completed') return [];
  return [
    { invariant: 'N3', run, what: `"${position}" was approved, and the run completed without its effect` },
  ];
}

/** A person said that it did not happen, try again. */
function isRetried({ position }: Gate, times: number, gates: readonly Gate[]): boolean {
  const retries = gates.filter(
    ({ outcome, case: asked }) => outcome?.state === 'approved' && asked.doubt?.retryPosition === position,
  );
  return times <= 1 + retries.length;
}

function scheduledTwice(run: string, position: string): Violation[] {
  return [
    { invariant: 'N3', run, what: `the effect "${position}" was scheduled more often than it was approved` },
  ];
}

function tell({ key, body }: LedgerLine): string {
  return key === null ? `no key and the body ${canonical(body)}` : `the key ${key}`;
}
