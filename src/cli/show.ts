// How answers are printed: JSON for programs, tables for people on a terminal, lines with tabs between for
// pipes. Nothing from outside reaches a terminal as it is.
import { formatDuration } from '../core/duration.ts';
import { visible } from './talk.ts';
import type { Terminal } from './terminal.ts';

export interface Column<Row> {
  title: string;
  of: (row: Row) => string | undefined;
}

/** Escapes are the same in JSON, so that the value stays. */
export function printJson(terminal: Terminal, value: unknown): void {
  terminal.out(`${visible(JSON.stringify(value, undefined, terminal.outIsTty ? 2 : undefined))}\n`);
}

/** One JSON value a line, always. */
export function printJsonLine(terminal: Terminal, value: unknown): void {
  terminal.out(`${visible(JSON.stringify(value))}\n`);
}

export function printText(terminal: Terminal, text: string): void {
  terminal.out(`${visible(text)}\n`);
}

/** On a terminal with a heading and aligned; else a row a line with tabs between, for cut and awk. */
export function printTable<Row>(
  terminal: Terminal,
  rows: readonly Row[],
  columns: readonly Column<Row>[],
): void {
  const cells = rows.map((row) => columns.map(({ of }) => cell(of(row) ?? '')));
  if (!terminal.outIsTty) {
    for (const line of cells) terminal.out(`${line.join('\t')}\n`);
    return;
  }
  if (rows.length === 0) {
    terminal.err('none');
    return;
  }
  const titles = columns.map(({ title }) => title.toUpperCase());
  const widths = titles.map((title, index) =>
    Math.max(title.length, ...cells.map((line) => [...(line[index] ?? '')].length)),
  );
  const aligned = (line: string[]) =>
    line.map((text, index) => text + ' '.repeat((widths[index] ?? 0) - [...text].length)).join('  ');
  terminal.out(`${strong(terminal, aligned(titles).trimEnd())}\n`);
  for (const line of cells) terminal.out(`${aligned(line).trimEnd()}\n`);
}

/** One cell is one line, whatever is in it. */
function cell(text: string): string {
  return visible(text).replace(/\n/g, '\\n');
}

function strong({ env }: Terminal, text: string): string {
  // https://no-color.org: set and not empty
  return env['NO_COLOR'] || env['TERM'] === 'dumb' ? text : `\u001b[1m${text}\u001b[22m`;
}

/** The two largest units, which is all that one reads: `2d4h`, `59m3s`. */
export function roughly(ms: number): string {
  if (ms < 1000) return '0s';
  return /^(?:\d+[a-z]+){1,2}/.exec(formatDuration(Math.trunc(ms / 1000) * 1000))?.[0] ?? '0s';
}

/** Lines of `label   text`; what has more lines than one is indented, so that no text can pose as a label. */
export function labelled(entries: readonly (readonly [string, string | undefined])[]): string {
  const shown = entries.filter((entry): entry is [string, string] => entry[1] !== undefined);
  const width = Math.max(...shown.map(([label]) => label.length)) + 2;
  return shown
    .map(([label, text]) => label.padEnd(width) + text.replace(/\n/g, `\n${' '.repeat(width)}`))
    .join('\n');
}
