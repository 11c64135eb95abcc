// Real child processes for tests, so that a kill is a kill. Each child says that it is ready by one JSON
// line on stdout, `{"ready": true, …}`. It is stopped after the test file at the latest, and none outlives
// the test process, however that ends: an exit hook here, and in the child the end of its stdin, see to it. Signals go to the pid that was started, never to a name.
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { closeAfterFile } from './cleanup.ts';

const repository = fileURLToPath(new URL('../../', import.meta.url));

/** Arguments for node that let it run a TypeScript file of this repository, and `countersign` mean `src`. */
export const nodeArguments = ['--import', 'tsx', '--conditions=countersign-source'] as const;

/** A cold start of tsx and Temporal's native core takes about 3 s; ten at once on two cores 20 s. */
const readyTimeoutMs = 60_000;
/** A worker that drains gets this long before a stop counts as hung. */
const stopTimeoutMs = 20_000;
/** Enough of stderr to see the cause, little enough to read. */
const stderrKept = 16_384;

export interface ReadyLine {
  ready: true;
  [name: string]: unknown;
}

export interface SpawnOptions {
  args?: readonly string[];
  /** Arguments of node itself. Default: those that let it run TypeScript of this repository. */
  node?: readonly string[];
  /** Gets each line that the child prints after its ready line. */
  onLine?: (line: string) => void;
  env?: Readonly<Record<string, string>>;
}

export interface TestProcess {
  readonly pid: number;
  readonly ready: ReadyLine;
  /** What it wrote to stderr so far, the newest part. */
  stderr(): string;
  /** True until the process has ended. */
  running(): boolean;
  /** SIGKILL; resolves when it is gone, and fails unless it was the signal that ended it. */
  kill(): Promise<void>;
  /** SIGTERM; resolves when it is gone, and fails when it does not go. Does nothing to one that is gone. */
  stop: () => Promise<void>;
  /** Ends its stdin, as the end of this process would. */
  closeInput(): void;
  /** Resolves when it has ended, however. */
  ended: Promise<unknown>;
  /** Writes a line to its stdin. */
  send(line: string): void;
}

interface Ending {
  code: number | null;
  signal: NodeJS.Signals | null;
}

const children = new Set<ChildProcess>();
let hooked = false;

function killAll(): void {
  for (const child of children) child.kill('SIGKILL');
}

/** Makes SIGTERM and SIGINT run the exit hooks, which their default ending skips; the runner ends a hung file so. */
export function endOnSignals(): void {
  if (hooked) return;
  hooked = true;
  process.once('exit', killAll);
  for (const [signal, code] of [
    ['SIGTERM', 143],
    ['SIGINT', 130],
  ] as const) {
    process.once(signal, () => process.exit(code));
  }
}

/**
 * Starts a TypeScript file of this repository, given by its path from the repository's root, and waits for
 * its ready line. Lines on stdout after that one go to
 * `onLine`.
 */
export async function spawnProcess(file: string, options: SpawnOptions = {}): Promise<TestProcess> {
  endOnSignals();
  const child = spawn(process.execPath, [...(options.node ?? nodeArguments), file, ...(options.args ?? [])], {
    cwd: repository,
    env: { ...process.env, TZ: 'UTC', ...options.env },
    // stdin stays open: its end tells the child that its parent is gone, even by SIGKILL.
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  children.add(child);
  child.stdin.on('error', () => undefined); // it is gone, and its end is told elsewhere

  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    stderr = (stderr + chunk).slice(-stderrKept);
  });
  let failedToStart: Error | undefined;
  child.once('error', (error) => {
    failedToStart = error;
  });
  const ended = new Promise<Ending>((resolve) => {
    child.once('close', (code, signal) => {
      children.delete(child);
      resolve({ code, signal });
    });
  });

  const describe = (what: string): Error =>
    new Error(`${file} (pid ${String(child.pid)}) ${what}; its stderr:\n${stderr || '(nothing)'}`);

  const ready = await new Promise<ReadyLine>((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      reject(describe(`was not ready after ${String(readyTimeoutMs)} ms`));
    }, readyTimeoutMs);
    let isReady = false;
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (isReady) {
        options.onLine?.(line);
        return;
      }
      const parsed = readyLine(line);
      if (!parsed) return;
      isReady = true;
      clearTimeout(timer);
      resolve(parsed);
    });
    void ended.then(({ code, signal }) => {
      clearTimeout(timer);
      reject(failedToStart ?? describe(`ended (${signal ?? `code ${String(code)}`}) before it was ready`));
    });
  });
  const pid = child.pid;
  assert(pid !== undefined);

  const running = (): boolean => child.exitCode === null && child.signalCode === null;

  const started: TestProcess = {
    pid,
    ready,
    stderr: () => stderr,
    running,
    async kill() {
      assert(child.kill('SIGKILL'), describe('was already gone when it was to be killed'));
      const { code, signal } = await ended;
      assert.equal(
        signal,
        'SIGKILL',
        describe(`ended by ${signal ?? `code ${String(code)}`}, not by the kill`).message,
      );
    },
    closeInput: () => {
      child.stdin.end();
    },
    ended,
    send: (line) => {
      child.stdin.write(`${line}\n`);
    },
    async stop() {
      if (!running()) return;
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs);
      const { signal } = await ended;
      clearTimeout(timer);
      assert.notEqual(
        signal,
        'SIGKILL',
        describe(`did not end ${String(stopTimeoutMs)} ms after SIGTERM`).message,
      );
    },
  };
  closeAfterFile(started.stop);
  return started;
}

function readyLine(line: string): ReadyLine | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    const value = JSON.parse(line) as { ready?: unknown };
    return value.ready === true ? (value as ReadyLine) : undefined;
  } catch {
    return undefined;
  }
}

/** For the child's side: prints the ready line. */
export function reportReady(fields: Record<string, unknown> = {}): void {
  process.stdout.write(`${JSON.stringify({ ready: true, ...fields })}\n`);
}

/** For the child's side: ends this process when its parent is gone. */
export function endWithParent(): void {
  process.stdin.on('end', () => process.exit(0)).resume();
  // Only a reason to end, never a reason to stay.
  (process.stdin as unknown as { unref?: () => void }).unref?.();
}
