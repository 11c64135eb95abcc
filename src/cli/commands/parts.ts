// What the definitions of the commands share: their context, their options, and readers of option values.
import { InvalidArgumentError, type Command } from 'commander';
import { durationRule, parseDuration } from '../../core/duration.ts';
import { connectApi, type ApiClient } from '../api-client.ts';
import { exitCodes, type ExitCode } from '../exit-codes.ts';
import type { Terminal } from '../terminal.ts';

export interface CommandContext {
  terminal: Terminal;
  /** The last command's exit code; what throws sets its own. */
  exit: (code: ExitCode) => void;
}

export interface Online {
  terminal: Terminal;
  api: ApiClient;
}

export type JsonOption = { json?: boolean };

export function withJson(command: Command): Command {
  return command.option('--json', 'print the answer as JSON');
}

export function withIdempotencyKey(command: Command): Command {
  return command.option(
    '--idempotency-key <key>',
    'key of an earlier call, to send the same again; default: a new one for each call',
  );
}

export function withFilters(command: Command): Command {
  return command
    .option('--limit <n>', 'rows a page, 1 to 20')
    .option('--cursor <cursor>', 'go on where an earlier page ended')
    .option('--all', 'every page');
}

/** An action that speaks to the API; what it returns is the exit code, nothing is 0. */
export function online<Arguments extends unknown[]>(
  { terminal, exit }: CommandContext,
  act: (on: Online, ...args: Arguments) => Promise<ExitCode | void>,
) {
  return async (...args: Arguments): Promise<void> => {
    exit((await act({ terminal, api: connectApi(terminal) }, ...args)) ?? exitCodes.ok);
  };
}

export function duration(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined) throw new InvalidArgumentError(`It must be ${durationRule}.`);
  return ms;
}

export interface PageOptions {
  limit?: string;
  cursor?: string;
  all?: boolean;
}

export interface PageSource {
  path: string;
  /** the list's name in the answer */
  member: string;
  query: Record<string, string | undefined>;
}

export interface Page {
  rows: unknown[];
  cursor?: string;
}

/** Page after page, from a cursor or the beginning. */
export async function* pages(
  { api }: Online,
  { path, member, query }: PageSource,
  { limit, cursor }: PageOptions = {},
): AsyncGenerator<Page> {
  let at = cursor;
  do {
    const { body } = await api.request({ path, query: { ...query, limit, cursor: at } });
    const page = body as Record<string, unknown> & { cursor?: string };
    at = page.cursor;
    yield { rows: page[member] as unknown[], ...(at === undefined ? {} : { cursor: at }) };
  } while (at !== undefined);
}

/** One page and a word on how to go on, or all of them as one. */
export async function readPages(on: Online, source: PageSource, options: PageOptions): Promise<Page> {
  const rows: unknown[] = [];
  for await (const page of pages(on, source, options)) {
    rows.push(...page.rows);
    if (options.all === true || page.cursor === undefined) continue;
    on.terminal.err(`there is more: --cursor ${page.cursor}, or --all`);
    return { rows, cursor: page.cursor };
  }
  return { rows };
}
