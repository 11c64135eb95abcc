// A worker of the bench as a process of its own: either side's, with the same settings. It tells on stdout when
// an effect starts, and answers `memory` on stdin. Where it is told to stick, it says so and stays there until it
// is killed.
import { createInterface } from 'node:readline';
import { activityInfo } from '@temporalio/activity';
import {
  DefaultLogger,
  makeTelemetryFilterString,
  NativeConnection,
  Runtime,
  Worker,
} from '@temporalio/worker';
import { openSecrets } from '../src/secrets.ts';
import { createWorker } from '../src/worker.ts';
import { monotonicMs } from './numbers.ts';
import { refundTool } from './tool.ts';
import type { WorkerReport, WorkerSettings } from './worker-process.ts';

const settings = JSON.parse(process.argv[2] ?? '{}') as WorkerSettings;

// synchronous, since stdout is a pipe
function report(line: WorkerReport): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

async function effect(): Promise<unknown> {
  const { workflowExecution, attempt } = activityInfo();
  report({ type: 'effect', runId: workflowExecution?.workflowId ?? '', attempt, at: monotonicMs() });
  if (settings.stickIn === 'effect') await new Promise(() => undefined);
  return { refund: 're_1' };
}

/** Blocks the thread: the recording is begun and never ends. */
function stickInRecording(): void {
  if (settings.stickIn !== 'recording') return;
  report({ type: 'stuck' });
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}

async function makeWorker(connection: NativeConnection): Promise<Worker> {
  const { namespace, taskQueue, bundle, maxCachedWorkflows } = settings;
  const common = {
    connection,
    namespace,
    taskQueue,
    workflowBundle: { codePath: bundle },
    maxCachedWorkflows,
  };
  if (settings.side === 'handWritten') {
    return Worker.create({
      ...common,
      activities: { refund: effect },
      // as createWorker sets them
      stickyQueueScheduleToStartTimeout: '2s',
      shutdownGraceTime: '10s',
    });
  }
  const { secrets } = await openSecrets({ path: settings.secretsFile, create: false });
  return createWorker({
    ...common,
    tools: [refundTool(effect)],
    currentSpecHash: () => settings.specHash,
    grantKeys() {
      stickInRecording();
      return secrets.grantKeys();
    },
    proofKeys: secrets.proofKeys,
    log: () => undefined,
  });
}

Runtime.install({
  logger: new DefaultLogger('ERROR'),
  telemetryOptions: { logging: { filter: makeTelemetryFilterString({ core: 'ERROR', other: 'ERROR' }) } },
  shutdownSignals: [],
});
const connection = await NativeConnection.connect({ address: settings.address });
const worker = await makeWorker(connection);

createInterface({ input: process.stdin })
  .on('line', () => {
    global.gc?.();
    const { rss, heapUsed } = process.memoryUsage();
    report({ type: 'memory', rss, heapUsed });
  })
  .on('close', () => worker.shutdown());

const running = worker.run();
report({ type: 'ready' });
await running;
await connection.close();
process.exit(0);
