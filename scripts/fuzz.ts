// `npm run fuzz`: the property tests in full, 10,000 of each: runs of the gate against its model, generated histories,
// mutated signals on a real server. `npm run fuzz -- --seed N` repeats one; the seed stands in its output.
import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';

const files = ['gate-model.test.ts', 'trail-generated.test.ts', 'messages-fuzz.server.test.ts'];

const { values } = parseArgs({ options: { seed: { type: 'string' } } });
const seed = Number(values.seed ?? Date.now() % 2 ** 31);
if (!Number.isSafeInteger(seed) || seed < 0) {
  console.error(`--seed is a whole number, got ${values.seed}`);
  process.exit(64);
}
console.log(`# seed ${seed}`);
const { status } = spawnSync(
  process.execPath,
  [
    ...['--import', 'tsx', '--conditions=countersign-source', '--test', '--test-reporter=spec'],
    ...['--test-concurrency=1', ...files.map((file) => `test/${file}`)],
  ],
  {
    stdio: 'inherit',
    env: { ...process.env, COUNTERSIGN_TEST_FUZZ: 'full', COUNTERSIGN_TEST_SEED: String(seed) },
  },
);
process.exit(status ?? 1);
