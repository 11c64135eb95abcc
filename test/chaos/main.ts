// `npm run chaos -- --seed N --runs M [--jobs J] [--only …] [--keep FOLDER [--keep-all]]`: runs the plans of M seeds from N on,
// each in real processes, and checks what they left. stdout: one line a run, then the totals. A seed that shows a
// violation is printed with its plan, and its evidence is kept. It exits 1 when there was one.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { DefaultLogger, makeTelemetryFilterString, Runtime } from '@temporalio/worker';
import { runCampaign, type Outcome } from './campaign.ts';
import { makePlan, onlyNames, readOnly, type Plan } from './plan.ts';
import { killPlan, resetPlan } from './reference.ts';

const usage = `npm run chaos -- [--seed N] [--runs M] [--jobs J] [--keep FOLDER [--keep-all]] [--only name,… | --reference kills|resets]
  --reference kills: seed 3n-3, 3n-2 and 3n-1 kill the worker, the API and the server at event n of a run
  --reference resets: seeds 6n-6 to 6n-1 reset runs of six forms to their n-th completed workflow task
  names: ${onlyNames.join(', ')}`;

process.env['TZ'] = 'UTC';
Runtime.install({
  logger: new DefaultLogger('ERROR'),
  telemetryOptions: { logging: { filter: makeTelemetryFilterString({ core: 'ERROR', other: 'ERROR' }) } },
  shutdownSignals: [],
});

let options: Parameters<typeof runCampaign>[0];
let keep: string;
let keepsAll: boolean;
try {
  const { values } = parseArgs({
    options: {
      seed: { type: 'string', default: '1' },
      runs: { type: 'string', default: '20' },
      jobs: { type: 'string', default: '2' },
      only: { type: 'string', default: '' },
      reference: { type: 'string', default: '' },
      'keep-all': { type: 'boolean', default: false },
      keep: { type: 'string', default: '.countersign/chaos' },
    },
  });
  const seed = whole('seed', values.seed, 0);
  const runs = whole('runs', values.runs, 1);
  const only = readOnly(values.only);
  const planOf = reference(values.reference) ?? ((one: number) => makePlan(one, only));
  keep = values.keep;
  keepsAll = values['keep-all'];
  options = {
    plans: Array.from({ length: runs }, (_, index) => planOf(seed + index)),
    jobs: whole('jobs', values.jobs, 1),
    tell,
  };
} catch (error) {
  console.error(`${(error as Error).message}\n${usage}`);
  process.exit(64);
}

const begun = performance.now();
const outcomes = await runCampaign(options);
const violations = outcomes.filter(({ violations: found }) => found.length > 0);
const seconds = (performance.now() - begun) / 1_000;
const fired = new Map<string, number>();
for (const { evidence } of outcomes) {
  for (const { name, fired: times } of evidence?.faults ?? []) {
    if (times > 0) fired.set(name, (fired.get(name) ?? 0) + 1);
  }
}
console.log(
  `faults that struck: ${[...fired]
    .sort()
    .map(([name, count]) => `${name} ${count}`)
    .join(', ')}`,
);
console.log(`${(seconds / outcomes.length).toFixed(1)} s a run, ${seconds.toFixed(0)} s in all`);
console.log(`${outcomes.length} runs, ${violations.length} violations`);
process.exit(violations.length === 0 ? 0 : 1);

function tell({ plan, evidence, violations: found, ms }: Outcome): void {
  const calls = evidence?.calls.length ?? 0;
  const verdict = found.length === 0 ? 'ok' : 'VIOLATION';
  console.log(`seed ${plan.seed} ${verdict} ${plan.kind}: ${calls} calls, ${(ms / 1_000).toFixed(1)} s`);
  for (const { invariant, run, what } of found) console.log(`  ${invariant} ${run ?? ''} ${what}`);
  if (found.length > 0) console.log(`  plan: ${JSON.stringify(plan)}`);
  else if (!keepsAll) return;
  mkdirSync(keep, { recursive: true });
  const file = join(keep, `seed-${plan.seed}.json`);
  writeFileSync(file, JSON.stringify(evidence ?? { plan }, undefined, 1));
  console.log(`  evidence: ${file}`);
}

function reference(name: string): ((seed: number) => Plan) | undefined {
  if (name === '') return undefined;
  const plans = { kills: killPlan, resets: resetPlan };
  if (Object.hasOwn(plans, name)) return plans[name as keyof typeof plans];
  throw new RangeError(`--reference must be kills or resets, got "${name}"`);
}

function whole(name: string, text: string, least: number): number {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : NaN;
  if (value >= least) return value;
  throw new RangeError(`--${name} must be a whole number from ${least}, got "${text}"`);
}
