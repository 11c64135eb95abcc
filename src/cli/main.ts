#!/usr/bin/env node
// The command line. stdout is data, stderr is talk. Exit codes: 0 ok, 1 invalid or failed, 64 usage,
// 69 Temporal unavailable.
import { Command } from 'commander';
import { ConfigError } from '../config-file.ts';
import { DevServerError } from '../embedded/dev-server.ts';
import { TemporalCliMissingError } from '../embedded/find-temporal-cli.ts';
import { SecretsError } from '../secrets-file.ts';
import { TemporalSetupError } from '../temporal-setup.ts';
import { UsageProblem } from './open-project.ts';
import { say } from './talk.ts';

const exitCodes = { invalid: 1, usage: 64, unavailable: 69 };

const program = new Command('countersign')
  .description('Exactly-once human approvals on Temporal')
  .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : exitCodes.usage));

const configOption = [
  '--config <file>',
  'config file; default: countersign.config.{ts,mjs,js} here',
] as const;

program
  .command('dev')
  .description('Temporal dev server, worker and API in one terminal')
  .option(...configOption)
  .action(async (options: { config?: string }) => (await import('./dev.ts')).runDev(options));

program
  .command('worker')
  .description('one worker, on the Temporal at TEMPORAL_ADDRESS')
  .option(...configOption)
  .action(async (options: { config?: string }) => (await import('./worker.ts')).runWorker(options));

program
  .command('api')
  .description('one API process, on the Temporal at TEMPORAL_ADDRESS')
  .option(...configOption)
  .option(
    '--create-secrets',
    'make the secrets file when it is missing, and print its token; the other processes share the file',
  )
  .action(async (options: { config?: string; createSecrets?: boolean }) =>
    (await import('./api.ts')).runApi(options),
  );

/** Errors that their message explains to a user; any other one is ours, and its stack is worth having. */
const explained = [
  UsageProblem,
  ConfigError,
  SecretsError,
  TemporalSetupError,
  TemporalCliMissingError,
  DevServerError,
];

try {
  await program.parseAsync();
  process.exit(0);
} catch (error) {
  const isExplained = isTransport(error) || explained.some((kind) => error instanceof kind);
  say(
    isExplained || !(error instanceof Error)
      ? `countersign: ${messageOf(error)}`
      : (error.stack ?? error.message),
  );
  process.exit(
    isTransport(error) || error instanceof TemporalSetupError ? exitCodes.unavailable : exitCodes.invalid,
  );
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function isTransport(error: unknown): boolean {
  return error instanceof Error && error.name === 'TransportError';
}
