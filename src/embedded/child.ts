// A child process whose output is kept, whose end can be awaited, and that ends with this process.
import { spawn } from 'node:child_process';
import { createWriteStream, renameSync } from 'node:fs';
import { createInterface } from 'node:readline';

export interface ChildOptions {
  command: string;
  args: readonly string[];
  env: NodeJS.ProcessEnv;
  /** Gets each line that it writes; or the file for them. The file of the start before is kept as `<file>.1`. */
  log: string | ((line: string) => void);
  ownProcessGroup: boolean;
}

export interface Child {
  /** undefined when it could not be started */
  pid: number | undefined;
  /** Resolves when it has ended and all that it wrote is read; also when it could not be started. */
  exited: Promise<void>;
  /** the end of what it wrote, or why it could not be started */
  lastWords(): string;
  /** Sends the signal, SIGKILL when that is not enough, and waits for the end. */
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>;
}

// The Temporal dev server ends in 1–2 s, and its database is safe against SIGKILL.
const endBoundMs = 10_000;

// Enough for a Go panic's first lines or a usage error.
const wordsKept = 20;

export function launchChild(options: ChildOptions): Child {
  const child = spawn(options.command, options.args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: options.ownProcessGroup,
    env: options.env,
  });
  const { log, close } = openLog(options.log);
  const words: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => {
      words.push(line);
      if (words.length > wordsKept) words.shift();
      log(line);
    });
  }
  const exited = new Promise<void>((resolve) => {
    child.once('error', (error) => {
      words.push(error.message);
      resolve();
    });
    child.once('close', () => resolve());
  });
  const killWithParent = (): void => void child.kill('SIGKILL');
  process.once('exit', killWithParent);
  void exited.then(() => {
    process.off('exit', killWithParent);
    close();
  });
  return {
    pid: child.pid,
    exited,
    lastWords: () => words.join('\n'),
    async end(signal) {
      child.kill(signal);
      const impatience = setTimeout(() => child.kill('SIGKILL'), endBoundMs);
      await exited;
      clearTimeout(impatience);
    },
  };
}

function openLog(log: ChildOptions['log']): { log: (line: string) => void; close: () => void } {
  if (typeof log !== 'string') return { log, close: () => undefined };
  try {
    renameSync(log, `${log}.1`);
  } catch {
    // the first start
  }
  const file = createWriteStream(log, { mode: 0o600 });
  // a full disk must not end this process; the server itself will say so
  file.on('error', () => undefined);
  return { log: (line) => void file.write(`${line}\n`), close: () => file.end() };
}
