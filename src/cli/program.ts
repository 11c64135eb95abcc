// The command line as a value: every command, its options, its help. Tests, docs/cli.md and the completion
// are made from it as the process is.
import { Command, CommanderError } from 'commander';
import { addApprovalCommands } from './commands/approval-commands.ts';
import { addDecisionCommands } from './commands/decision-commands.ts';
import type { CommandContext } from './commands/parts.ts';
import { addRunCommands } from './commands/run-commands.ts';
import { addSecretCommands } from './commands/secret-commands.ts';
import { addInspectionCommands, addServerCommands } from './commands/server-commands.ts';
import { CliProblem, exitCodeMeanings, exitCodes, type ExitCode } from './exit-codes.ts';
import type { Terminal } from './terminal.ts';
import { packageVersion } from './version.ts';

export function buildProgram(context: CommandContext & { json?: boolean }): Command {
  const { terminal, json = false } = context;
  const program = new Command('countersign')
    .description('Exactly-once human approvals on Temporal')
    .version(packageVersion())
    .configureOutput({
      writeOut: (text) => terminal.out(text),
      // with --json the caller says it, as data
      writeErr: (text) => json || terminal.err(text.replace(/\n$/, '')),
    })
    .showHelpAfterError('(--help says how it is called)')
    .exitOverride();
  addServerCommands(program);
  addRunCommands(program, context);
  addApprovalCommands(program, context);
  addDecisionCommands(program, context);
  addSecretCommands(program, context);
  addInspectionCommands(program, context);
  program.addHelpText('after', `\n${environmentText}\n\n${exitCodeText()}`);
  return program;
}

const environmentText = `Environment:
  COUNTERSIGN_URL    where the API is; default: http://127.0.0.1:7280
  COUNTERSIGN_TOKEN  an API token
  NO_COLOR           no bold headings`;

function exitCodeText(): string {
  const lines = exitCodeMeanings.map(([code, meaning]) => `  ${String(code).padEnd(3)} ${meaning}`);
  return `Exit codes:\n${lines.join('\n')}`;
}

/**
 * Runs one command line (without node and script) and gives its exit code. stdout is data, stderr is talk;
 * with --json a failure is a JSON line on stderr.
 * @throws what is no CliProblem: a failure of the project's or of ours
 */
export async function runCommandLine(args: readonly string[], terminal: Terminal): Promise<ExitCode> {
  let exitCode: ExitCode = exitCodes.ok;
  const json = args.includes('--json');
  const program = buildProgram({ terminal, exit: (code) => (exitCode = code), json });
  try {
    await program.parseAsync([...args], { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return exitCodes.ok;
      const message = error.message.replace(/^error: /, '');
      if (json) terminal.err(JSON.stringify({ message, code: 'usage', exitCode: exitCodes.usage }));
      return exitCodes.usage;
    }
    if (!(error instanceof CliProblem)) throw error;
    const { message, fields } = error;
    if (!json) terminal.err(`countersign: ${message}`);
    // a problem of the API says it in `detail`
    else
      terminal.err(
        JSON.stringify({ ...('detail' in fields ? {} : { message }), ...fields, exitCode: error.exitCode }),
      );
    return error.exitCode;
  }
}
