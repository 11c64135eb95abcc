// What a run did, as its raw histories tell it: gates with their verdicts and outcomes, effects with their ends.
// One story a lineage; the current one is the last of its run.
import type { CaseRecord, EffectRecord, PerformInput, VerdictRecord } from '../../../src/core/case.ts';
import type { Evidence } from '../evidence.ts';
import { readLineages, type Lineage, type Step } from './history.ts';
import { effectKey, gateKey } from './independent.ts';
import { fieldsOf, textOf } from './raw-event.ts';

export interface Place {
  workflowId: string;
  root: string;
  prefix?: string;
}

export interface Verdict {
  /** of its step */
  index: number;
  record: VerdictRecord;
  /** as the gate was when it was judged */
  case: CaseRecord;
}

export interface Outcome {
  state: 'approved' | 'rejected' | 'withdrawn' | 'responded' | 'expired' | 'cancelled';
  decisionId?: string;
  /** of an expiry: when the history has it, milliseconds since the epoch */
  at?: number;
  /** the run ended without an answer: nothing in the history says so of the gate */
  implied?: true;
}

export interface Gate {
  key: string;
  position: string;
  /** every time that it was asked, the first case of each */
  asked: CaseRecord[];
  /** as amended or edited */
  case: CaseRecord;
  /** index of a step after which it surely was open */
  openAt: number;
  verdicts: Verdict[];
  outcome?: Outcome;
}

export interface Effect {
  /** what it must have sent */
  key: string;
  input: PerformInput;
  /** names the event that scheduled it, also where a reset copied it */
  id: string;
  done?: Partial<EffectRecord>;
  /** a code of the product's, or `unclear` */
  failed?: string;
}

export interface Story {
  run: string;
  place: Place;
  lineage: Lineage;
  isCurrent: boolean;
  gates: Gate[];
  effects: Effect[];
  /** on gates that were never asked */
  strayVerdicts: VerdictRecord[];
  end?: Extract<Step, { type: 'ended' }>;
}

const settles: Readonly<Record<string, Outcome['state']>> = {
  approve: 'approved',
  edit: 'approved',
  reject: 'rejected',
  withdraw: 'withdrawn',
  respond: 'responded',
};

/** How a gate ends by an accepted decision of that kind; undefined: it stays open. */
export function stateBy(kind: string): Outcome['state'] | undefined {
  return settles[kind];
}

export function readStories({ runs }: Pick<Evidence, 'runs'>): Story[] {
  const lineages = new Map(runs.map(({ run, histories }) => [run, readLineages(histories)]));
  return [...lineages].flatMap(([run, all]) =>
    all.map((lineage) => {
      const place = placeOf(lineage, lineages);
      const isCurrent = all.findLast((other) => placeOf(other, lineages).root === place.root) === lineage;
      return tell(run, lineage, place, isCurrent);
    }),
  );
}

/** A child takes part in its parent's root by its place there, whatever it was handed. */
function placeOf(lineage: Lineage, lineages: ReadonlyMap<string, Lineage[]>, depth = 0): Place {
  const { workflowId, firstRunId, steps } = lineage;
  const started = steps.find((step) => step.type === 'started');
  const { parent, handed } = started?.type === 'started' ? started : {};
  if (parent === undefined || !workflowId.startsWith(`${parent}/`)) return { workflowId, root: firstRunId };
  const position = workflowId.slice(parent.length + 1);
  const above = lineages.get(parent)?.at(-1);
  if (above === undefined || depth > 10) {
    const { root, prefix } = fieldsOf(handed);
    return { workflowId, root: textOf(root) || firstRunId, prefix: textOf(prefix) || position };
  }
  const { root, prefix } = placeOf(above, lineages, depth + 1);
  return { workflowId, root, prefix: prefix === undefined ? position : `${prefix}/${position}` };
}

function tell(run: string, lineage: Lineage, place: Place, isCurrent: boolean): Story {
  const gates = new Map<string, Gate>();
  const effects = new Map<string, Effect>();
  const strayVerdicts: VerdictRecord[] = [];
  let end: Story['end'];
  for (const [index, step] of lineage.steps.entries()) {
    switch (step.type) {
      case 'started': {
        const asked = fieldsOf(step.input)['case'] as CaseRecord | undefined;
        if (step.workflowType !== 'requestApproval' || asked === undefined) break;
        ask(gates, gateKey(place.workflowId, asked.position, place.root), asked, index);
        break;
      }
      case 'case':
        ask(gates, step.record.key, step.record, Infinity);
        break;
      case 'memo':
        showMemo(gates, step, index);
        break;
      case 'verdict':
        if (!judge(gates, step.record, index)) strayVerdicts.push(step.record);
        break;
      case 'effect':
        effects.set(`${step.execution}/${step.eventId}`, {
          id: `${step.runId}/${step.eventId}`,
          key: effectKey(place, step.input.position),
          input: step.input,
        });
        break;
      case 'effect_done':
      case 'effect_failed': {
        const effect = effects.get(`${step.execution}/${step.effect}`);
        if (effect !== undefined && step.type === 'effect_done') effect.done = step.record;
        if (effect !== undefined && step.type === 'effect_failed') effect.failed = step.code;
        break;
      }
      case 'ended':
        end = step;
        break;
      default:
    }
  }
  if (end !== undefined) {
    for (const gate of gates.values()) gate.outcome ??= { state: 'cancelled', implied: true };
  }
  return {
    ...{ run, place, lineage, isCurrent, strayVerdicts },
    gates: [...gates.values()],
    effects: [...effects.values()],
    ...(end === undefined ? {} : { end }),
  };
}

function ask(gates: Map<string, Gate>, key: string, asked: CaseRecord, openAt: number): void {
  const gate = gates.get(key);
  if (gate !== undefined) gate.asked.push(asked);
  else gates.set(key, { key, position: asked.position, asked: [asked], case: asked, openAt, verdicts: [] });
}

/** The memo says that a gate is open, and how one ended that nobody decided. */
function showMemo(
  gates: Map<string, Gate>,
  { position, state, at }: Extract<Step, { type: 'memo' }>,
  index: number,
): void {
  const gate = [...gates.values()].findLast((one) => one.position === position);
  if (gate === undefined) return;
  if (state === 'pending') gate.openAt = Math.min(gate.openAt, index);
  if (state === 'expired' || state === 'cancelled') gate.outcome ??= { state, at };
}

function judge(gates: Map<string, Gate>, record: VerdictRecord, index: number): boolean {
  const gate = gates.get(record.key);
  if (gate === undefined) return false;
  gate.verdicts.push({ index, record, case: gate.case });
  if (record.verdict !== 'accepted') return true;
  const { decision, decisionId } = record.decision;
  const state = stateBy(decision);
  if (state !== undefined) gate.outcome ??= { state, decisionId };
  gate.case = record.case ?? gate.case;
  return true;
}
