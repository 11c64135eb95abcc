// Approvals: what waits, one case, what changes; and the decided ones for evaluation sets.
import type { Command } from 'commander';
import { caseText, type Approval } from '../case-text.ts';
import { readApproval } from '../decide.ts';
import { usageProblem } from '../exit-codes.ts';
import { printJson, printJsonLine, printTable, printText, roughly } from '../show.ts';
import { watchApprovals } from '../watch-approvals.ts';
import {
  duration,
  online,
  pages,
  readPages,
  withFilters,
  withJson,
  type CommandContext,
  type JsonOption,
  type PageOptions,
} from './parts.ts';

interface Filters {
  state?: string;
  tool?: string;
  spec?: string;
  run?: string;
}

function withApprovalFilters(command: Command): Command {
  return command
    .option('--tool <name>', 'only those for this tool')
    .option('--spec <name>', 'only those of runs of this spec')
    .option('--run <id>', 'only those of this run');
}

export function addApprovalCommands(program: Command, context: CommandContext): void {
  const approvals = program.command('approvals').description('list, show and watch approvals');

  const list = approvals
    .command('list')
    .description('what waits for a decision, newest run first')
    .option('--state <state>', 'pending, approved, rejected, expired, …; default: pending');
  withJson(withFilters(withApprovalFilters(list))).action(
    online(context, async (on, options: JsonOption & PageOptions & Filters) => {
      const { json, state, tool, spec, run, ...page } = options;
      const ask = { path: '/approvals', member: 'approvals', query: { state, tool, spec, run } };
      const { rows, ...more } = await readPages(on, ask, page);
      if (json === true) return printJson(on.terminal, { approvals: rows, ...more });
      printTable(on.terminal, rows as Approval[], [
        { title: 'key', of: ({ key }) => key },
        { title: 'state', of: ({ state }) => state },
        { title: 'title', of: ({ title }) => title },
        { title: 'tool', of: ({ tool }) => tool },
        { title: 'run', of: ({ runId }) => runId },
        {
          title: 'left',
          of: ({ timeLeftMs }) => (timeLeftMs === undefined ? undefined : roughly(timeLeftMs)),
        },
      ]);
    }),
  );

  const show = approvals.command('show').argument('<key>', 'approval key').description('one case, in full');
  withJson(show).action(
    online(context, async ({ terminal, api }, key: string, { json }: JsonOption) => {
      const approval = await readApproval(api, key);
      if (json === true) printJson(terminal, approval);
      else printText(terminal, caseText(approval));
    }),
  );

  const watch = approvals
    .command('watch')
    .description('print approvals as they come and as they are settled, until Ctrl-C')
    .option('--interval <duration>', 'how often to look; default: 2s', duration)
    .option('--timeout <duration>', 'end after this', duration);
  withJson(withApprovalFilters(watch)).action(
    online(context, async (on, options: JsonOption & Filters & { interval?: number; timeout?: number }) => {
      const { json = false, interval = 2000, timeout, tool, spec, run } = options;
      const wish = { json, intervalMs: interval, timeoutMs: timeout, query: { tool, spec, run } };
      await watchApprovals(on, wish);
    }),
  );

  const decisions = program.command('decisions').description('decided cases');
  const exported = decisions
    .command('export')
    .description('every decided case with verdict, reason and payload, one JSON object a line')
    .option('--jsonl', 'one JSON object a line; the only format')
    .option('--spec <name>', 'only those of runs of this spec')
    .option('--since <time>', 'only those of runs started at or after this time (ISO 8601)')
    .option('--json', 'one JSON document instead of lines');
  exported.action(
    online(context, async (on, options: JsonOption & { jsonl?: boolean; spec?: string; since?: string }) => {
      const { json, jsonl, spec, since } = options;
      if (json === true && jsonl === true) throw usageProblem('--json and --jsonl exclude each other');
      const ask = { path: '/decisions', member: 'decisions', query: { spec, since } };
      if (json === true) {
        const { rows } = await readPages(on, ask, { all: true });
        return printJson(on.terminal, { decisions: rows });
      }
      // as they come: there may be many
      for await (const { rows } of pages(on, ask)) {
        for (const row of rows) printJsonLine(on.terminal, row);
      }
    }),
  );
}
