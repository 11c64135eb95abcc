// One chaos run: a plan in a world, from its first operation to its evidence. The world is whole afterwards.
import { collect, endRuns, settle } from './collect.ts';
import type { Evidence } from './evidence.ts';
import { strike } from './faults.ts';
import { perform } from './operations.ts';
import type { Plan } from './plan.ts';
import { act, clock, openStage } from './stage.ts';
import type { World } from './world.ts';

export async function runPlan(world: World, plan: Plan): Promise<Evidence> {
  const stage = openStage(world, plan);
  const needsCare = /stop-worker|worker-target|kill|cut/.test(plan.kind);
  // a target that is asked while an earlier request is on its way cannot say that it will not be carried out
  if (needsCare) await world.target.control({ lookupOnce: true });
  const faults = plan.faults.map((fault) => strike(stage, fault));
  const operations = Promise.all(
    plan.operations.map((operation) => act(stage, () => perform(stage, operation))),
  );
  const struck = await Promise.all(faults);
  await world.heal();
  stage.healedAt = clock();
  await settle(stage);
  stage.isQuiet = true;
  await operations;
  for (let index = 0; index < stage.others.length; index += 1) await stage.others[index];
  // what somebody did in the last moment
  const runs = await settle(stage);
  const evidence = await collect(stage, runs, struck);
  await endRuns(stage, runs);
  return evidence;
}
