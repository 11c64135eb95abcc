// How much the property tests try: a sample in `npm test`, all of it by `npm run fuzz`.

/** `full`: as `npm run fuzz` sets it. */
export const isFullFuzz = process.env['COUNTERSIGN_TEST_FUZZ'] === 'full';

/** The seed of this run, printed with every failure; `npm run fuzz -- --seed N` repeats one. */
export const fuzzSeed = Number(process.env['COUNTERSIGN_TEST_SEED'] ?? Date.now() % 2 ** 31);
