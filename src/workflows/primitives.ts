// Sandbox. The primitives for anyone's own Temporal workflow: `gate`, `effect`, `gated`.
import type { Grant } from '../core/case.ts';
import type { Decision } from '../core/decision.ts';
import type { Json } from '../core/json.ts';
import { showStatus } from './board.ts';
import { checkPayload, recorded } from './freeze.ts';
import { openGate, type GateEnd } from './gate.ts';
import { performOrAsk } from './in-doubt.ts';
import { freezePolicy } from './policies.ts';
import { record } from './record.ts';
import { keepRight, rightAt, useRight } from './rights.ts';
import { currentRun, failure, releasePosition, takePosition } from './run.ts';
import { working } from './standstill.ts';

export interface GateProposal {
  tool: string;
  arguments: Json;
  /** what the approver reads first; the tool's name by default */
  title?: string;
  reasoning?: string;
}

export interface GateOptions {
  /** `"2h"`, `"7d"` or milliseconds; the deployment's default (7 days) when absent */
  ttl?: string | number;
}

/** An approved gate: hand it to `effect()`. `arguments` are the frozen ones. */
export interface ApprovedGate {
  state: 'approved';
  grant: Grant;
  arguments: Json;
  decision: Decision;
}

export interface RefusedGate {
  state: 'rejected' | 'expired' | 'withdrawn' | 'responded' | 'cancelled';
  /** absent when the clock or a cancellation ended it */
  decision?: Decision;
}

export type GateResult = ApprovedGate | RefusedGate;

/**
 * Freezes `proposal` and waits until a person decides on exactly that, or the deadline passes. Never
 * throws for a refusal. @throws ApplicationFailure `invalid_name`, `duplicate_position`, `unknown_tool`,
 * `invalid_arguments`, `invalid_value`, `payload_too_large` or `preparation_failed`: nobody was asked
 */
export async function gate(
  name: string,
  proposal: GateProposal,
  options: GateOptions = {},
): Promise<GateResult> {
  return openGate(name, { phase: 'before', ...proposal, ...options }, resultOf);
}

function resultOf(end: GateEnd): GateResult {
  showStatus('running');
  const { state } = end.settlement;
  if (state === 'approved' && end.grant !== undefined && end.decision !== undefined) {
    keepRight(end.grant.position, end.case);
    return { state, grant: end.grant, arguments: end.case.arguments ?? null, decision: end.decision };
  }
  return {
    state: state as RefusedGate['state'],
    ...(end.decision === undefined ? {} : { decision: end.decision }),
  };
}

/**
 * Runs `tool` once on `args` and returns its output. With a grant it has the grant's position, and `name`
 * must be the gate's. @throws ApplicationFailure with a code of core/failures.ts
 */
export async function effect(name: string, tool: string, args: Json, grant?: Grant): Promise<Json> {
  return working(() =>
    grant === undefined ? ungated(name, tool, args) : effectWithGrant(name, tool, args, grant),
  );
}

async function ungated(name: string, tool: string, args: Json): Promise<Json> {
  const run = currentRun();
  const position = takePosition(run, name);
  try {
    checkPayload(position, args);
    const prepared = await recorded(
      record(
        'prepareStep',
        { v: 1, position, root: run.root, what: { tool, arguments: args } },
        freezePolicy,
        `prepare ${position}`,
      ),
      position,
    );
    if (prepared.kind === 'problem') throw failure(prepared.code as 'invalid_arguments', prepared.message);
    if (prepared.kind === 'output') throw new TypeError('prepareStep answered an output for a tool');
    return await performOrAsk(prepared, undefined, {});
  } finally {
    releasePosition(run, name);
  }
}

/** `gate()`, and `effect()` when it was approved: the gate's object, plus `output`. */
export async function gated(
  name: string,
  proposal: GateProposal,
  options: GateOptions = {},
): Promise<(ApprovedGate & { output: Json }) | RefusedGate> {
  return openGate(name, { phase: 'before', ...proposal, ...options }, async (ended) => {
    const end = resultOf(ended);
    if (end.state !== 'approved') return end;
    const output = await effect(name, proposal.tool, end.arguments, end.grant);
    return { ...end, output };
  });
}

async function effectWithGrant(name: string, tool: string, args: Json, grant: Grant): Promise<Json> {
  const right = rightAt(grant.position);
  if (right === undefined || grant.position.replace(/#\d+$/, '') !== name) {
    const why = `the grant for "${grant.position}" was used already, or is not of the gate "${name}"`;
    throw failure('grant_invalid', `effect "${name}": ${why}`);
  }
  const { position, root, effect: options, ttlMs } = right;
  checkPayload(position, args);
  useRight(position);
  const { payloadHash } = grant;
  const call = { position, root, tool, arguments: args, payloadHash, effect: options };
  return performOrAsk(call, grant, { ttl: ttlMs });
}
