// `npm run bench`: a hand-written Temporal workflow and a gated effect side by side, on one server, in turn, in one
// run, so that a busy machine is busy for both. stdout is the result, stderr says what goes on. It measures; that a
// goal is not met is told, and no failure.
import { availableParallelism, totalmem } from 'node:os';
import { DefaultLogger, Runtime } from '@temporalio/worker';
import { measureDecisions } from './decisions.ts';
import { measureHttp } from './http.ts';
import { measureLatency } from './latency.ts';
import { measureMemory } from './memory.ts';
import { readOptions, usage, type BenchOptions, type Part } from './options.ts';
import { measureRecovery } from './recovery.ts';
import { goalsOf, textOf, type BenchResult } from './report.ts';
import { openSides } from './sides.ts';
import { openStage, type Stage } from './stage.ts';

const say = (line: string): void => void process.stderr.write(`${line}\n`);

for (const [signal, code] of [
  ['SIGTERM', 143],
  ['SIGINT', 130],
] as const) {
  process.once(signal, () => process.exit(code)); // what was started ends in exit hooks
}
process.env['TZ'] = 'UTC';
Runtime.install({ logger: new DefaultLogger('ERROR') });

let options: BenchOptions;
try {
  options = readOptions(process.argv.slice(2));
} catch (error) {
  say(`${(error as Error).message}\n${usage}`);
  process.exit(64);
}
say('starting a Temporal dev server');
const stage = await openStage(say);
const result: BenchResult = { machine: machineOf(stage) };
let exitCode = 0;
try {
  await runParts(stage, options, result);
} catch (error) {
  // what was measured before it is still worth an hour's wait
  say(`the bench broke off: ${(error as Error).stack ?? String(error)}`);
  exitCode = 1;
}
await stage.close();
console.log(
  options.json ? JSON.stringify({ ...result, goals: goalsOf(result) }, undefined, 2) : textOf(result),
);
process.exit(exitCode);

async function runParts(on: Stage, asks: BenchOptions, found: BenchResult): Promise<void> {
  const { only, runs, burst, rounds, few, many, kills } = asks;
  const asked = (...names: Part[]): boolean => names.some((name) => only.includes(name));
  if (asked('cost', 'latency')) {
    say(`latency: ${runs} runs of each`);
    const { cost, ...latency } = await measureLatency(on, openSides(on), asked('latency') ? runs : 1);
    if (asked('cost')) found.cost = cost;
    if (asked('latency')) found.latency = latency;
  }
  if (asked('http')) {
    say(`HTTP: ${runs} approvals`);
    const [, countersign] = openSides(on);
    found.http = await measureHttp(on, countersign, runs);
  }
  if (asked('decisions')) {
    say(`decisions: ${rounds} rounds of ${burst} of each`);
    found.decisions = await measureDecisions(on, openSides(on), { burst, rounds });
  }
  if (asked('recovery')) {
    say(`recovery: ${kills} kills of each sort`);
    const [handWritten, countersign] = openSides(on);
    found.recovery = {
      handWritten: await measureRecovery(on, handWritten, kills),
      countersign: await measureRecovery(on, countersign, kills),
    };
  }
  // last: its runs stay open
  if (asked('memory', 'list')) {
    say(`memory and list: ${many} pending of each`);
    const sides = openSides(on);
    const measured = await measureMemory(
      on,
      asked('memory') ? sides : sides.slice(1),
      { few, many },
      { list: asked('list') },
    );
    if (asked('memory')) found.memory = measured.memory;
    if (measured.list !== undefined) found.list = measured.list;
  }
}

function machineOf({ temporalVersion }: Stage): BenchResult['machine'] {
  return {
    cores: availableParallelism(),
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    platform: `${process.platform} ${process.arch}`,
    node: process.versions.node,
    temporal: temporalVersion,
  };
}
