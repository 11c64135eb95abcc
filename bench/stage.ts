// What all parts of the bench stand on: one dev server as the embedded default starts it, one secrets file, a
// bundle a side, and a client. Everything that was started is ended with it.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import { startDevServer } from '../src/embedded/dev-server.ts';
import { findTemporalCli } from '../src/embedded/find-temporal-cli.ts';
import { openSecrets, type Secrets } from '../src/secrets.ts';
import { largeMessages } from '../src/temporal-connection.ts';
import { compileInto } from './compile.ts';
import {
  startWorkerProcess,
  type SideName,
  type WorkerProcess,
  type WorkerSettings,
} from './worker-process.ts';

export interface Stage {
  temporalVersion: string;
  address: string;
  namespace: string;
  client: Client;
  secrets: Secrets;
  adminToken: string;
  /** folder of `src` and `bench` as JavaScript */
  programs: string;
  /** A workflow id and task queue that nobody has used. */
  unique(name: string): string;
  startWorker(side: SideName, taskQueue: string, more?: Partial<WorkerSettings>): Promise<WorkerProcess>;
  close(): Promise<void>;
}

/** Of the named spec that gated runs are started with. */
export const specHash = 'sha256:bench';

/** The product's default (createWorker). */
const defaultCache = 600;

export async function openStage(say: (line: string) => void): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-bench-'));
  process.once('exit', () => {
    rmSync(folder, { recursive: true, force: true });
  });
  const programs = join(folder, 'js');
  mkdirSync(programs);
  await compileInto(programs);
  const bundles = { handWritten: '', countersign: '' };
  const entries = { handWritten: 'hand-written.js', countersign: 'countersign.js' };
  for (const side of Object.keys(bundles) as SideName[]) {
    bundles[side] = join(folder, `${side}.js`);
    // one each: modules that only the other side needs would count as this one's memory
    const { code } = await bundleWorkflowCode({
      workflowsPath: join(programs, 'bench/workflows', entries[side]),
      logger: new DefaultLogger('WARN'),
    });
    writeFileSync(bundles[side], code);
  }
  const secretsFile = join(folder, 'secrets.json');
  const { secrets, createdToken } = await openSecrets({ path: secretsFile, create: true });
  const cli = await findTemporalCli({ log: say });
  const server = await startDevServer({ cli, folder: join(folder, 'server') });
  const { address, namespace } = server;
  const connection = await Connection.connect({ address, channelArgs: largeMessages });
  const workers = new Set<WorkerProcess>();
  let count = 0;

  return {
    temporalVersion: cli.version,
    address,
    namespace,
    client: new Client({ connection, namespace }),
    secrets,
    adminToken: createdToken?.token ?? '',
    programs,
    unique: (name) => `${name}-${(count += 1)}`,
    async startWorker(side, taskQueue, more = {}) {
      const worker = await startWorkerProcess(join(programs, 'bench/worker-main.js'), {
        ...{ side, address, namespace, taskQueue, secretsFile, specHash },
        bundle: bundles[side],
        maxCachedWorkflows: defaultCache,
        ...more,
      });
      workers.add(worker);
      return worker;
    },
    async close() {
      await Promise.all([...workers].map((worker) => worker.kill()));
      await connection.close();
      await server.stop();
    },
  };
}
