// The harness's side of the target: starts it, tells it how to misbehave, reads its ledger.
import { join } from 'node:path';
import { spawnProcess, type TestProcess } from '../support/processes.ts';
import type { Programs } from './compile.ts';
import type { LedgerLine } from './evidence.ts';
import type { TargetControl } from './target.ts';

export interface TargetState {
  lines: LedgerLine[];
  /** how often each of its faults has struck since the last reset */
  fired: Record<string, number>;
  /** requests that it will still carry out, though their connections are gone */
  underway: number;
}

export interface Target {
  process: TestProcess;
  port: number;
  state(): Promise<TargetState>;
  control(wish: TargetControl): Promise<void>;
  /** Resolves with the body of the next request that it carries out. */
  nextDone(): Promise<unknown>;
}

export async function startTarget(programs: Programs, file: string): Promise<Target> {
  let waiting: ((body: unknown) => void)[] = [];
  const child = await spawnProcess(join(programs.folder, 'test/chaos/target.js'), {
    node: [],
    args: [file],
    onLine: (line) => {
      const { done } = JSON.parse(line) as { done: unknown };
      for (const tell of waiting.splice(0)) tell(done);
    },
  });
  const port = Number(child.ready['port']);
  const url = `http://127.0.0.1:${port}`;
  return {
    process: child,
    port,
    state: async () => (await (await fetch(`${url}/ledger`)).json()) as TargetState,
    async control(wish) {
      const answer = await fetch(`${url}/control`, { method: 'POST', body: JSON.stringify(wish) });
      if (!answer.ok) throw new Error(`the target took no order: ${answer.status}`);
    },
    nextDone: () => new Promise((resolve) => (waiting = [...waiting, resolve])),
  };
}
