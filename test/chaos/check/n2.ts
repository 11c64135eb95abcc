// N2: one winner a key, the first in history order that completes, seen by all who look after the first answer
// that named it. A workflow reset opens a gate again, so each lineage of a run is a register of its own.
import { readSignal } from '../../../src/core/signal.ts';
import type { Call, Evidence, Violation } from '../evidence.ts';
import { gateKey } from './independent.ts';
import { idsOf, isDecision, isOpenState, statementsOf, type Statement } from './replies.ts';
import { registerProblem, type Look } from './register.ts';
import { stateBy, type Gate, type Outcome, type Story } from './story.ts';

/** A call that spans the moment of a reset may have seen either side of it; so long do the two clocks differ at most. */
const resetSlackMs = 1_000;

export function checkN2({ calls }: Evidence, stories: readonly Story[]): Violation[] {
  const statements = calls.flatMap(statementsOf);
  const keys = [...new Set(statements.map(({ key }) => key))];
  return [
    ...stories.flatMap(recordedProblems),
    ...keys.flatMap((key) => keyProblems(key, statements, calls, stories)),
  ];
}

function keyProblems(
  key: string,
  all: readonly Statement[],
  calls: readonly Call[],
  stories: readonly Story[],
): Violation[] {
  const statements = all.filter((one) => one.key === key);
  const asking = stories.filter(({ gates }) => gates.some((gate) => gate.key === key));
  const run = asking[0]?.run ?? statements[0]?.call.run;
  const violation = (what: string): Violation => ({
    invariant: 'N2',
    ...(run === undefined ? {} : { run }),
    what: `${key}: ${what}`,
  });
  const outcomes = asking
    .flatMap(({ gates }) => gates.filter((gate) => gate.key === key))
    .map(({ outcome }) => outcome);
  const unknown = statements.filter(
    (one) => !isOpenState(one.state) && !outcomes.some((outcome) => fits(one, outcome)),
  );
  const problems = unknown.map((one) => violation(`${tell(one)}, and no history of it ended so`));

  const family = stories.filter((story) => story.run === run);
  const begins = [...new Set(family.map(({ lineage }) => lineage.began))].sort((a, b) => a - b);
  for (const [index, from] of begins.entries()) {
    const after = index === 0 ? -Infinity : from + resetSlackMs;
    const before = (begins[index + 1] ?? Infinity) - resetSlackMs;
    const within = statements.filter(
      ({ begun, ended }) => begun > after && (ended < before || before === Infinity),
    );
    const problem = registerProblem(withWinnersNamed(within).map(toLook), (value) =>
      writeBegun(value, key, calls),
    );
    if (problem !== undefined) problems.push(violation(tellProblem(problem)));
  }
  return problems;
}

type NamedLook = Look & { statement: Statement };

/** An answer that only says how it ended (a comment's, a memo's) is of the winner that others name. */
function withWinnersNamed(statements: readonly Statement[]): Statement[] {
  return statements.map((one) => {
    if (one.decisionId !== undefined || isOpenState(one.state)) return one;
    const named = statements.find(({ state, decisionId }) => state === one.state && decisionId !== undefined);
    return named?.decisionId === undefined ? one : { ...one, decisionId: named.decisionId };
  });
}

function toLook(statement: Statement): NamedLook {
  const { state, decisionId, begun, ended } = statement;
  const value = isOpenState(state)
    ? {}
    : { value: decisionId === undefined ? state : `${state} by ${decisionId}` };
  return { ...value, begun, ended, statement };
}

function writeBegun(value: string, key: string, calls: readonly Call[]): number | undefined {
  const senders = calls.filter(
    (call) => call.key === key && isDecision(call) && idsOf(call).some((id) => value.endsWith(` by ${id}`)),
  );
  return senders.length === 0 ? undefined : Math.min(...senders.map(({ begun }) => begun));
}

function fits({ state, decisionId }: Statement, outcome: Outcome | undefined): boolean {
  return outcome?.state === state && (decisionId === undefined || decisionId === outcome.decisionId);
}

