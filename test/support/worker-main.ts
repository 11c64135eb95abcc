// A worker as a process of its own, for tests that kill it. Started by spawnWorker(); ends with its parent.
import { endWithParent, reportReady } from './processes.ts';
import { makeWorker, settingsFromEnvironment } from './worker.ts';

endWithParent();
const { worker, close } = await makeWorker(settingsFromEnvironment());
process.once('SIGTERM', () => {
  worker.shutdown();
});
const running = worker.run();
reportReady({ taskQueue: worker.options.taskQueue });
await running;
await close();
process.exit(0);
