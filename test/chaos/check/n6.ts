// N6: every history replays, and the trail that is decoded from it tells the same story as the history itself, the
// ledger and the API: gates with their ends, effects with their keys and ends, and every decision that came.
import type { TrailFact } from '../../../src/core/trail-fact.ts';
import { readSignal } from '../../../src/core/signal.ts';
import type { Evidence, EvidenceOfRun, Violation } from '../evidence.ts';
import { fieldsOf, textOf } from './raw-event.ts';
import { stateBy, type Story } from './story.ts';

export function checkN6({ runs, replay }: Evidence, stories: readonly Story[]): Violation[] {
  return runs.flatMap((one) => {
    const current = stories.findLast((story) => story.run === one.run && story.isCurrent);
    const problems = [
      ...replayProblems(one, replay),
      ...seqProblems(one.trail),
      ...(current === undefined
        ? ['there is no history of it']
        : [
            ...differences('gates', gatesOf(current), gatesIn(one.trail)),
            ...differences('effects', effectsOf(current), effectsIn(one.trail)),
            ...untold(current, one.trail),
            ...viewProblems(one, current),
          ]),
    ];
    return problems.map((what): Violation => ({ invariant: 'N6', run: one.run, what }));
  });
}

function replayProblems({ run }: EvidenceOfRun, replay: Evidence['replay']): string[] {
  const own = replay.filter((one) => one.run === run);
  if (own.length === 0) return ['its history was not replayed'];
  return own.flatMap(({ failed }) =>
    failed === undefined ? [] : [`its history does not replay: ${failed}`],
  );
}

function seqProblems(trail: readonly TrailFact[]): string[] {
  const wrong = trail.findIndex(({ seq }, index) => seq !== index + 1);
  return wrong === -1 ? [] : [`fact ${wrong + 1} of its trail has seq ${trail[wrong]?.seq}`];
}

/** One line a gate that has ended, as the history has it. */
function gatesOf({ gates }: Story): string[] {
  return gates.flatMap(({ key, outcome }) =>
    outcome === undefined || outcome.implied === true ? [] : [line(key, outcome.state, outcome.decisionId)],
  );
}

function gatesIn(trail: readonly TrailFact[]): string[] {
  return trail.flatMap((fact) => {
    if (fact.superseded === true || !('key' in fact) || fact.key === undefined) return [];
    if (fact.type === 'approval_expired') return [line(fact.key, 'expired')];
    if (fact.type === 'approval_cancelled') return [line(fact.key, 'cancelled')];
    if (!fact.type.startsWith('approval_') || !('decision' in fact) || fact.decision === undefined) return [];
    const state = stateBy(fact.decision.decision);
    return state === undefined ? [] : [line(fact.key, state, fact.decision.decisionId)];
  });
}

function effectsOf({ effects }: Story): string[] {
  return effects.map(({ key, done, failed }) => {
    const end = done !== undefined ? 'done' : failed === undefined ? 'open' : failedAs(failed);
    return line(key, end);
  });
}

function failedAs(code: string): string {
  const isClear = ['approval_required', 'grant_invalid', 'payload_changed', 'effect_failed'].includes(code);
  return isClear ? 'failed' : 'in doubt';
}

/** The ends, and what was started and has none. */
function effectsIn(trail: readonly TrailFact[]): string[] {
  const open: string[] = [];
  const ended: string[] = [];
  const ends = { tool_result: 'done', effect_failed: 'failed', effect_in_doubt: 'in doubt' } as const;
  for (const fact of trail) {
    if (fact.superseded === true) continue;
    if (fact.type === 'effect_started') open.push(fact.idempotencyKey);
    if (fact.type !== 'tool_result' && fact.type !== 'effect_failed' && fact.type !== 'effect_in_doubt')
      continue;
    ended.push(line(fact.idempotencyKey, ends[fact.type]));
    const index = open.indexOf(fact.idempotencyKey);
    if (index !== -1) open.splice(index, 1);
  }
  return [...ended, ...open.map((key) => line(key, 'open'))];
}

function line(...parts: (string | undefined)[]): string {
  return parts.filter((part) => part !== undefined).join(' ');
}

function differences(what: string, recorded: readonly string[], told: readonly string[]): string[] {
  const rest = [...told];
  const missing = recorded.filter((one) => {
    const index = rest.indexOf(one);
    if (index !== -1) rest.splice(index, 1);
    return index === -1;
  });
  return [
    ...missing.map((one) => `${what}: the trail does not tell "${one}", which its history has`),
    ...rest.map((one) => `${what}: the trail tells "${one}", which its history does not have`),
  ];
}

/** Decisions that came before the last completed task and are in no fact: neither accepted nor refused. */
function untold({ lineage, place }: Story, trail: readonly TrailFact[]): string[] {
  const told = new Set(
    trail.flatMap((fact) =>
      'decision' in fact && fact.decision !== undefined ? [fact.decision.decisionId] : [],
    ),
  );
  const lastTask = lineage.steps.findLastIndex(({ type }) => type === 'task_completed');
  const sent = lineage.steps.slice(0, lastTask + 1).flatMap((step) => {
    if (step.type !== 'decide') return [];
    const { reading } = readSignal(step.sent.payloads);
    return reading.ok && reading.decision.root === place.root ? [reading.decision.decisionId] : [];
  });
  return [...new Set(sent)]
    .filter((id) => !told.has(id))
    .map((id) => `the trail does not tell of decision ${id}`);
}

/** `GET /runs/:id` lists what waits. */
function viewProblems({ view, status }: EvidenceOfRun, { gates, end }: Story): string[] {
  const fields = fieldsOf(view);
  const listed = Array.isArray(fields['pendingApprovals']) ? fields['pendingApprovals'] : [];
  const shown = listed.map((row) => String(fieldsOf(row)['key'])).sort();
  const pending = gates
    .filter(({ outcome }) => outcome === undefined)
    .map(({ key }) => key)
    .sort();
  const problems: string[] = [];
  if (end === undefined && shown.join() !== pending.join()) {
    problems.push(`it shows as pending [${shown.join(', ')}], its history has [${pending.join(', ')}]`);
  }
  if (fields['status'] !== undefined && fields['status'] !== status) {
    problems.push(`it shows the status "${textOf(fields['status'])}", it is "${status}"`);
  }
  if (end !== undefined && !['completed', 'rejected', 'failed', 'cancelled'].includes(status)) {
    problems.push(`it is "${status}", its history has ended (${end.how})`);
  }
  return problems;
}
