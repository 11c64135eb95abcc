// Sandbox-safe. Workflows of the tests themselves, written as a user of the package would write them.
import {
  ActivityFailure,
  condition,
  continueAsNew,
  defineSignal,
  proxyActivities,
  setHandler,
  sleep,
  workflowInfo,
} from '@temporalio/workflow';
import type { EffectRecord, PerformInput } from '../../../src/core/case.ts';
import type { Json } from '../../../src/core/json.ts';
import { childRun } from '../../../src/workflows/child-run.ts';
import { effect, gate, gated } from '../../../src/workflows/primitives.ts';
import type { GateOptions, GateProposal, GateResult } from '../../../src/workflows/primitives.ts';

/** The least there is: tells that a worker of these tests takes workflow tasks. */
export async function answerAtOnce(input: { answer: string }): Promise<string> {
  return Promise.resolve(input.answer);
}

export interface OneGate extends GateProposal {
  name: string;
  ttl?: string | number;
  /** milliseconds to go on living after the gate's end, for late messages */
  lingerMs?: number;
}

/** One `gated()`: the budget of DESIGN §3 is counted on it. */
export async function oneGated(input: OneGate): Promise<GateResult & { output?: Json }> {
  const result = await gated(input.name, proposalOf(input), optionsOf(input));
  if (input.lingerMs !== undefined) await sleep(input.lingerMs);
  return result;
}

/** Gates one after the other, each after the end of the one before; approved ones run. */
export async function gatesInARow(input: { gates: OneGate[] }): Promise<string[]> {
  const states: string[] = [];
  for (const one of input.gates) {
    const result = await gated(one.name, proposalOf(one), optionsOf(one));
    states.push(result.state);
  }
  return states;
}

/** Gates side by side; approved ones run. */
export async function gatesSideBySide(input: { gates: OneGate[] }): Promise<string[]> {
  const results = await Promise.all(
    input.gates.map((one) => gated(one.name, proposalOf(one), optionsOf(one))),
  );
  return results.map(({ state }) => state);
}

/** Ungated effects, then a gate, then its effect: notify → ask a "model" → gate → pay. */
export async function effectsThenGate(input: {
  before: { name: string; tool: string; arguments: Json }[];
  gate: OneGate;
}): Promise<{ outputs: Json[]; end: GateResult }> {
  const outputs: Json[] = [];
  for (const one of input.before) outputs.push(await effect(one.name, one.tool, one.arguments));
  const end = await gated(input.gate.name, proposalOf(input.gate), optionsOf(input.gate));
  return { outputs, end };
}

/** Approved on one payload, then run with what `change` says: another payload, tool, name, or twice. */
export async function misuseOfAGrant(input: {
  gate: OneGate;
  change: { name?: string; tool?: string; arguments?: Json; twice?: true };
}): Promise<string> {
  const end = await gate(input.gate.name, proposalOf(input.gate), optionsOf(input.gate));
  if (end.state !== 'approved') return end.state;
  const { name, tool, arguments: args, twice } = input.change;
  const run = () =>
    effect(name ?? input.gate.name, tool ?? input.gate.tool, args ?? end.arguments, end.grant);
  await run();
  if (twice) await run();
  return 'performed';
}

/** Schedules `perform` by hand, as somebody who goes around the gate would. */
export async function performByHand(input: { perform: PerformInput }): Promise<EffectRecord> {
  const { perform } = proxyActivities<{ perform: (input: PerformInput) => Promise<EffectRecord> }>({
    startToCloseTimeout: '10s',
    retry: { maximumAttempts: 3 },
  });
  return perform(input.perform);
}

/** Schedules gated calls that nobody approved, each after the end of the one before; tells how each ended. */
export async function performForged(input: {
  calls: { name: string; tool: string; arguments: Json; payloadHash: string; grant: 'none' | 'made up' }[];
}): Promise<string[]> {
  const { firstExecutionRunId: root, namespace, workflowId } = workflowInfo();
  const ends: string[] = [];
  for (const { name: position, tool, arguments: args, payloadHash, grant } of input.calls) {
    const place = { v: 1 as const, position, root, tool, payloadHash };
    const made = {
      ...place,
      namespace,
      workflowId,
      key: 'none',
      decisionId: 'none',
      kid: 'none',
      mac: 'none',
    };
    const perform = { ...place, arguments: args, ...(grant === 'none' ? {} : { grant: made }) };
    try {
      await performByHand({ perform });
      ends.push('performed');
    } catch (error) {
      if (!(error instanceof ActivityFailure)) throw error;
      ends.push('refused');
    }
  }
  return ends;
}

/**
 * Waits for somebody's signal `go` before it uses anything of countersign, so that decisions that come
 * before are delivered when it does; then gates side by side.
 */
