// `countersign worker`: one worker process.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { DefaultLogger, makeTelemetryFilterString, Runtime } from '@temporalio/worker';
import { connectWorker } from '../temporal-connection.ts';
import { ensureNamespaceReady, ensureSearchAttributes } from '../temporal-setup.ts';
import { createWorker } from '../worker.ts';
import { openProject, openProjectSecrets } from './open-project.ts';
import { stopWish } from './stop.ts';
import { log, reportReady } from './talk.ts';

export async function runWorker(options: { config?: string }): Promise<void> {
  const stop = stopWish();
  const { config, specs } = await openProject(options);
  const { secrets } = await openProjectSecrets(config, false);
  Runtime.install({
    logger: new DefaultLogger('WARN', ({ level, message, meta }) =>
      log(`${level} ${message}`, { error: (meta as { error?: unknown } | undefined)?.error }),
    ),
    // the native core would write to stderr by itself, in colours
    telemetryOptions: {
      logging: { forward: {}, filter: makeTelemetryFilterString({ core: 'WARN', other: 'ERROR' }) },
    },
    shutdownSignals: [],
  });
  const { connection, namespace } = await connectWorker();
  try {
    await ensureNamespaceReady(connection, namespace);
    await ensureSearchAttributes(connection, namespace);
    const worker = await createWorker({
      connection,
      namespace,
      taskQueue: config.taskQueue,
      tools: config.tools,
      currentSpecHash: (name) => specs.get(name)?.hash,
      grantKeys: secrets.grantKeys,
      proofKeys: secrets.proofKeys,
      unsigned: config.unsigned,
      approvalTtlMs: config.approvalTtlMs,
      baseUrl: config.baseUrl,
      ...workflowsOf(config.workflowsPath),
      log,
    });
    const running = worker.run();
    log('worker polls', { namespace, taskQueue: config.taskQueue });
    reportReady({ taskQueue: config.taskQueue });
    await Promise.race([running, stop]);
    if (worker.getState() === 'RUNNING') worker.shutdown();
    await running;
  } finally {
    specs.close();
    await connection.close();
  }
}

/** The package ships its own workflows bundled; anybody else's are bundled at the start. */
function workflowsOf(workflowsPath: string | undefined) {
  if (workflowsPath !== undefined) return { workflowsPath };
  const codePath = fileURLToPath(new URL('../workflow-bundle.js', import.meta.url));
  return existsSync(codePath) ? { workflowBundle: { codePath } } : {};
}
