// One pass of node's test runner over some files, in a process group of its own, so that whatever the files
// started can be found and ended, and a file that leaves a process behind is told on.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { nodeArguments } from '../test/support/processes.ts';

/** A file that takes this long hangs; the slowest takes two or three minutes on two cores. */
const fileTimeoutMs = 900_000;
/** Server tests wait about a third of their time: one more at a time than cores, but more than four share one server badly. */
const concurrency = Math.min(4, availableParallelism() + 1);
/** Children notice the end of their parent by their stdin, within milliseconds. */
const lingerMs = 10_000;

/** What count-reporter.mjs says of one test. */
export interface CountedTest {
  name: string;
  file?: string;
  result: 'passed' | 'failed' | 'skipped';
  /** why it was skipped, or what is wrong with a file as a whole */
  note?: string;
}

export interface PassOptions {
  env: NodeJS.ProcessEnv;
  /** for the file of results */
  folder: string;
  /** put before each name */
  label?: string;
}

/** Runs the files, shows the outcome as it comes, and gives one entry a test. */
export async function runTestFiles(files: readonly string[], options: PassOptions): Promise<CountedTest[]> {
  const resultFile = join(mkdtempSync(join(options.folder, 'pass-')), 'results.jsonl');
  const args = [
    ...nodeArguments,
    '--test',
    `--test-concurrency=${concurrency}`,
    `--test-timeout=${fileTimeoutMs}`,
    '--test-reporter=spec',
    '--test-reporter-destination=stdout',
    '--test-reporter=./scripts/count-reporter.mjs',
    `--test-reporter-destination=${resultFile}`,
    ...files,
  ];
  const runner = spawn(process.execPath, args, {
    detached: true,
    env: options.env,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const group = runner.pid;
  if (group === undefined) throw new Error('node could not be started');
  const killGroup = (): void => void signalGroup(group, 'SIGKILL');
  process.once('exit', killGroup);
  const code = await new Promise<number | null>((resolve) => {
    runner.once('exit', resolve);
  });

  const results = readResults(resultFile);
  const failed = (name: string, note: string): void => void results.push({ name, result: 'failed', note });
  if (results.length === 0) failed('the test runner', 'it ran no test');
  if (code !== 0 && !results.some(({ result }) => result === 'failed')) {
    failed('the test runner', `it ended with code ${String(code)}`);
  }
  if (!(await groupEnds(group))) {
    failed('the test files', 'one of them left a process running');
    signalGroup(group, 'SIGKILL');
  }
  process.off('exit', killGroup);
  const { label } = options;
  return label === undefined ? results : results.map((one) => ({ ...one, name: `[${label}] ${one.name}` }));
}

function readResults(file: string): CountedTest[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as CountedTest);
}

async function groupEnds(group: number): Promise<boolean> {
  const giveUpAt = performance.now() + lingerMs;
  while (signalGroup(group, 0)) {
    if (performance.now() > giveUpAt) return false;
    await sleep(20);
  }
  return true;
}

/** False when nobody of the group is left. */
function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-group, signal);
    return true;
  } catch {
    return false;
  }
}
