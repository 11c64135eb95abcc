// JSON that a command takes from a file, or from stdin as `-`. Read strictly here already: the message can
// name the file, and a duplicate key or a rounded number never gets as far as a request.
import { readFile } from 'node:fs/promises';
import { JsonProblemError, parseStrictJson } from '../core/strict-json.ts';
import type { Json } from '../core/json.ts';
import { CliProblem, exitCodes } from './exit-codes.ts';
import type { Terminal } from './terminal.ts';

/** @throws CliProblem */
export async function readJson(terminal: Terminal, file: string): Promise<Json> {
  const name = file === '-' ? 'stdin' : file;
  try {
    const bytes = file === '-' ? await terminal.readStdin() : await readFile(file);
    return parseStrictJson(bytes);
  } catch (error) {
    if (!(error instanceof JsonProblemError) && (error as NodeJS.ErrnoException).syscall === undefined) {
      throw error;
    }
    throw new CliProblem(exitCodes.invalid, `${name}: ${(error as Error).message}`, {
      code: 'invalid_input',
    });
  }
}
