// N4: the hash of what the ledger got = the frozen hash = the hash in the decision. All are computed anew here.
import type { CaseRecord } from '../../../src/core/case.ts';
import type { Evidence, LedgerLine, Violation } from '../evidence.ts';
import { approvedCase, effectHash, sendersOf, sendingsOf, type Sending } from './effects.ts';
import { callHash, hashOf } from './independent.ts';
import { textOf } from './raw-event.ts';
import { idsOf, isDecision, repliesOf } from './replies.ts';
import type { Gate, Story } from './story.ts';

export function checkN4({ calls, ledger }: Evidence, stories: readonly Story[]): Violation[] {
  const sendings = sendingsOf(stories);
  return [
    ...ledger.flatMap((line) => sentProblems(line, sendings)),
    ...sendings.flatMap(scheduledProblems),
    ...stories.flatMap(({ run, gates }) =>
      gates.flatMap((gate) =>
        gateProblems(gate, calls).map((what) => violation(run, `${gate.key}: ${what}`)),
      ),
    ),
    ...calls.flatMap(shownProblems),
  ];
}

/** Every request that reached the target, carried out or not. */
function sentProblems(line: LedgerLine, sendings: readonly Sending[]): Violation[] {
  const senders = sendersOf(line, sendings);
  const [first] = senders;
  if (first === undefined) return []; // N3 has it
  const isMeant = senders.some((sending) => {
    const { tool, payloadHash } = sending.effect.input;
    const got = callHash(tool, line.body);
    const approved = approvedCase(sending);
    return got === payloadHash && (approved === undefined || got === effectHash(approved));
  });
  if (isMeant) return [];
  const { tool, position } = first.effect.input;
  const approved = approvedCase(first);
  const meant = approved === undefined ? first.effect.input.payloadHash : effectHash(approved);
  const what = `the ledger got ${short(callHash(tool, line.body))} from "${position}", frozen was ${short(meant)}`;
  return [violation(first.story.run, what)];
}

/** An effect that was scheduled under a grant for another payload than was approved. */
function scheduledProblems(sending: Sending): Violation[] {
  const { story, effect } = sending;
  const { position, payloadHash, grant } = effect.input;
  const approved = approvedCase(sending);
  if (grant === undefined || approved === undefined || effect.done === undefined) return [];
  const hashes = { input: payloadHash, grant: grant.payloadHash, result: effect.done.payloadHash };
  return Object.entries(hashes).flatMap(([where, hash]) =>
    hash === effectHash(approved)
      ? []
      : [
          violation(
            story.run,
            `"${position}" ran with the ${where} hash ${short(hash)}, approved was another one`,
          ),
        ],
  );
}

function gateProblems(gate: Gate, calls: Evidence['calls']): string[] {
  const cases = [...gate.asked, ...gate.verdicts.flatMap(({ record }) => (record.case ? [record.case] : []))];
  return [
    ...cases.flatMap(caseProblems),
    ...gate.verdicts.flatMap((verdict) => verdictProblems(verdict, calls)),
  ];
}

function caseProblems(frozen: CaseRecord): string[] {
  const { phase, tool, arguments: args, step, question, doubt, payloadHash } = frozen;
  const payload = {
    before: { tool, arguments: args },
    step: { step, question },
    'in-doubt': { tool, arguments: args, idempotencyKey: doubt?.idempotencyKey },
  }[phase];
  return hashOf(payload) === payloadHash
    ? []
    : [`the case says ${short(payloadHash)}, it is ${short(hashOf(payload))}`];
}

/** An accepted decision was made on the hash that the gate had, and is the one that was sent. */
function verdictProblems(
  { record, case: shown }: Gate['verdicts'][number],
  calls: Evidence['calls'],
): string[] {
  const { decision, verdict, grant, case: anew } = record;
  if (verdict !== 'accepted') return [];
  const { payloadHash, decisionId } = decision;
  const problems: string[] = [];
  if (payloadHash !== undefined && payloadHash !== shown.payloadHash) {
    problems.push(
      `decision ${decisionId} on ${short(payloadHash)} was accepted, frozen was ${short(shown.payloadHash)}`,
    );
  }
  const approved = anew ?? shown;
  if (grant !== undefined && grant.payloadHash !== effectHash(approved)) {
    problems.push(
      `decision ${decisionId} granted ${short(grant.payloadHash)}, approved was ${short(effectHash(approved))}`,
    );
  }
  const hashes = calls.flatMap((call) =>
    isDecision(call) && call.key === record.key && idsOf(call).includes(decisionId) ? [call.payloadHash] : [],
  );
  const isAsSent = hashes.length === 0 || hashes.some((hash) => hash === undefined || hash === payloadHash);
  if (!isAsSent) problems.push(`decision ${decisionId} is recorded on another hash than it was sent with`);
  return problems;
}

/** What a reader was shown has the hash that they were shown. */
function shownProblems(call: Evidence['calls'][number]): Violation[] {
  if (call.op !== 'read') return [];
  return repliesOf(call).flatMap(({ status, body }) => {
    const { tool, arguments: args, payloadHash, phase } = body;
    if (status !== 200 || phase !== 'before' || typeof tool !== 'string' || args === undefined) return [];
    if (callHash(tool, args) === payloadHash) return [];
    const what = `call ${call.id} was shown arguments of ${short(callHash(tool, args))} under ${short(textOf(payloadHash))}`;
    return [violation(call.run, what)];
  });
}

function violation(run: string, what: string): Violation {
  return { invariant: 'N4', run, what };
}

function short(hash: string | undefined): string {
  return (hash ?? 'no hash').slice(0, 19);
}
