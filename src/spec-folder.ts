// Reads a folder of spec files: each file by itself, whatever is wrong with another. Never throws: what
// cannot be read is a problem at the file's first line.
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type LoadedSpec,
  maxSpecBytes,
  parseSpec,
  type SpecProblem,
  specSizeProblem,
} from './core/spec/load.ts';
import type { Tool } from './tool.ts';

/** `lastName`: the name of the spec that the file held when it was good. */
export type FileState =
  | { file: string; loaded: LoadedSpec }
  | { file: string; problems: SpecProblem[]; lastName?: string | undefined };

/** `before` is what the files were when they were read last. */
export async function readFolder(
  folder: string,
  tools: readonly Tool[],
  before: readonly FileState[],
): Promise<FileState[]> {
  let names: string[];
  try {
    names = await specFiles(folder);
  } catch (error) {
    return [
      {
        file: folder,
        problems: [atStart(folder, `the folder of the specs cannot be read: ${reasonOf(error)}`)],
      },
    ];
  }
  const states = await Promise.all(
    names.map(async (file): Promise<FileState | undefined> => {
      const result = await readSpec(join(folder, file), file, tools);
      if (result === undefined || 'loaded' in result) return result;
      const earlier = before.find((state) => state.file === file);
      if (earlier === undefined) return result;
      return { ...result, lastName: 'loaded' in earlier ? earlier.loaded.spec.name : earlier.lastName };
    }),
  );
  return states.filter((state) => state !== undefined);
}

/** Undefined: the file is gone by now. */
async function readSpec(path: string, file: string, tools: readonly Tool[]): Promise<FileState | undefined> {
  try {
    const { size } = await stat(path);
    if (size > maxSpecBytes) return { file, problems: [atStart(file, specSizeProblem(size))] };
    const text = new TextDecoder('utf-8', { fatal: true }).decode(await readFile(path));
    const parsed = parseSpec(text, { file, tools });
    return 'problems' in parsed ? { file, problems: parsed.problems } : { file, loaded: parsed };
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ENOENT') return undefined;
    const reason = error instanceof TypeError ? 'it is not UTF-8 text' : reasonOf(error);
    return { file, problems: [atStart(file, `the file cannot be read: ${reason}`)] };
  }
}

async function specFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder);
  // Not the hidden ones: editors leave lock and swap files.
  return entries.filter((name) => /^[^.].*\.ya?ml$/.test(name)).sort();
}

/** Changes with every change of the folder that a stat can see. */
export async function signatureOf(folder: string): Promise<string> {
  try {
    const files = await specFiles(folder);
    const marks = await Promise.all(
      files.map(async (file) => {
        try {
          const { mtimeNs, ctimeNs, size, ino } = await stat(join(folder, file), { bigint: true });
          return [file, mtimeNs, ctimeNs, size, ino].join(' ');
        } catch (error) {
          return `${file} ${reasonOf(error)}`;
        }
      }),
    );
    return marks.join('\n');
  } catch (error) {
    return reasonOf(error);
  }
}

function atStart(file: string, message: string): SpecProblem {
  return { file, line: 1, column: 1, message };
}

function reasonOf(error: unknown): string {
  const { code, message } = error as { code?: string; message?: string };
  if (code === 'ENOENT') return 'it does not exist';
  return code ?? message ?? String(error);
}
