// Commands that run a part of countersign or look at it from inside: they read the config file, and speak
// to Temporal themselves. Their code is loaded when they are called: a worker's is 30 MB.
import type { Command } from 'commander';
import { completionScript, shells } from '../completion.ts';
import { exitCodes, usageProblem } from '../exit-codes.ts';
import { printJson } from '../show.ts';
import type { CommandContext, JsonOption } from './parts.ts';

type ConfigOption = { config?: string };

function withConfig(command: Command): Command {
  return command.option('--config <file>', 'config file; default: countersign.config.{ts,mjs,js} here');
}

export function addServerCommands(program: Command): void {
  withConfig(program.command('dev'))
    .description('Temporal dev server, worker and API in one terminal')
    .action(async (options: ConfigOption) => (await import('../dev.ts')).runDev(options));

  withConfig(program.command('worker'))
    .description('one worker, on the Temporal at TEMPORAL_ADDRESS')
    .action(async (options: ConfigOption) => (await import('../worker.ts')).runWorker(options));

  withConfig(program.command('api'))
    .description('one API process, on the Temporal at TEMPORAL_ADDRESS')
    .option(
      '--create-secrets',
      'make the secrets file when it is missing, and print its token; the other processes share the file',
    )
    .action(async (options: ConfigOption & { createSecrets?: boolean }) =>
      (await import('../api.ts')).runApi(options),
    );
}

export function addInspectionCommands(program: Command, { terminal, exit }: CommandContext): void {
  withConfig(program.command('doctor'))
    .description('check Node, config, secrets, API, Temporal, search attributes, pollers and clocks')
    .option('--fix', 'register the search attributes that are missing')
    .option('--ui <url>', 'where the Temporal Web UI is, for the links; default: http://localhost:8233')
    .option('--json', 'print the findings as JSON')
    .action(async (options: ConfigOption & JsonOption & { fix?: boolean; ui?: string }) => {
      const { runDoctor } = await import('../doctor.ts');
      exit(await runDoctor(terminal, options));
    });

  const config = program.command('config').description('the configuration as it is in force');
  withConfig(config.command('print'))
    .description('print config file and environment together, as JSON')
    .option('--redacted', 'tools by name only, no secrets; always so')
    .option('--json', 'as JSON; always so')
    .action(async (options: ConfigOption) => {
      const { loadConfig, redactConfig } = await import('../../config.ts');
      const loaded = await loadConfig(options.config === undefined ? {} : { path: options.config });
      printJson(terminal, redactConfig(loaded));
      exit(exitCodes.ok);
    });

  program
    .command('completion')
    .argument('[shell]', `one of ${shells.join(', ')}`, 'bash')
    .description('print a completion script: source <(countersign completion)')
    .action((shell: string) => {
      const script = completionScript(program, shell);
      if (script === undefined) {
        throw usageProblem(`there is a completion for ${shells.join(', ')}, not for "${shell}"`);
      }
      terminal.out(script);
      exit(exitCodes.ok);
    });
}
