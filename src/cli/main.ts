#!/usr/bin/env node
// The process around the command line: runs it once, and turns what it throws into words and an exit code.
// It imports no more than that: most commands are one HTTP request, and Temporal's client takes a second.
import { exitCodes } from './exit-codes.ts';
import { runCommandLine } from './program.ts';
import { say } from './talk.ts';
import { processTerminal } from './terminal.ts';

/** Errors that their message explains to a user; any other one is ours, and its stack is worth having. */
const explained = new Set([
  'UsageProblem',
  'ConfigError',
  'SecretsError',
  'TemporalSetupError',
  'TemporalCliMissingError',
  'DevServerError',
  'TransportError',
]);
const unavailable = new Set(['TemporalSetupError', 'TransportError']);

try {
  const exitCode = await runCommandLine(process.argv.slice(2), processTerminal());
  // what was printed is read before the process ends, however slowly
  await new Promise<void>((resolve) => process.stdout.write('', () => resolve()));
  process.exit(exitCode);
} catch (error) {
  if (!(error instanceof Error)) say(`countersign: ${String(error)}`);
  else if (explained.has(error.name)) say(`countersign: ${error.message}`);
  else say(error.stack ?? error.message);
  const isUnavailable = error instanceof Error && unavailable.has(error.name);
  process.exit(isUnavailable ? exitCodes.unavailable : exitCodes.invalid);
}
