// A part of a whole that runs on one machine: a child process that says in one JSON line on stdout that it
// is ready, logs to stderr, and ends when its stdin does, so that it never outlives who started it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { UsageProblem } from './open-project.ts';

export interface PartOptions {
  name: string;
  /** for node: the script and its arguments */
  args: readonly string[];
  env: NodeJS.ProcessEnv;
  /** gets each line that it logs, and whatever else it prints */
  say: (line: string) => void;
}

export interface Part {
  name: string;
  pid: number | undefined;
  /** what it reported when it was ready. @throws UsageProblem when it ends before that */
  ready: Promise<Record<string, unknown>>;
  /** Resolves with how it ended. Never rejects. */
  ended: Promise<string>;
  /** SIGTERM, and SIGKILL when it has not ended in time (15 s). Does nothing to one that has ended. */
  stop(boundMs?: number): Promise<void>;
  /** SIGKILL. Resolves with how it ended. */
  kill(): Promise<string>;
}

/** A worker gives effects in flight 10 s (its grace time); what has not ended after that is killed. */
const stopBoundMs = 15_000;

export function startPart({ name, args, env, say }: PartOptions): Part {
  const child = spawn(process.execPath, args, {
    env: { ...env, COUNTERSIGN_END_WITH_STDIN: '1' },
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true, // Ctrl-C reaches only us, so that the parts can be ended in order
  });
  // a part that is gone takes no input; its end is told by `ended`
  child.stdin.on('error', () => undefined);
  // `close` and not `exit`: by then all that it said is read
  const ended = once(child, 'close').then(
    ([code, signal]) => String(signal ?? `code ${String(code)}`),
    (error: unknown) => String(error),
  );
  const ready = new Promise<Record<string, unknown>>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      const report = readyReport(line);
      // a tool of the user's may print anything
      if (report === undefined) say(line);
      else resolve(report);
    });
    void ended.then((how) =>
      reject(new UsageProblem(`${name} did not start (${how}); its lines above say why`)),
    );
  });
  // when nobody waits for it any more, `ended` tells the same
  ready.catch(() => undefined);
  createInterface({ input: child.stderr }).on('line', say);

  const hasEnded = () => child.exitCode !== null || child.signalCode !== null || child.pid === undefined;
  return {
    name,
    pid: child.pid,
    ready,
    ended,
    async stop(boundMs = stopBoundMs) {
      if (hasEnded()) return;
      child.kill('SIGTERM');
      const impatience = setTimeout(() => child.kill('SIGKILL'), boundMs);
      await ended;
      clearTimeout(impatience);
    },
    kill() {
      child.kill('SIGKILL');
      return ended;
    },
  };
}

function readyReport(line: string): Record<string, unknown> | undefined {
  if (!line.startsWith('{"ready":true')) return undefined;
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}
