// A program of this repository run as a user runs it: what it prints, how it ends, and whom it leaves behind.
// One that does not say in JSON that it is ready, or that is not meant to get so far; the others are
// spawnProcess()'s.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { closeAfterFile } from './cleanup.ts';
import { eventually } from './eventually.ts';
import { endOnSignals, nodeArguments } from './processes.ts';

export interface Script {
  pid: number;
  stdout(): string;
  stderr(): string;
  /** Waits until stdout or stderr matches. Fails when it ends before. */
  says(pattern: RegExp): Promise<RegExpExecArray>;
  signal(name: NodeJS.Signals): void;
  /** the exit code, or the signal that ended it; all that it printed is read by then */
  ended: Promise<number | NodeJS.Signals>;
}

export interface ScriptOptions {
  args?: readonly string[];
  /** added to this process's; undefined takes one away */
  env?: Readonly<Record<string, string | undefined>>;
}

const repository = fileURLToPath(new URL('../../', import.meta.url));
/** Longer than whatever a program of ours waits for its own children. */
const stopTimeoutMs = 60_000;

/** A whole demo, on a machine that is busy with ten others; the runner gives a file 300 s. */
const sayTimeoutMs = 280_000;

/** Starts a TypeScript file, given by its path from the repository's root. It is ended after the test file. */
export function startScript(file: string, { args = [], env = {} }: ScriptOptions = {}): Script {
  endOnSignals();
  const child = spawn(process.execPath, [...nodeArguments, file, ...args], {
    cwd: repository,
    // its stdin ends with this process, and with it the script, in its own order
    env: { ...process.env, TZ: 'UTC', COUNTERSIGN_END_WITH_STDIN: '1', ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const text = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (chunk: string) => (text[name] += chunk));
  }
  let gone = false;
  const ended = once(child, 'close').then(([code, signal]) => {
    gone = true;
    return (signal ?? code) as number | NodeJS.Signals;
  });
  closeAfterFile(async () => {
    if (gone) return;
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs);
    await ended;
    clearTimeout(timer);
  });
  return {
    pid: child.pid!,
    stdout: () => text.stdout,
    stderr: () => text.stderr,
    async says(pattern) {
      const found = await eventually(
        () => {
          const match = pattern.exec(text.stdout) ?? pattern.exec(text.stderr);
          return match ?? (gone ? 'gone' : undefined);
        },
        { timeoutMs: sayTimeoutMs, message: `${String(pattern)} in what ${file} prints` },
      );
      if (found !== 'gone') return found;
      throw new Error(`${file} ended and did not say ${String(pattern)}:\n${text.stdout}\n${text.stderr}`);
    },
    signal: (name) => void child.kill(name),
    ended,
  };
}

/** The pids of the children of that process, their children, and so on. By /proc. */
export function descendantsOf(pid: number): number[] {
  const parents = new Map(processes().map((one) => [one.pid, one.parent]));
  const found = [pid];
  for (let index = 0; index < found.length; index += 1) {
    for (const [child, parent] of parents) if (parent === found[index]) found.push(child);
  }
  return found.slice(1);
}

/** False for one that has ended and was not waited for by its new parent, too. */
export function isRunning(pid: number): boolean {
  return processes().some((one) => one.pid === pid && one.state !== 'Z');
}

/** The command line of a process, its parts with a space between them; empty when it is gone. */
export function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}

function processes(): { pid: number; state: string; parent: number }[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      // `pid (name) state parent …`, and a name may hold anything
      const [state = '', parent = ''] = readFileSync(`/proc/${name}/stat`, 'utf8')
        .replace(/^.*\) /s, '')
        .split(' ');
      return [{ pid: Number(name), state, parent: Number(parent) }];
    } catch {
      return []; // it ended meanwhile
    }
  });
}
