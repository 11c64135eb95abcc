// Lets the faults of a plan strike, each at its moment, and says how often it really met somebody. A fault that
// waits for somebody to meet waits only so long; what did not happen is told as 0, and the checker takes offence.
import { setTimeout as sleep } from 'node:timers/promises';
import { continueAsNew, deliverAgain, delayLists, reorderSignals, reset } from './faults-of-runs.ts';
import type { Fault, Link, LinkFault, TargetMode } from './plan-faults.ts';
import { links, targetModes } from './plan-faults.ts';
import { decideByHttp } from './operations.ts';
import { approvalBy } from './plan-operations.ts';
import { editedSpec, namedSpec, orderOf } from './specs.ts';
import { atEvent } from './reference.ts';
import { act, clock, describe, isOver, runIdOf, runOf, seenGate, until, watch, type Stage } from './stage.ts';

/** How long a fault waits for somebody whom it can strike: a bound, which a slow machine does not come near. */
const patienceMs = 60_000;

export interface Struck {
  name: Fault['name'];
  planned: number;
  fired: number;
}

export async function strike(stage: Stage, fault: Fault): Promise<Struck> {
  const release = fault.isExact === true ? await atEvent(stage, fault) : await moment(stage, fault);
  // the run was over before it had so many events: there is no such moment
  if (fault.isExact === true && release === undefined) return { name: fault.name, planned: 0, fired: 0 };
  const { workers, api } = stage.world;
  const victims = fault.name === 'kill-worker' ? workers.running() : fault.name === 'kill-api' ? [api()] : [];
  const striking = strikeNow(stage, fault);
  // what is held of the dead is never sent; what starts in their place must not wait for it
  if (release !== undefined) await Promise.all(victims.map(({ ended }) => ended));
  release?.();
  const fired = await striking;
  stage.lastFaultAt = Math.max(stage.lastFaultAt, clock());
  return { name: fault.name, planned: 1, fired };
}

/** At its time, or when the history of its run has so many events, whichever is first. */
async function moment(stage: Stage, { at, event, run }: Fault): Promise<undefined> {
  if (event === undefined || run === undefined) {
    await until(stage, at);
    return;
  }
  const id = await Promise.race([runIdOf(stage, run), until(stage, at).then(() => undefined)]);
  while (id !== undefined && clock() < stage.beganAt + at) {
    if (((await describe(stage, id))?.historyLength ?? 0) >= event) return;
    await sleep(5);
  }
}

async function strikeNow(stage: Stage, fault: Fault): Promise<number> {
  const { world } = stage;
  const { workers, temporal } = world;
  const { name, lasts, amount } = fault;
  const link = linkOf(name);
  if (link !== undefined) return disturb(stage, link.link, link.how, fault);
  const mode = targetModes.find((one) => name === `target-${one}`);
  if (mode !== undefined) return misbehave(stage, fault, mode);
  switch (name) {
    case 'kill-worker':
      return workers.killAll({});
    case 'kill-worker-after-effect':
      return killAfterEffect(stage, fault, 0);
    case 'keys-forgotten':
      // the keys of pay.short are forgotten by then; no worker was there to send one again
      await world.target.control({ rememberMs: 3_000 });
      return killAfterEffect(stage, fault, 3_200);
    case 'kill-api':
      await world.killApi();
      return 1;
    case 'kill-server':
      await temporal.kill();
      await sleep(lasts);
      await temporal.restart();
      return 1;
    case 'stop-worker': {
      const [zombie] = workers.running();
      if (zombie === undefined) return 0;
      workers.pause(zombie);
      await workers.start();
      await sleep(lasts);
      if (!zombie.running()) return 0;
      workers.resume(zombie);
      return 1;
    }
    case 'rolling-restart': {
      const old = workers.running();
      await workers.start();
      await Promise.all(old.map((worker) => workers.stop(worker)));
      return old.length;
    }
    case 'older-build':
      await workers.killAll({ build: 1 });
      await sleep(lasts);
      return workers.killAll({});
    case 'ten-builds':
      return restartTenTimes(stage);
    case 'cache-0':
    case 'cache-1':
      return workers.killAll({ maxCachedWorkflows: name === 'cache-0' ? 0 : 1 });
    case 'clock-api':
    case 'clock-worker': {
      const whose = name === 'clock-api' ? 'api' : 'worker';
      let jumped = 0;
      // one that is just being replaced has no clock yet
      for (; jumped === 0 && !isOver(stage); await sleep(50)) jumped = await world.setClock(whose, amount);
      await sleep(lasts);
      await world.setClock(whose, 0);
      return jumped;
    }
    case 'spec-edited':
      return editSpec(stage, fault);
    case 'duplicate-deliveries':
      return deliverAgain(stage, patienceMs);
    case 'reordered-deliveries':
      return reorderSignals(stage, fault, patienceMs);
    case 'visibility-lag':
      return delayLists(stage, fault);
    case 'reset':
    case 'reset-parent':
      return reset(stage, fault);
    case 'continue-as-new':
      return continueAsNew(stage, fault);
    default:
      throw new TypeError(`nobody knows the fault "${name}"`);
  }
}

