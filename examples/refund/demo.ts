// `npm run demo`: a refund that nothing sends before a person has approved exactly it. Starts all that it
// takes on this machine, and waits for you to decide. `npm run demo -- --auto` (also without a terminal, and
// with CI=true) decides by itself, kills a worker and Temporal on the way, and exits 0 only if every count
// is right.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { stopWish } from '../../src/cli/stop.ts';
import { waitForPerson } from './demo-by-hand.ts';
import { startDemo, stopDemo, type Demo, type Running } from './demo-parts.ts';
import {
  approveAndKillTheWorker,
  approveSomethingElse,
  decideTwice,
  killTemporal,
  reject,
  type Show,
} from './demo-steps.ts';

const { values: flags } = parseArgs({
  options: {
    auto: { type: 'boolean', default: false },
    /** leave the folder with the database, the ledger's file and the logs */
    keep: { type: 'boolean', default: false },
  },
});
const hasTerminal = process.stdin.isTTY && process.stdout.isTTY;
const byItself = flags.auto || !hasTerminal || process.env['CI'] === 'true';

const say = (line: string): void => console.log(line);
let wrong = 0;
const show: Show = {
  title: (text) => say(`\n${text}\n`),
  say: (text) => say(text === '' ? '' : `    ${text}`),
  check(what, actual, expected) {
    const right = actual === expected;
    if (!right) wrong += 1;
    say(
      `  ${right ? '✓' : '✗'} ${what} ${String(actual)}${right ? '' : `, and it must be ${String(expected)}`}`,
    );
  },
};

/** A folder of its own, so that every demo starts from nothing and two of them do not meet. */
function makeFolder(): string {
  const parent = fileURLToPath(new URL('../../.countersign/demo/', import.meta.url));
  mkdirSync(parent, { recursive: true, mode: 0o700 });
  return mkdtempSync(join(parent, 'at-'));
}

async function run(running: Running, folder: string): Promise<void> {
  say('countersign demo: starting Temporal, the API, a worker and a ledger (a payments target) …');
  const demo = await startDemo(folder, running, say);
  introduce(demo);
  if (byItself) {
    await approveAndKillTheWorker(demo, show);
    await reject(demo, show);
    await decideTwice(demo, show);
    await approveSomethingElse(demo, show);
    await killTemporal(demo, show);
    return;
  }
  await waitForPerson(demo, show);
  await new Promise(() => undefined); // until Ctrl-C
}

function introduce({ temporal, ledger, anna }: Demo): void {
  say('');
  say(`    Temporal  ${temporal.address}, its Web UI ${temporal.uiUrl}`);
  say(`    API       ${anna.url}`);
  say(`    ledger    ${ledger.url}/ledger`);
}

const stop = stopWish();
const folder = makeFolder();
const running: Running = {};
let exitCode = 1;
try {
  const stopped = await Promise.race([stop, run(running, folder)]);
  if (stopped !== undefined) exitCode = byItself ? 130 : 0;
  else exitCode = wrong === 0 ? 0 : 1;
} catch (error) {
  say(`\ncountersign demo: ${error instanceof Error ? error.message : String(error)}`);
}
say('\nEnding what was started …');
await stopDemo(running);
if (flags.keep || exitCode === 1) say(`The database, the ledger and what was logged stay in ${folder}`);
else rmSync(folder, { recursive: true });
if (byItself && exitCode === 0) say('Every count is right.');
else if (wrong > 0) say(`${wrong} count(s) are wrong.`);
process.exit(exitCode);
