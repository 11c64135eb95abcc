// Sandbox. Runs a spec: its steps in order, each prepared and recorded before it acts.
import { CancelledFailure } from '@temporalio/workflow';
import type { SpecRef } from '../core/case.ts';
import type { Json } from '../core/json.ts';
import type { RunSpecInput, Scope } from '../core/recording.ts';
import type { ApprovalStep, Spec, Step, ToolStep } from '../core/spec/spec.ts';
import { showStatus } from './board.ts';
import { performEffect } from './effect.ts';
import { checkPayload, openGate, recorded, type GateEnd } from './gate.ts';
import { freezePolicy } from './policies.ts';
import { record } from './record.ts';
import { currentRun, failure, releasePosition, takePosition } from './run.ts';

/** How a spec run ends when it does not fail and is not cancelled; the result of the workflow. */
export type RunSpecResult =
  { status: 'completed'; output?: Json } | { status: 'rejected'; step: string; gate: 'rejected' | 'expired' };

type StepEnd = { output: Json } | { refused: 'rejected' | 'expired' };

/** @throws ApplicationFailure with a code of core/failures.ts; CancelledFailure */
export async function runSpec(input: RunSpecInput): Promise<RunSpecResult> {
  currentRun();
  const problem = startProblem(input);
  if (problem !== undefined) throw failure('invalid_start', problem);
  const spec = input.spec as unknown as Spec;
  const scope: Scope = { input: input.input, steps: {} };
  for (const step of spec.steps) {
    const end = await runStep(step, scope, input.specRef);
    if ('refused' in end) return { status: 'rejected', step: step.id, gate: end.refused };
    scope.steps[step.id] = { output: end.output };
  }
  if (spec.output === undefined) return { status: 'completed' };
  return { status: 'completed', output: await resolveOutput(spec.output, scope) };
}

async function runStep(step: Step, scope: Scope, spec: SpecRef | undefined): Promise<StepEnd> {
  const place = { scope, ...(spec === undefined ? {} : { spec }) };
  if ('approval' in step) return approvalStep(step, place);
  if (step.before === undefined) return { output: await plainStep(step, scope) };
  const proposal = { tool: step.tool, arguments: step.with ?? {}, ...step.before.approve };
  const end = await openGate(step.id, { phase: 'before', ...proposal, ...place });
  const refused = closeStep(end);
  if (refused !== undefined) return { refused };
  const { tool, effect, position, root, payloadHash } = end.case;
  if (tool === undefined || effect === undefined) throw new TypeError('a case of phase before has a tool');
  const args = end.case.arguments ?? null;
  return {
    output: await performEffect({ position, root, tool, arguments: args, payloadHash, effect }, end.grant),
  };
}

async function approvalStep(step: ApprovalStep, place: { scope: Scope; spec?: SpecRef }): Promise<StepEnd> {
  const refused = closeStep(await openGate(step.id, { phase: 'step', ...step.approval, ...place }));
  return refused === undefined ? { output: { approved: true } } : { refused };
}

/** Says how the run goes on after a gate. @throws CancelledFailure when the gate was cancelled with the run */
function closeStep({ settlement: { state } }: GateEnd): 'rejected' | 'expired' | undefined {
  if (state === 'cancelled') {
    showStatus('cancelled');
    throw new CancelledFailure('the run was cancelled while it waited for a decision');
  }
  if (state === 'approved') {
    showStatus('running');
    return undefined;
  }
  showStatus('rejected');
  return state === 'expired' ? 'expired' : 'rejected';
}

async function plainStep(step: ToolStep, scope: Scope): Promise<Json> {
  const prepared = await prepare(step.id, { tool: step.tool, arguments: step.with ?? {} }, scope);
  if (prepared.kind !== 'prepared') throw new TypeError('prepareStep answered an output for a tool');
  return performEffect(prepared, undefined);
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

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
