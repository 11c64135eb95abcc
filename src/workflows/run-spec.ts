// Sandbox. Runs a spec: its steps in order, each prepared and recorded before it acts.
import { ApplicationFailure, CancelledFailure, patched, workflowInfo } from '@temporalio/workflow';
import type { Carried } from '../core/carried.ts';
import type { SpecRef } from '../core/case.ts';
import type { FailureCode } from '../core/failures.ts';
import { utf8Length } from '../core/json-value.ts';
import type { Json } from '../core/json.ts';
import { stepIdProblem } from '../core/position.ts';
import type { RunSpecInput, Scope } from '../core/recording.ts';
import type { Actor } from '../core/verdict.ts';
import type { ApprovalStep, Spec, Step, ToolStep } from '../core/spec/spec.ts';
import { showStatus } from './board.ts';
import { carry, continueWith, restore } from './carry.ts';
import { checkPayload, recorded } from './freeze.ts';
import { openGate, type GateEnd } from './gate.ts';
import { performOrAsk } from './in-doubt.ts';
import { continueAfterEvents, continuedInputBytes, freezePolicy } from './policies.ts';
import { record } from './record.ts';
import { currentRun, failure, releasePosition, takePosition } from './run.ts';
import { goOn } from './standstill.ts';

/** How a spec run ends when it does not fail and Temporal does not cancel it; the result of the workflow. */
export type RunSpecResult = { status: 'completed'; output?: Json } | RefusedEnd;

/** A withdrawal ends the run `cancelled`; Temporal closes it as Completed, since nobody asked it to cancel. */
export interface RefusedEnd {
  status: 'rejected' | 'cancelled';
  /** the position of the gate that ended it */
  step: string;
  gate: 'rejected' | 'expired' | 'withdrawn';
}

type StepEnd = { output: Json } | { end: RefusedEnd };

/** What every gate and effect of a run is told of it. */
interface Context {
  scope: Scope;
  spec?: SpecRef;
  requestedBy?: Actor;
}

/** @throws ApplicationFailure with a code of core/failures.ts; CancelledFailure */
export async function runSpec(input: RunSpecInput): Promise<RunSpecResult> {
  restore(continuedOf(input)?.carried);
  const problem = startProblem(input) ?? laterStartProblem(input);
  if (problem !== undefined) throw failure('invalid_start', problem);
  const spec = input.spec as unknown as Spec;
  const context: Context = {
    scope: { input: input.input, steps: { ...input.continued?.steps } },
    ...(input.specRef === undefined ? {} : { spec: input.specRef }),
    ...(isActor(input.startedBy) ? { requestedBy: input.startedBy } : {}),
  };
  const done = input.continued?.next ?? Object.keys(context.scope.steps).length;
  for (const [index, step] of spec.steps.entries()) {
    if (index < done) continue;
    if (index > done && isLong(input)) await continueIfItFits(input, context.scope, index);
    const end = await runStep(step, context);
    if ('end' in end) return end.end;
    context.scope.steps[step.id] = { output: end.output };
  }
  if (spec.output === undefined) return { status: 'completed' };
  return { status: 'completed', output: await resolveOutput(spec.output, context.scope) };
}

/** The first look of a run decides by `patched`, so that one recorded before there was this replays as it was. */
function isLong({ continueAfterEvents: events = continueAfterEvents }: RunSpecInput): boolean {
  const { continueAsNewSuggested, historyLength } = workflowInfo();
  return (continueAsNewSuggested || historyLength > events) && patched('2026-11-29-continue-between-steps');
}

/** Between two steps nothing is open and nothing underway: outputs, counters and receipts are all there is. */
async function continueIfItFits(input: RunSpecInput, { steps }: Scope, next: number): Promise<void> {
  const carried = await carryIfItFits();
  if (carried === undefined) return;
  const args: RunSpecInput = { ...input, continued: { steps, next, carried } };
  if (utf8Length(JSON.stringify(args)) <= continuedInputBytes) await continueWith<typeof runSpec>([args]);
  goOn();
}

async function carryIfItFits(): Promise<Carried | undefined> {
  try {
    return await carry();
  } catch (error) {
    const isTooLarge =
      error instanceof ApplicationFailure && error.type === ('carry_too_large' satisfies FailureCode);
    if (isTooLarge) return undefined;
    throw error;
  }
}

async function runStep(step: Step, context: Context): Promise<StepEnd> {
  if ('approval' in step) return approvalStep(step, context);
  if (step.before === undefined) return { output: await plainStep(step, context) };
  const proposal = { ...step.before.approve, tool: step.tool, arguments: step.with ?? {} };
  const end = await openGate(step.id, { ...proposal, phase: 'before', ...context }, asItEnded);
  return endStep(end, () => performApproved(end));
}

const asItEnded = (end: GateEnd): GateEnd => end;

/** Runs what a gate of phase `before` approved. */
export async function performApproved({ case: frozen, grant }: GateEnd): Promise<Json> {
  const { tool, effect, position, root, payloadHash, policy, spec, requestedBy } = frozen;
  if (tool === undefined || effect === undefined) throw new TypeError('a case of phase before has a tool');
  const call = { position, root, tool, arguments: frozen.arguments ?? null, payloadHash, effect };
  return performOrAsk(call, grant, {
    ttl: policy.ttlMs,
    ...(spec === undefined ? {} : { spec }),
    ...(requestedBy === undefined ? {} : { requestedBy }),
  });
}

