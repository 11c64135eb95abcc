// The result of a bench: its goals, and the text for people.
import type { DecisionsResult } from './decisions.ts';
import type { HttpResult } from './http.ts';
import type { Cost, LatencyResult } from './latency.ts';
import type { ListResult } from './list.ts';
import type { MemoryResult } from './memory.ts';
import type { Summary } from './numbers.ts';
import { kills, type RecoveryResult } from './recovery.ts';
import type { SideName } from './worker-process.ts';

export interface BenchResult {
  machine: { cores: number; memoryGiB: number; platform: string; node: string; temporal: string };
  cost?: Record<SideName, Cost>;
  latency?: Omit<LatencyResult, 'cost'>;
  decisions?: DecisionsResult;
  memory?: MemoryResult;
  list?: ListResult;
  recovery?: Record<SideName, Partial<RecoveryResult>>;
  http?: HttpResult;
}

export interface Goal {
  name: string;
  goal: string;
  value: number;
  met: boolean;
}

/** The budget of docs/decisions.md: what a gated step may cost beside a hand-written workflow. */
const budget: Cost = { events: 23, workflowTasks: 3 };
/** A page is flat when many pending cost at most this much more than few; less is noise of a millisecond. */
const flat = 1.5;

export function goalsOf({ cost, latency, decisions, memory, list, recovery }: BenchResult): Goal[] {
  const goals: Goal[] = [];
  const atMost = (name: string, value: number | undefined, limit: number, unit = ''): void => {
    if (value !== undefined) goals.push({ name, goal: `≤ ${limit}${unit}`, value, met: value <= limit });
  };
  atMost('events of a gated run', cost?.countersign.events, budget.events);
  atMost('workflow tasks of a gated run', cost?.countersign.workflowTasks, budget.workflowTasks);
  atMost('signal → effect, p50 against hand-written', latency?.ratio.p50, 1.5, ' ×');
  if (decisions !== undefined) {
    const { ratio } = decisions.crowd;
    const name = 'decisions a second against hand-written';
    goals.push({ name, goal: '≥ 0.75 ×', value: ratio, met: ratio >= 0.75 });
  }
  atMost('memory of a pending run against hand-written', memory?.ratio, 1.1, ' ×');
  atMost(`a list page with ${list?.many.pending ?? 0} pending, p50`, list?.many.p50, 30, ' ms');
  atMost('a list page, many pending against few', list?.ratio, flat, ' ×');
  for (const kill of kills) {
    const slowest = recovery?.countersign[kill]?.untilEffectMs.p95;
    atMost(`recovery, killed ${killText[kill]}`, slowest, 5_000, ' ms');
  }
  return goals;
}

const killText = { idle: 'idle', insideRecording: 'inside a recording', insideEffect: 'inside the effect' };

export function textOf(result: BenchResult): string {
  const { machine, cost, latency, decisions, memory, list, recovery, http } = result;
  const rows: [name: string, handWritten: string, countersign: string, ratio: string][] = [];
  if (cost !== undefined) {
    const { handWritten, countersign } = cost;
    rows.push(['events a run', String(handWritten.events), String(countersign.events), '']);
    rows.push([
      'workflow tasks a run',
      String(handWritten.workflowTasks),
      String(countersign.workflowTasks),
      '',
    ]);
  }
  if (latency !== undefined) {
    const { handWritten, countersign } = latency.signalToEffectMs;
    const { ratio } = latency;
    rows.push(['signal → effect, p50', ms(handWritten.p50), ms(countersign.p50), times(ratio.p50)]);
    rows.push(['signal → effect, p95', ms(handWritten.p95), ms(countersign.p95), times(ratio.p95)]);
  }
  if (decisions !== undefined) {
    const { pending, crowd, atOnce } = decisions;
    for (const [how, load] of [
      [`${crowd.deciders} at a time`, crowd],
      ['all at once', atOnce],
    ] as const) {
      const { handWritten, countersign } = load.perSecond;
      const name = `decisions a second, ${pending} pending, ${how}`;
      rows.push([name, String(handWritten.median), String(countersign.median), times(load.ratio)]);
      const { timedOutTasks } = load;
      const tasks = 'timed out tasks a decision in that';
      rows.push([tasks, String(timedOutTasks.handWritten), String(timedOutTasks.countersign), '']);
    }
  }
  if (memory !== undefined) {
    const { handWritten, countersign } = memory.perRunKiB;
    const name = `memory a pending run, ${memory.pending} pending`;
    rows.push([name, `${handWritten} KiB`, `${countersign} KiB`, times(memory.ratio)]);
  }
  for (const kill of kills) {
    const theirs = recovery?.handWritten[kill];
    const ours = recovery?.countersign[kill];
    if (ours === undefined) continue;
    const name = `killed ${killText[kill]}`;
    rows.push([`${name}: effect starts, p95`, msOf(theirs?.untilEffectMs), msOf(ours.untilEffectMs), '']);
    rows.push([`${name}: run closed, p95`, msOf(theirs?.untilClosedMs), msOf(ours.untilClosedMs), '']);
  }
  for (const page of list === undefined ? [] : [list.few, list.many]) {
    rows.push([`list page, ${page.pending} pending, p50`, '', ms(page.p50), '']);
  }
  if (http !== undefined) {
    rows.push(['HTTP approve → 200, p50', '', ms(http.approveTo200Ms.p50), '']);
    rows.push(['HTTP approve → 200, p95', '', ms(http.approveTo200Ms.p95), '']);
    if (http.answered202 > 0) rows.push(['HTTP approve → 202', '', String(http.answered202), '']);
  }
  const goals = goalsOf(result).map(({ name, goal, value, met }) => [
    met ? 'met' : 'NOT MET',
    name,
    String(value),
    goal,
  ]);
  const { cores, memoryGiB, platform, node, temporal } = machine;
  return [
    `${cores} cores, ${memoryGiB} GiB, ${platform}, Node ${node}, Temporal CLI ${temporal}`,
    '',
    ...table([['', 'hand-written', 'countersign', 'ratio'], ...rows]),
    '',
    ...table([['goal', '', 'measured', 'limit'], ...goals]),
  ].join('\n');
}

function ms(value: number): string {
  return `${value} ms`;
}

function msOf(value: Summary | undefined): string {
  return value === undefined ? '-' : `${Math.round(value.p95)} ms`;
}

function times(value: number): string {
  return `${value} ×`;
}

function table(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? '').length)),
  );
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}
