// A deployment of one test alone: its own task queue, ledger and worker processes, so that tests of one file
// can run side by side and each can kill what is its own.
import type { CountersignClient } from '../../src/countersign-client.ts';
import { eventually } from './eventually.ts';
import { clientOf, decisionOn, type SeenGate } from './gates.ts';
import { startLedger, type Ledger } from './ledger.ts';
import type { TestProcess } from './processes.ts';
import type { TestTemporal } from './temporal.ts';
import { spawnWorker, startWorker, type InProcess, type TestWorker, type WorkerSettings } from './worker.ts';

export interface Deployment {
  /** the server, with this deployment's task queue */
  temporal: TestTemporal;
  countersign: CountersignClient;
  ledger: Ledger;
  /** A worker process, to be killed. */
  spawn(more?: Partial<WorkerSettings>): Promise<TestProcess>;
  /** A worker in this process. */
  start(own?: InProcess): Promise<TestWorker>;
  /** Resolves when the ledger has carried out `count` requests whose answers it holds back. */
  untilHeld(count?: number): Promise<void>;
  approve(gate: SeenGate): Promise<void>;
}

/** Tests of a file that wait more than they compute; each has up to two processes, so not many at once. */
export const sideBySide = { concurrency: 3 };

export async function openDeployment(server: TestTemporal, secretsFile: string): Promise<Deployment> {
  const temporal = { ...server, taskQueue: server.id(server.taskQueue) };
  const { address, namespace, taskQueue } = temporal;
  const ledger = await startLedger();
  const countersign = clientOf(temporal);
  const settings = { address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url };
  return {
    temporal,
    countersign,
    ledger,
    spawn: (more = {}) => spawnWorker({ ...settings, ...more }),
    start: (own) => startWorker(settings, own),
    async untilHeld(count = 1) {
      const held = async () => {
        const response = await fetch(`${ledger.url}/ledger`);
        return ((await response.json()) as { held: number }).held >= count;
      };
      await eventually(held, { message: `${count} requests that the ledger carried out and holds` });
    },
    async approve(gate) {
      const open = await countersign.sendDecision(gate.runId, decisionOn(gate, 'approve'));
      if (!open) throw new Error(`run "${gate.runId}" is not open`);
    },
  };
}
