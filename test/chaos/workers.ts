// The workers of a world. One stands by, loaded and without settings, so that a killed one is replaced as fast
// as a supervisor with a warm spare could.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { spawnProcess, type TestProcess } from '../support/processes.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import type { WorkerSettings } from '../support/worker.ts';

export interface Workers {
  /** Starts one more; resolves when it polls. */
  start(more?: WorkerWishes): Promise<TestProcess>;
  running(): TestProcess[];
  /** Every worker by SIGKILL; with `replace`, another one at once. */
  killAll(replace?: WorkerWishes): Promise<number>;
  /** By SIGTERM; it drains. */
  stop(worker: TestProcess): Promise<void>;
  /** SIGSTOP to all that run; later SIGCONT. */
  pause(worker: TestProcess): void;
  resume(worker: TestProcess): void;
  /** Exactly one that is as workers are by default. */
  heal(): Promise<void>;
  close(): Promise<void>;
}

export interface WorkerWishes {
  maxCachedWorkflows?: number;
  /** the text of its workflow code differs from that of the others */
  build?: number;
}

export interface WorkersOptions {
  program: string;
  node: readonly string[];
  env: Record<string, string>;
  settings: WorkerSettings & { bundle: string; targetUrl: string };
}

/** Longer than any fault. */
const restartsMs = 60_000;
const pauseMs = 300;

export function createWorkers({ program, node, env, settings }: WorkersOptions): Workers {
  const folder = temporaryFolder();
  let live: { process: TestProcess; isPlain: boolean }[] = [];
  let standby: Promise<Standby> | undefined;
  const standBy = (): Promise<Standby> => openStandby(program, node, env);

  const take = async (wishes: object): Promise<TestProcess | undefined> => {
    const taken = await (standby ?? standBy());
    standby = standBy();
    standby.catch(() => undefined); // told to whoever takes it
    return taken.begin(wishes);
  };
  const start: Workers['start'] = async (more = {}) => {
    const { build, ...rest } = more;
    const bundle = build === undefined ? settings.bundle : buildOf(build);
    const end = performance.now() + restartsMs;
    for (;;) {
      const child = await take({ ...settings, ...rest, bundle });
      if (child?.running() === true) {
        live.push({ process: child, isPlain: Object.keys(more).length === 0 });
        return child;
      }
      // Temporal cannot be reached: it says so and ends, and is started again, as by any supervisor
      if (performance.now() > end)
        throw new Error(`no worker came to poll in ${restartsMs} ms:\n${child?.stderr()}`);
      await sleep(pauseMs);
    }
  };
  const buildOf = (build: number): string => {
    const path = join(folder, `build-${build}.js`);
    // in front: the SDK takes whatever stands behind the source map for a part of it
    writeFileSync(path, `/* build ${build} */ ${readFileSync(settings.bundle, 'utf8')}`);
    return path;
  };
  const running = (): TestProcess[] => {
    live = live.filter(({ process: one }) => one.running());
    return live.map(({ process: one }) => one);
  };

  return {
    start,
    running,
    async killAll(replace) {
      const killed = running();
      await Promise.all(killed.map((worker) => worker.kill()));
      if (replace !== undefined) await start(replace);
      return killed.length;
    },
    async stop(worker) {
      await worker.stop();
      running();
    },
    pause: ({ pid }) => void process.kill(pid, 'SIGSTOP'),
    resume: ({ pid }) => void process.kill(pid, 'SIGCONT'),
    async heal() {
      running();
      for (const { process: one } of live) process.kill(one.pid, 'SIGCONT');
      const [keep] = live.filter(({ isPlain }) => isPlain);
      await Promise.all(live.filter((one) => one !== keep).map(({ process: one }) => one.stop()));
      running();
      if (keep === undefined || live.length === 0) await start();
    },
    async close() {
      const last = await standby?.catch(() => undefined);
      await Promise.all([...running().map((worker) => worker.kill()), last?.process.kill()]);
    },
  };
}

interface Standby {
  process: TestProcess;
  /** Resolves when it polls, or has ended. */
  begin(settings: object): Promise<TestProcess>;
}

async function openStandby(
  program: string,
  node: readonly string[],
  env: Record<string, string>,
): Promise<Standby> {
  let polls: () => void = () => undefined;
  const polling = new Promise<void>((resolve) => (polls = resolve));
  const child = await spawnProcess(program, {
    node,
    env,
    onLine: (line) => {
      if (line.includes('"polling"')) polls();
    },
  });
  return {
    process: child,
    async begin(settings) {
      child.send(JSON.stringify(settings));
      await Promise.race([polling, child.ended]);
      return child;
    },
  };
}