export async function gatesAfterGo(input: { gates: OneGate[] }): Promise<string[]> {
  let gone = false;
  setHandler(defineSignal('go'), () => {
    gone = true;
  });
  await condition(() => gone);
  return gatesSideBySide(input);
}

/** An ungated effect that stands for a model's answer, then what it proposed: gates side by side. */
export async function effectThenGates(input: {
  before: { name: string; tool: string; arguments: Json };
  gates: OneGate[];
}): Promise<string[]> {
  await effect(input.before.name, input.before.tool, input.before.arguments);
  return gatesSideBySide(input);
}

function proposalOf({ tool, arguments: args, title, reasoning }: OneGate): GateProposal {
  return {
    tool,
    arguments: args,
    ...(title === undefined ? {} : { title }),
    ...(reasoning === undefined ? {} : { reasoning }),
  };
}

function optionsOf({ ttl }: OneGate): GateOptions {
  return ttl === undefined ? {} : { ttl };
}

/** What no start input can hold: made inside the sandbox, as a bug in somebody's workflow would. */
const oddArguments = {
  nan: () => ({ items: [{ amount: Number.NaN }] }),
  infinity: () => ({ items: [{ amount: -Infinity }] }),
  undefined: () => ({ items: [{ amount: undefined }] }),
  date: () => ({ items: [{ amount: new Date(0) }] }),
  map: () => ({ items: [{ amount: new Map([['a', 1]]) }] }),
  set: () => ({ items: [{ amount: new Set([1]) }] }),
  bigint: () => ({ items: [{ amount: 10n }] }),
  function: () => ({ items: [{ amount: () => 1 }] }),
  hole: () => ({ items: [{ amount: new Array(2) }] }),
  surrogate: () => ({ items: [{ amount: '\ud800' }] }),
  nothing: () => undefined,
  cycle: () => {
    const items: unknown[] = [];
    items.push({ amount: items });
    return { items };
  },
  large: () => ({ order: 'x'.repeat(3_000_000), amount: '1.00' }),
} satisfies Record<string, () => unknown>;

export type OddArguments = keyof typeof oddArguments;

/** Proposes (or, ungated, runs) a call with arguments that are not JSON, or far too large. */
export async function oddProposal(input: {
  odd: OddArguments;
  ungated: boolean;
  tool: string;
}): Promise<string> {
  const args = oddArguments[input.odd]() as Json;
  if (input.ungated) {
    await effect('pay', input.tool, args);
    return 'performed';
  }
  return (await gate('pay', { tool: input.tool, arguments: args })).state;
}

/** A gate whose words, or whose time, are made inside the sandbox. */
export async function wordyGate(input: {
  title?: number;
  reasoning?: number;
  ttl?: number;
}): Promise<string> {
  const { title, reasoning, ttl } = input;
  const words = {
    ...(title === undefined ? {} : { title: 'x'.repeat(title) }),
    ...(reasoning === undefined ? {} : { reasoning: 'x'.repeat(reasoning) }),
  };
  const proposal = { tool: 'payments.refund', arguments: { order: 'o', amount: '1.00' }, ...words };
  return (await gate('pay', proposal, ttl === undefined ? {} : { ttl })).state;
}

/** Continues as new after its first gate, and would ask and pay again under the same keys. */
export async function continuedGate(input: { gate: OneGate; rounds: number }): Promise<string> {
  const result = await gated(input.gate.name, proposalOf(input.gate), optionsOf(input.gate));
  if (input.rounds <= 1) return result.state;
  return continueAsNew<typeof continuedGate>({ ...input, rounds: input.rounds - 1 });
}

/** A parent whose only work is a child (of any type), and a pause after it, so that it can be reset. */
export async function parentOf(input: { child: string; args: Json[]; pauseMs?: number }): Promise<Json> {
  const output = await childRun('sub', input.child, { args: input.args });
  if (input.pauseMs !== undefined) await sleep(input.pauseMs);
  return output;
}

export interface Level {
  before: { name: string; tool: string; arguments: Json };
  gate: OneGate;
  child?: Level;
}

/** An ungated effect, then a gate and, beside it, a child that is the same again. */
export async function gateAndChild(input: Level): Promise<Json[]> {
  await effect(input.before.name, input.before.tool, input.before.arguments);
  const { child } = input;
  const [end, below] = await Promise.all([
    gated(input.gate.name, proposalOf(input.gate), optionsOf(input.gate)),
    child === undefined ? undefined : childRun('sub', 'gateAndChild', { args: [child as unknown as Json] }),
  ]);
  return below === undefined ? [end.state] : [end.state, below];
}
