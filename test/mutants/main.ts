// `node --import tsx --conditions=countersign-source test/mutants/main.ts [--mutant NAME] [--seed N] [--runs M] [--only …]`:
// looks for a seed that catches a mutant, at most M seeds from N on. stdout: a line a run with a violation, then for
// each mutant the seed. It exits 1 when one was not caught.
import { parseArgs } from 'node:util';
import { runCampaign } from '../chaos/campaign.ts';
import { buildPrograms } from '../chaos/compile.ts';
import { buildMutant, mutantNames } from '../chaos/mutants.ts';
import { makePlan, readOnly } from '../chaos/plan.ts';
import { quietRuntime } from '../support/worker.ts';

quietRuntime();
const { values } = parseArgs({
  options: {
    mutant: { type: 'string', multiple: true },
    seed: { type: 'string', default: '1' },
    /** issue 5: each within 200 */
    runs: { type: 'string', default: '200' },
    only: { type: 'string', default: '' },
  },
});
const only = readOnly(values.only);
const first = Number(values.seed);
const base = await buildPrograms();
const missed: string[] = [];

for (const name of values.mutant ?? mutantNames()) {
  const programs = await buildMutant(name, base);
  const plans = Array.from({ length: Number(values.runs) }, (_, index) => makePlan(first + index, only));
  let caughtBy: string | undefined;
  let runs = 0;
  await runCampaign({
    plans,
    programs,
    jobs: 1,
    until: () => caughtBy !== undefined,
    tell: ({ plan, violations, ms }) => {
      runs += 1;
      // that too little happened, or a run broke off, is no word about a promise
      const broken = violations.filter(({ invariant }) => invariant !== 'N7');
      if (broken.length === 0) return;
      const found = [...new Set(broken.map(({ invariant }) => invariant))].join(', ');
      console.log(
        `  ${name} seed ${plan.seed} (${plan.kind}, ${Math.round(ms)} ms): ${found}: ${broken[0]?.what}`,
      );
      caughtBy ??= `seed ${plan.seed}, ${found}, after ${runs} runs`;
    },
  });
  await programs.remove();
  console.log(`${name}: ${caughtBy ?? `not caught in ${runs} runs`}`);
  if (caughtBy === undefined) missed.push(name);
}
process.exit(missed.length === 0 ? 0 : 1);
