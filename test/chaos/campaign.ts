// Many chaos runs: each job has a world of its own and takes the next seed when it is done with one. A world in
// which a run could not be carried out is thrown away.
import { buildPrograms, type Programs } from './compile.ts';
import type { Evidence, Violation } from './evidence.ts';
import type { Plan } from './plan.ts';
import { check } from './check/check.ts';
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
  plans: readonly Plan[];
  /** worlds side by side */
  jobs: number;
  /** what its processes run; default: this repository */
  programs?: Programs;
  /** Asked before each run: nothing more is to be seen. */
  until?: () => boolean;
  /** Gets each run when it is done. */
  tell?: (outcome: Outcome) => void;
}

export async function runCampaign(options: CampaignOptions): Promise<Outcome[]> {
  const { plans, jobs } = options;
  const programs = options.programs ?? (await buildPrograms());
  const left = [...plans];
  const outcomes: Outcome[] = [];
  const work = async (): Promise<void> => {
    let world: Awaited<ReturnType<typeof openWorld>> | undefined;
    for (let plan = left.shift(); plan !== undefined && !options.until?.(); plan = left.shift()) {
      world ??= await openWorld(programs);
      const outcome = await oneRun(world, plan);
      outcomes.push(outcome);
      options.tell?.(outcome);
      if (outcome.evidence === undefined) {
        await world.close().catch(() => undefined);
        world = undefined;
      }
    }
    await world?.close();
  };
  await Promise.all(Array.from({ length: Math.min(jobs, plans.length) }, work));
  return outcomes;
}

async function oneRun(world: Parameters<typeof runPlan>[0], plan: Plan): Promise<Outcome> {
  const begun = performance.now();
  try {
    const evidence = await runPlan(world, plan);
    const violations = check(evidence);
    return { plan, evidence, violations, ms: performance.now() - begun };
  } catch (error) {
    // a harness that breaks has shown nothing, and that is no pass
    const what = `the run broke off: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
    return { plan, violations: [{ invariant: 'N7', what }], ms: performance.now() - begun };
  }
}
