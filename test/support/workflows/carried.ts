// Sandbox-safe. Workflows of the tests that continue as new while their gates wait.
import {
  CancellationScope,
  condition,
  continueAsNew,
  defineSignal,
  setHandler,
  sleep,
} from '@temporalio/workflow';
import { childRun } from '../../../src/workflows/child-run.ts';
import { carry, continueRun, restore } from '../../../src/workflows/carry.ts';
import type { Carried } from '../../../src/core/carried.ts';
import { effect, gate, gated } from '../../../src/workflows/primitives.ts';
import type { OneGate } from './own.ts';

export interface CarriedGatesInput {
  gates: OneGate[];
  /** how each ended that has */
  states?: Record<string, string>;
  /** executions before this one */
  round?: number;
  carried?: Carried;
  /** Default: continueRun(). `plain`: Temporal's own continueAsNew, which does not hand on the memo. */
  plain?: boolean;
  /** milliseconds to go on living when all have ended */
  lingerMs?: number;
}

/** Gates side by side, each with its effect; continues as new at each signal `roll`, until all have ended. */
export async function carriedGates(input: CarriedGatesInput): Promise<unknown> {
  restore(input.carried);
  let rolls = 0;
  setHandler(defineSignal('roll'), () => {
    rolls += 1;
  });
  const { gates, round = 0 } = input;
  const states = { ...input.states };
  const asked = gates.filter(({ name }) => states[name] === undefined);
  const all = Promise.all(
    asked.map(async ({ name, tool, arguments: args, ttl }) => {
      const end = await gated(name, { tool, arguments: args }, ttl === undefined ? {} : { ttl });
      states[name] = end.state;
    }),
  );
  await Promise.race([all, condition(() => rolls > 0)]);
  if (rolls === 0 && input.lingerMs !== undefined)
    await Promise.race([sleep(input.lingerMs), condition(() => rolls > 0)]);
  if (rolls === 0) return { states, round };
  if (input.plain !== true) {
    return continueRun<typeof carriedGates>((carried) => [{ ...input, states, round: round + 1, carried }]);
  }
  const carried = await carry();
  return continueAsNew<typeof carriedGates>({ ...input, states, round: round + 1, carried });
}

/** The same name over and over, each round in an execution of its own. */
export async function gateEachRound(input: {
  gate: OneGate;
  rounds: number;
  carried?: Carried;
}): Promise<string> {
  restore(input.carried);
  const { name, tool, arguments: args } = input.gate;
  const end = await gated(name, { tool, arguments: args });
  if (input.rounds <= 1) return end.state;
  return continueRun<typeof gateEachRound>((carried) => [{ ...input, rounds: input.rounds - 1, carried }]);
}

/** Asks in one execution and acts in the next, which was handed the grant. */
export async function askThenAct(input: {
  gate: OneGate;
  approved?: Extract<Awaited<ReturnType<typeof gate>>, { state: 'approved' }>;
  carried?: Carried;
}): Promise<unknown> {
  restore(input.carried);
  const { name, tool, arguments: args } = input.gate;
  const { approved } = input;
  if (approved !== undefined) return effect(name, tool, approved.arguments, approved.grant);
  const end = await gate(name, { tool, arguments: args });
  if (end.state !== 'approved') return end.state;
  return continueRun<typeof askThenAct>((carried) => [{ ...input, approved: end, carried }]);
}

/** Hands what it carries to the execution after the next, or takes what somebody else's run carried. */
export async function wronglyCarried(input: {
  gate: OneGate;
  stale?: Carried;
  carried?: Carried;
  late?: boolean;
  rounds: number;
}): Promise<string> {
  if (input.late === true && input.carried !== undefined) {
    await effect('early', 'notify.send', {});
  }
  restore(input.carried);
  const { name, tool, arguments: args } = input.gate;
  const end = await gated(name, { tool, arguments: args });
  if (input.rounds <= 1) return end.state;
  return continueRun<typeof wronglyCarried>((carried) => [
    { ...input, rounds: input.rounds - 1, carried: input.stale ?? carried, stale: carried },
  ]);
}

/** Carries while an effect and a child run are underway: both end first. */
export async function carryWhileUnderway(input: {
  gate: OneGate;
  child?: OneGate;
  carried?: Carried;
  outputs?: unknown[];
}): Promise<unknown> {
  restore(input.carried);
  if (input.outputs !== undefined) return input.outputs;
  const outputs: unknown[] = [];
  const work = Promise.all([
    gated(input.gate.name, { tool: input.gate.tool, arguments: input.gate.arguments }).then((end) => {
      outputs.push(end.state);
    }),
    ...(input.child === undefined
      ? []
      : [childRun('sub', 'oneGated', { args: [{ ...input.child }] }).then((output) => outputs.push(output))]),
  ]);
  let rolls = 0;
  setHandler(defineSignal('roll'), () => {
    rolls += 1;
  });
  await Promise.race([work, condition(() => rolls > 0)]);
  return continueRun<typeof carryWhileUnderway>((carried) => [{ ...input, outputs, carried }]);
}

/** Tries to carry more than fits, says so, and goes on in this execution. */
export async function carriesTooMuch(input: { gates: OneGate[] }): Promise<unknown> {
  restore(undefined);
  let rolls = 0;
  setHandler(defineSignal('roll'), () => {
    rolls += 1;
  });
  const all = Promise.all(
    input.gates.map((one) => gated(one.name, { tool: one.tool, arguments: one.arguments })),
  );
  await condition(() => rolls > 0);
  let problem: unknown;
  try {
    await carry();
  } catch (error) {
    problem = error instanceof Error ? error.message : String(error);
  }
  const ends = await all;
  return { problem, states: ends.map(({ state }) => state) };
}

/** Asks in its first execution only; in the next one the gates are nobody's, unless `again` asks in a scope. */
export async function asksOnceThenWaits(input: {
  gate: OneGate;
  again?: boolean;
  round?: number;
  carried?: Carried;
}): Promise<unknown> {
  restore(input.carried);
  const { name, tool, arguments: args } = input.gate;
  const { round = 0, again = false } = input;
  const got: Record<string, number> = {};
  for (const signal of ['roll', 'drop', 'end']) {
    setHandler(defineSignal(signal), () => {
      got[signal] = (got[signal] ?? 0) + 1;
    });
  }
  const scope = new CancellationScope();
  let end: unknown;
  if (round === 0 || again) {
    void scope.run(async () => {
      end = (await gate(name, { tool, arguments: args })).state;
    });
  }
  await condition(() => Object.keys(got).length > 0 || end !== undefined);
  if (got['roll'] !== undefined) {
    return continueRun<typeof asksOnceThenWaits>((carried) => [{ ...input, round: round + 1, carried }]);
  }
  if (got['drop'] !== undefined) scope.cancel();
  await condition(() => end !== undefined || got['end'] !== undefined);
  return end ?? null;
}
