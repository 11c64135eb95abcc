// The harness sees what it is there to see: each mutant of `src` breaks a promise by name under the plan that it is
// pinned to, and the source as it is keeps every promise under the same plans.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runCampaign, type Outcome } from '../chaos/campaign.ts';
import { buildPrograms, type Programs } from '../chaos/compile.ts';
import { buildMutant, mutantNames, readPins, type Pin } from '../chaos/mutants.ts';
import { makePlan } from '../chaos/plan.ts';
import { quietRuntime } from '../support/worker.ts';

quietRuntime();

/** The plans say what is cached; a second pass would show nothing new. */
const skip = process.env['COUNTERSIGN_TEST_CACHE'] === '0' && 'the plans choose their own caches';

const pins = readPins();
let building: Promise<Programs> | undefined;
const programs = (): Promise<Programs> => (building ??= buildPrograms());

async function run(pin: Pin, of: Programs): Promise<Outcome> {
  const [outcome] = await runCampaign({ plans: [makePlan(pin.seed, pin.only)], jobs: 1, programs: of });
  assert.ok(outcome?.evidence !== undefined, outcome?.violations[0]?.what);
  return outcome;
}

const tell = ({ violations }: Outcome): string[] =>
  violations.map(({ invariant, what }) => `${invariant} ${what}`);

test('the source as it is keeps every promise under the plans that catch the mutants', { skip }, async () => {
  const plans = [...new Set(Object.values(pins).map((pin) => JSON.stringify([pin.seed, pin.only])))].map(
    (text) => {
      const [seed, only] = JSON.parse(text) as [number, string[]];
      return makePlan(seed, only);
    },
  );
  const outcomes = await runCampaign({ plans, jobs: 1, programs: await programs() });
  assert.equal(outcomes.length, plans.length);
  assert.deepEqual(outcomes.flatMap(tell), []);
});

test('each mutant is caught on its pinned seed', { skip, concurrency: 2 }, async (t) => {
  const base = await programs();
  await Promise.all(
    mutantNames().map((name) =>
      t.test(name, async () => {
        const pin = pins[name];
        assert.ok(pin !== undefined, `${name} is not in pinned.json`);
        const mutant = await buildMutant(name, base);
        const outcome = await run(pin, mutant);
        await mutant.remove();
        const caught = outcome.violations.filter(({ invariant }) => pin.invariants.includes(invariant));
        assert.ok(caught.length > 0, `not caught; told: ${tell(outcome).join('\n') || 'nothing'}`);
      }),
    ),
  );
});
