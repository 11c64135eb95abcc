// The bench's side of a worker process: starts it, hears of effects, asks for its memory, kills it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

export type SideName = 'handWritten' | 'countersign';

export interface WorkerSettings {
  side: SideName;
  address: string;
  namespace: string;
  taskQueue: string;
  bundle: string;
  secretsFile: string;
  specHash: string;
  maxCachedWorkflows: number;
  stickIn?: 'recording' | 'effect';
}

export type WorkerReport =
  | { type: 'ready' }
  | { type: 'stuck' }
  | { type: 'effect'; runId: string; attempt: number; at: number }
  | { type: 'memory'; rss: number; heapUsed: number };

export interface EffectStart {
  attempt: number;
  /** on the machine's monotonic clock, milliseconds */
  at: number;
}

export interface WorkerProcess {
  pid: number;
  /** Resolves when the effect of that run starts in this process; also when it has started already. */
  effectOf(runId: string): Promise<EffectStart>;
  /** Resolves when it is where it was told to stick. */
  stuck: Promise<void>;
  /** Bytes, after a collection of the main thread's garbage. */
  memory(): Promise<{ rss: number; heapUsed: number }>;
  /** SIGKILL; resolves when it is gone. */
  kill(): Promise<void>;
  /** Lets it drain; resolves when it is gone. */
  stop(): Promise<void>;
}

/** A worker drains what runs for at most its grace time of 10 s. */
const stopBoundMs = 15_000;

/** `program`: worker-main as JavaScript. */
export async function startWorkerProcess(program: string, settings: WorkerSettings): Promise<WorkerProcess> {
  const args = ['--expose-gc', program, JSON.stringify(settings)];
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const killWithParent = (): void => void child.kill('SIGKILL');
  process.once('exit', killWithParent);
  const exited = once(child, 'close').then(() => process.off('exit', killWithParent));
  child.stdin.on('error', () => undefined); // it is gone: `exited` tells

  const effects = new Map<string, EffectStart>();
  const waiting = new Map<string, (start: EffectStart) => void>();
  const ready = latch();
  const stuck = latch();
  let tellMemory: ((memory: { rss: number; heapUsed: number }) => void) | undefined;
  createInterface({ input: child.stdout }).on('line', (line) => {
    const report = JSON.parse(line) as WorkerReport;
    switch (report.type) {
      case 'ready':
        return ready.open();
      case 'stuck':
        return stuck.open();
      case 'memory':
        return tellMemory?.(report);
      case 'effect':
        effects.set(report.runId, report);
        waiting.get(report.runId)?.(report);
    }
  });
  const early = exited.then(() => {
    throw new Error(`the worker of ${settings.side} ended; its lines above say why`);
  });
  early.catch(() => undefined); // its end is no fault later on
  await Promise.race([ready.opened, early]);

  return {
    pid: child.pid!,
    stuck: stuck.opened,
    effectOf(runId) {
      const known = effects.get(runId);
      if (known !== undefined) return Promise.resolve(known);
      return new Promise((resolve) => waiting.set(runId, resolve));
    },
    memory() {
      const answer = new Promise<{ rss: number; heapUsed: number }>((resolve) => (tellMemory = resolve));
      child.stdin.write('memory\n');
      return answer;
    },
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
    async stop() {
      child.stdin.end();
      const timer = setTimeout(killWithParent, stopBoundMs);
      await exited;
      clearTimeout(timer);
    },
  };
}

function latch(): { opened: Promise<void>; open: () => void } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}
