// The harness's side of the target: starts it, tells it how to misbehave, reads its ledger.
import { join } from 'node:path';
import { spawnProcess, type TestProcess } from '../support/processes.ts';
import type { Programs } from './compile.ts';
import type { LedgerLine } from './evidence.ts';
import type { TargetControl } from './target.ts';

export interface TargetState {
  /** of orders that begin with the prefix that was asked for */
  lines: LedgerLine[];
  /** how often each of its faults has struck since the last reset */
  fired: Record<string, number>;
  /** requests that it will still carry out, though their connections are gone */
  underway: number;
}

export interface Target {
  process: TestProcess;
  port: number;
  /** Without a prefix: no lines. */
  state(prefix?: string): Promise<TargetState>;
  control(wish: TargetControl): Promise<void>;
  /** Resolves when it carries that order out. Call it before. */
  untilDone(order: string): Promise<void>;
}

export async function startTarget(programs: Programs, file: string): Promise<Target> {
  const waiting = new Map<string, () => void>();
  const child = await spawnProcess(join(programs.folder, 'test/chaos/target.js'), {
    node: [],
    args: [file],
    onLine: (line) => {
      const { done } = JSON.parse(line) as { done: { order?: string } };
      waiting.get(done.order ?? '')?.();
    },
  });
  const port = Number(child.ready['port']);
  const url = `http://127.0.0.1:${port}`;
  return {
    process: child,
    port,
    async state(prefix) {
      const query = prefix === undefined ? '' : `?prefix=${encodeURIComponent(prefix)}`;
      return (await (await fetch(`${url}/ledger${query}`)).json()) as TargetState;
    },
    async control(wish) {
      const answer = await fetch(`${url}/control`, { method: 'POST', body: JSON.stringify(wish) });
      if (!answer.ok) throw new Error(`the target took no order: ${answer.status}`);
    },
    untilDone: (order) => new Promise((resolve) => waiting.set(order, resolve)),
  };
}