function linkOf(name: string): { link: Link; how: LinkFault } | undefined {
  const link = links.find((one) => name.endsWith(`-${one}`));
  return link === undefined ? undefined : { link, how: name.slice(0, -link.length - 1) as LinkFault };
}

/** At least as long as planned, and until it met something. */
async function disturb(stage: Stage, link: Link, how: LinkFault, { lasts, amount }: Fault): Promise<number> {
  const proxy = stage.world.links[link];
  const before = proxy.hits();
  if (how === 'cut') proxy.cut();
  else if (how === 'slow') proxy.slow(20 + Math.round(amount * 300));
  else proxy.oneWay(amount < 0.5 ? 'client' : 'upstream');
  const end = clock() + patienceMs;
  while (proxy.hits() === before && clock() < end && !isOver(stage)) await sleep(10);
  await sleep(lasts);
  // what was kept back is delivered late, or lost with its connection
  proxy.heal(Math.round(amount * 100) % 2 === 0);
  return proxy.hits() - before;
}

/** The target struck that payment so; what remains of it strikes until the end of the run. */
async function misbehave(stage: Stage, fault: Fault, mode: TargetMode): Promise<number> {
  const { target } = stage.world;
  const order = orderOfVictim(stage, fault);
  const before = (await target.state()).fired[mode] ?? 0;
  await target.control({ fault: { mode, times: fault.times, order } });
  const end = clock() + patienceMs;
  for (;;) {
    const fired = ((await target.state()).fired[mode] ?? 0) - before;
    if (fired > 0 || clock() > end) return fired;
    await sleep(50);
  }
}

/** The payment is made, its answer is on the way, and every worker is killed. */
async function killAfterEffect(stage: Stage, fault: Fault, pauseMs: number): Promise<number> {
  const { target, workers } = stage.world;
  const order = orderOfVictim(stage, fault);
  const done = target.untilDone(order);
  await target.control({ fault: { mode: 'slow', times: 1, order } });
  const isDone = await Promise.race([done.then(() => true), sleep(patienceMs, false)]);
  if (!isDone) return 0;
  const killed = await workers.killAll();
  await sleep(pauseMs);
  await workers.start();
  return killed;
}

function orderOfVictim(stage: Stage, { run }: Fault): string {
  const { label, start } = runOf(stage, run ?? '');
  const [gate] = start.gates;
  if (gate === undefined) throw new TypeError(`run "${run}" has no gate`);
  return orderOf(label, gate);
}

async function restartTenTimes(stage: Stage): Promise<number> {
  const { workers } = stage.world;
  for (let build = 1; build <= 10; build += 1) {
    if (build % 2 === 0) {
      await Promise.all(workers.running().map((worker) => workers.stop(worker)));
      await workers.start({ build });
    } else await workers.killAll({ build });
  }
  return 10;
}

/** Whoever approves meanwhile is told `spec_changed`, and can when it is restored. */
async function editSpec(stage: Stage, { run, lasts }: Fault): Promise<number> {
  const { world } = stage;
  const [planned] = runOf(stage, run ?? '').start.gates;
  const id = await runIdOf(stage, run ?? '');
  if (id === undefined || planned === undefined) return 0;
  const gate = await watch(stage, id, (seen) => seenGate(seen, planned.name));
  if (gate === undefined) return 0;
  world.writeSpec(editedSpec);
  try {
    // until the API and the workers have seen it: they look once a second
    await sleep(lasts);
    return gate.state === 'pending' ? await decideMeanwhile(stage, run ?? '', gate, planned) : 1;
  } finally {
    world.writeSpec(namedSpec);
  }
}

async function decideMeanwhile(
  stage: Stage,
  run: string,
  gate: Parameters<typeof decideByHttp>[2],
  planned: Parameters<typeof decideByHttp>[3],
): Promise<number> {
  const operation = approvalBy('meanwhile', run, { shouldSucceed: false });
  // it is asked until the spec is restored, so it is not waited for here
  stage.others.push(act(stage, () => decideByHttp(stage, operation, gate, planned, `meanwhile-${gate.key}`)));
  await sleep(500);
  return 1;
}