/** What the history alone shows to be wrong. */
function recordedProblems(story: Story): Violation[] {
  const { run, place, gates } = story;
  const what = gates.flatMap((gate) => {
    const { key, position, asked, verdicts } = gate;
    const expected = gateKey(place.workflowId, position, place.root);
    const settling = verdicts.filter(
      ({ record }) => record.verdict === 'accepted' && stateBy(record.decision.decision) !== undefined,
    );
    return [
      ...(key === expected ? [] : [`the gate at "${position}" has the key ${key}, and not ${expected}`]),
      ...(asked.length === 1 ? [] : [`${key} was asked ${asked.length} times in one execution chain`]),
      ...(settling.length <= 1 ? [] : [`${key} accepted ${settling.length} decisions that each end it`]),
      ...overtaken(story, gate),
      ...clockProblems(gate),
    ];
  });
  return what.map((text) => ({ invariant: 'N2', run, what: text }));
}

/** Decisions that were there before the winner and were not judged before it. */
function overtaken({ lineage, place }: Story, { key, openAt, verdicts, outcome }: Gate): string[] {
  const winnerId = outcome?.decisionId;
  const winning = verdicts.find(
    ({ record }) => record.decision.decisionId === winnerId && record.verdict === 'accepted',
  );
  if (winnerId === undefined || winning === undefined) return [];
  const { steps } = lineage;
  // a check that Temporal ended names no decision, so it may have been any
  if (steps.some((step) => step.type === 'check_failed' && step.key === key)) return [];
  const before = verdicts
    .filter(({ index }) => index < winning.index)
    .map(({ record }) => record.decision.decisionId);
  const sent = steps.slice(openAt + 1, winning.index).flatMap((step) => {
    if (step.type !== 'decide') return [];
    const { reading } = readSignal(step.sent.payloads);
    return reading.ok && reading.decision.key === key && reading.decision.root === place.root
      ? [reading.decision.decisionId]
      : [];
  });
  const refusedBefore = before.filter((id) => id === winnerId).length;
  const winner = sent.flatMap((id, index) => (id === winnerId ? [index] : []))[refusedBefore];
  if (winner === undefined) return [];
  const passed = [...new Set(sent.slice(0, winner))].filter((id) => id !== winnerId && !before.includes(id));
  return passed.map(
    (id) => `${key}: decision ${winnerId} won, and ${id} was there before it and was not judged`,
  );
}

/** The clock wins at the deadline: only a door's proof from before it counts later, and none loses to it sooner. */
function clockProblems({ key, case: asked, verdicts, outcome }: Gate): string[] {
  const { expiresAt } = asked;
  const isEarly = outcome?.state === 'expired' && (outcome.at ?? Infinity) < expiresAt;
  const late = verdicts.filter(({ record }) => {
    const { verdict, takenUpAt = 0, decision } = record;
    if (verdict !== 'accepted' || takenUpAt < expiresAt) return false;
    const signedAt = signedAtOf(decision.proof);
    return signedAt === undefined || signedAt >= expiresAt || decision.via === 'signal';
  });
  return [
    ...(isEarly ? [`${key} expired before its deadline`] : []),
    ...late.map(({ record }) => `${key} accepted decision ${record.decision.decisionId} after its deadline`),
  ];
}

/** Milliseconds; of a compact JWS, whose signature is for the product to check. */
function signedAtOf(proof: string | undefined): number | undefined {
  const [, payload] = proof?.split('.') ?? [];
  if (payload === undefined) return undefined;
  const { iat } = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')) as { iat?: unknown };
  return typeof iat === 'number' ? iat * 1_000 : undefined;
}

function tell({ call, state, decisionId }: Statement): string {
  const winner = decisionId === undefined ? '' : ` by decision ${decisionId}`;
  return `call ${call.id} (${call.op} of ${call.person}) was told "${state}"${winner}`;
}

function tellProblem(found: NonNullable<ReturnType<typeof registerProblem<NamedLook>>>): string {
  switch (found.problem) {
    case 'two-winners':
      return `two winners: ${tell(found.first.statement)}, ${tell(found.second.statement)}`;
    case 'named-too-early':
      return `${tell(found.look.statement)} ${Math.round(found.begun - found.look.ended)} ms before that was sent`;
    case 'open-too-late': {
      const late = Math.round(found.open.begun - found.named.ended);
      return `${tell(found.named.statement)}; ${tell(found.open.statement)}, asked ${late} ms after that`;
    }
  }
}
