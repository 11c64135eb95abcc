// A worker of one's own: `createWorker` is Temporal's Worker.create with countersign's activities beside yours.
import { fileURLToPath } from 'node:url';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { NativeConnection } from '@temporalio/worker';
import { createWorker, ensureSearchAttributes, openSecrets } from 'countersign';
import { tools } from './tools.ts';

const { connectionOptions, namespace = 'default' } = loadClientConnectConfig(); // TEMPORAL_ADDRESS and the rest
const connection = await NativeConnection.connect(connectionOptions);
await ensureSearchAttributes(connection, namespace); // a run that sets an unknown one would be stuck

// the same file as the API's: it signs decisions, this worker verifies them
const { secrets } = await openSecrets({
  path: process.env['COUNTERSIGN_SECRETS_FILE'] ?? '.countersign/secrets.json',
  create: true,
});

const bundle = process.env['WORKFLOW_BUNDLE']; // of bundleWorkflowCode; saves seconds a start
const worker = await createWorker({
  connection,
  namespace,
  taskQueue: 'orders',
  ...(bundle === undefined
    ? { workflowsPath: fileURLToPath(new URL('./workflows.ts', import.meta.url)) }
    : { workflowBundle: { codePath: bundle } }),
  tools,
  grantKeys: secrets.grantKeys,
  proofKeys: secrets.proofKeys,
  currentSpecHash: () => undefined, // no specs here
  log: (message, fields) => console.error(message, fields ?? ''),
});
console.error('worker polls the task queue "orders"');
await worker.run(); // until SIGTERM or Ctrl-C
await connection.close();
