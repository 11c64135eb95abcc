// A worker of a chaos run. It loads everything, says that it is ready, and waits for its settings, a line on
// stdin: so one stands by, and takes over in a fraction of a second when another was killed.
import { createInterface } from 'node:readline';
import { reportReady } from '../support/processes.ts';
import { makeWorker, type WorkerSettings } from '../support/worker.ts';
import { chaosTools } from './tools.ts';

const input = createInterface({ input: process.stdin });
input.once('close', () => process.exit(0)); // its parent is gone
const settings = new Promise<WorkerSettings & { bundle: string; targetUrl: string }>((resolve) =>
  input.once('line', (line) => resolve(JSON.parse(line) as Awaited<typeof settings>)),
);
/** Until it has settings there is nothing to drain. */
let shutDown = (): void => process.exit(0);
process.once('SIGTERM', () => shutDown());
reportReady();

const { bundle, targetUrl, ...rest } = await settings;
const { worker, close } = await makeWorker(rest, { tools: chaosTools(targetUrl), bundle });
const running = worker.run();
shutDown = () => worker.shutdown();
console.log(JSON.stringify({ polling: true }));
await running;
await close();
process.exit(0);