async function approvalStep(step: ApprovalStep, context: Context): Promise<StepEnd> {
  const end = await openGate(step.id, { ...step.approval, phase: 'step', ...context }, asItEnded);
  return endStep(end, () => Promise.resolve({ approved: true }));
}

/** Says how the run goes on after a gate. @throws CancelledFailure when the gate was cancelled with the run */
export async function endStep(end: GateEnd, approved: () => Promise<Json>): Promise<StepEnd> {
  const { state } = end.settlement;
  switch (state) {
    case 'approved':
      showStatus('running');
      return { output: await approved() };
    case 'responded':
      showStatus('running');
      return { output: end.decision?.result ?? null };
    case 'cancelled':
      showStatus('cancelled');
      throw new CancelledFailure('the run was cancelled while it waited for a decision');
    case 'withdrawn':
      showStatus('cancelled');
      return { end: { status: 'cancelled', step: end.case.position, gate: state } };
    case 'rejected':
    case 'expired':
      showStatus('rejected');
      return { end: { status: 'rejected', step: end.case.position, gate: state } };
  }
}

async function plainStep(step: ToolStep, { scope, spec, requestedBy }: Context): Promise<Json> {
  const prepared = await prepare(step.id, { tool: step.tool, arguments: step.with ?? {} }, scope);
  if (prepared.kind !== 'prepared') throw new TypeError('prepareStep answered an output for a tool');
  return performOrAsk(prepared, undefined, {
    ...(spec === undefined ? {} : { spec }),
    ...(requestedBy === undefined ? {} : { requestedBy }),
  });
}

async function resolveOutput(output: Json, scope: Scope): Promise<Json> {
  const resolved = await prepare('output', { output }, scope);
  if (resolved.kind !== 'output') throw new TypeError('prepareStep answered a tool for an output');
  return resolved.value;
}

async function prepare(
  name: string,
  what: { tool: string; arguments: Json } | { output: Json },
  scope: Scope,
) {
  const run = currentRun();
  const position = takePosition(run, name);
  try {
    checkPayload(position, 'output' in what ? what.output : what.arguments);
    const input = { v: 1 as const, position, root: run.root, what, scope };
    const prepared = await recorded(
      record('prepareStep', input, freezePolicy, `prepare ${position}`),
      position,
    );
    if (prepared.kind === 'problem') throw failure(prepared.code as 'invalid_arguments', prepared.message);
    return prepared;
  } finally {
    releasePosition(run, name);
  }
}

function continuedOf(input: unknown): { carried: Carried } | undefined {
  const continued = isRecord(input) ? input['continued'] : undefined;
  return isRecord(continued) ? (continued as unknown as { carried: Carried }) : undefined;
}

/**
 * The API checks a spec before the start; this catches a start by hand that would otherwise fail its
 * workflow tasks for ever.
 */
function startProblem(input: unknown): string | undefined {
  if (!isRecord(input) || input['v'] !== 1 || input['input'] === undefined) {
    return 'the start input must be {v: 1, spec, input, …}';
  }
  const steps = isRecord(input['spec']) ? input['spec']['steps'] : undefined;
  if (!Array.isArray(steps)) return 'the start input has no spec with steps';
  for (const [index, step] of steps.entries()) {
    if (!isRecord(step) || typeof step['id'] !== 'string') return `spec: steps[${index}] has no id`;
    if (typeof step['tool'] === 'string') continue;
    if (!isRecord(step['approval']))
      return `spec: step "${step['id']}" is neither a tool nor an approval step`;
  }
  return undefined;
}

/** What was not looked for at first; a run that went on with it replays as it was. */
function laterStartProblem({ spec, continued }: RunSpecInput): string | undefined {
  const problem = stepsProblem(spec['steps'] as unknown as Step[]) ?? continuedProblem(continued);
  return problem !== undefined && patched('2026-11-30-check-steps-at-start') ? problem : undefined;
}

function stepsProblem(steps: readonly Step[]): string | undefined {
  const ids = new Set<string>();
  for (const [index, { id, ...step }] of steps.entries()) {
    const problem = stepIdProblem(id);
    if (problem !== undefined) return `spec: steps[${index}]: ${problem}`;
    if (ids.has(id)) return `spec: steps[${index}]: the id "${id}" is used by an earlier step; rename one`;
    ids.add(id);
    if (!('tool' in step) || step.before === undefined) continue;
    if (!isRecord(step.before) || !isRecord(step.before.approve)) {
      return `spec: step "${id}": before must be {approve: {…}}`;
    }
  }
  return undefined;
}

function continuedProblem(continued: unknown): string | undefined {
  if (continued === undefined) return undefined;
  if (isRecord(continued) && isRecord(continued['carried']) && isRecord(continued['steps'])) return undefined;
  return 'continued is what an execution hands to its next one; leave it out of a start';
}

function isActor(value: unknown): value is Actor {
  return isRecord(value) && typeof value['id'] === 'string';
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
