// docs/cli.md from the definitions of the commands: `node --import tsx scripts/cli-docs.ts` writes it, and
// test/cli-docs.test.ts fails while it is out of date.
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { format, resolveConfig } from 'prettier';
import { exitCodeMeanings, exitCodeOf, exitCodes } from '../src/cli/exit-codes.ts';
import { buildProgram } from '../src/cli/program.ts';
import { processTerminal } from '../src/cli/terminal.ts';
import { errorCodes, errorTable } from '../src/core/errors.ts';

const file = fileURLToPath(new URL('../docs/cli.md', import.meta.url));

/** The document as the commands are now, formatted as every document here. */
export async function cliDocs(): Promise<string> {
  const program = buildProgram({ terminal: processTerminal(), exit: () => undefined });
  const text = [intro, ...commandsOf(program).map(section), exitCodeSection()].join('\n\n');
  return format(text, { ...(await resolveConfig(file)), filepath: file });
}

const intro = `# The command line

_Made by \`scripts/cli-docs.ts\` from the commands themselves; change those, and run it._

\`countersign\` speaks HTTP to the API at \`COUNTERSIGN_URL\` (default \`http://127.0.0.1:7280\`) with the token in
\`COUNTERSIGN_TOKEN\`; only \`dev\`, \`worker\`, \`api\` and \`doctor\` speak to Temporal. \`tokens\` and \`keys\` edit the
secrets file and speak to nobody ([security.md](security.md)).

stdout is data, stderr is talk. On a terminal stdout is a table for people, in a pipe a row a line with tabs
between, with \`--json\` JSON; then a failure is one line of JSON on stderr. Control characters, escape
sequences and bidirectional controls in what others wrote are shown as \`\\uXXXX\`. \`NO_COLOR\` is respected.

What approves something is bound to a payload hash: on a terminal to that of the case which is shown, elsewhere
to \`--hash\`. A request that may have been lost is sent again with the same \`Idempotency-Key\`, so it counts once;
where it stays unclear, the message names the key for \`--idempotency-key\`.`;

/** Commands that do something, in the order of the help. */
function commandsOf(command: Command): Command[] {
  if (command.commands.length === 0) return [command];
  return command.commands.flatMap(commandsOf);
}

function section(command: Command): string {
  const usage = `${pathOf(command)} ${command.usage()}`.replace(/ \[options\]/, (match) =>
    command.options.length === 0 ? '' : match,
  );
  const rows = [
    ...command.registeredArguments.map((argument) => [
      argument.required ? `<${argument.name()}>` : `[${argument.name()}]`,
      argument.description,
    ]),
    ...command.options.map((option) => [
      option.flags,
      `${option.description}${option.mandatory ? '; required' : ''}`,
    ]),
  ];
  const table =
    rows.length === 0 ? '' : `\n\n${tableOf([['Argument or option', 'Meaning'], ...rows.map(codeFirst)])}`;
  return `## ${pathOf(command)}\n\n${sentence(command.description())}\n\n\`\`\`sh\n${usage}\n\`\`\`${table}`;
}

function exitCodeSection(): string {
  const meanings = exitCodeMeanings.map(([code, meaning]) => [String(code), meaning]);
  const problems = errorCodes.map((code) => {
    const { status } = errorTable[code];
    return [`\`${code}\``, String(status), String(exitCodeOf({ code, status }))];
  });
  return `## Exit codes

${tableOf([['Code', 'Meaning'], ...meanings])}

What the API answers (see [errors.md](errors.md)):

${tableOf([['Problem', 'Status', 'Exit code'], ...problems])}

An API that cannot be reached is ${exitCodes.unavailable}, a missing token ${exitCodes.notAllowed}.
`;
}

function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

function codeFirst([first = '', second = '']: string[]): string[] {
  return [`\`${first}\``, second];
}

function tableOf([head = [], ...rows]: string[][]): string {
  const line = (cells: string[]) => `| ${cells.map((text) => text.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(file, await cliDocs());
  console.log('docs/cli.md is written');
}
