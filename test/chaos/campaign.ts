// Many chaos runs: each job has a world of its own and takes the next seed when it is done with one. A world in
// which a run could not be carried out is thrown away.
import { buildPrograms, type Programs } from './compile.ts';
import type { Evidence, Violation } from './evidence.ts';
import { makePlan, type Plan } from './plan.ts';
import { checkSimply } from './simple-check.ts';
import { runPlan } from './run-plan.ts';
import { openWorld } from './world.ts';

export interface Outcome {
  plan: Plan;
  /** undefined: the run broke off */
  evidence?: Evidence;
  violations: Violation[];
  ms: number;
}

export interface CampaignOptions {
  seeds: readonly number[];
  jobs: number;
  only?: readonly string[];
  /** in place of the seed's own plan */
  planOf?: (seed: number) => Plan;
  /** Gets each run when it is done. */
  tell?: (outcome: Outcome) => void;
}

export async function runCampaign(options: CampaignOptions): Promise<Outcome[]> {
  const { seeds, jobs, only = [], planOf = (seed) => makePlan(seed, only) } = options;
  const programs = await buildPrograms();
  const left = [...seeds];
  const outcomes: Outcome[] = [];
  const work = async (): Promise<void> => {
    let world: Awaited<ReturnType<typeof openWorld>> | undefined;
    for (let seed = left.shift(); seed !== undefined; seed = left.shift()) {
      world ??= await openWorld(programs);
      const outcome = await oneRun(world, planOf(seed));
      outcomes.push(outcome);
      options.tell?.(outcome);
      if (outcome.evidence === undefined) {
        await world.close().catch(() => undefined);
        world = undefined;
      }
    }
    await world?.close();
  };
  await Promise.all(Array.from({ length: Math.min(jobs, seeds.length) }, work));
  return outcomes;
}

async function oneRun(world: Parameters<typeof runPlan>[0], plan: Plan): Promise<Outcome> {
  const begun = performance.now();
  try {
    const evidence = await runPlan(world, plan);
    const violations = checkSimply(evidence);
    return { plan, evidence, violations, ms: performance.now() - begun };
  } catch (error) {
    // a harness that breaks has shown nothing, and that is no pass
    const what = `the run broke off: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
    return { plan, violations: [{ invariant: 'N7', what }], ms: performance.now() - begun };
  }
}

export type { Programs };
