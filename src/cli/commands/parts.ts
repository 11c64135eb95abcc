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

/** One page, or all of them; `member` is the list's name in the answer. */
export async function readPages(
  { terminal, api }: Online,
  { path, member, query }: { path: string; member: string; query: Record<string, string | undefined> },
  { limit, cursor, all }: PageOptions,
): Promise<{ rows: unknown[]; cursor?: string }> {
  const rows: unknown[] = [];
  let at = cursor;
  for (;;) {
    const { body } = await api.request({ path, query: { ...query, limit, cursor: at } });
    const page = body as Record<string, unknown> & { cursor?: string };
    rows.push(...(page[member] as unknown[]));
    at = page.cursor;
    if (at === undefined) return { rows };
    if (all !== true) {
      terminal.err(`there is more: --cursor ${at}, or --all`);
      return { rows, cursor: at };
    }
  }
}
