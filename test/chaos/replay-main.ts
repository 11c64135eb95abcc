// The process of ./replayer.ts.
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { historyFromJSON } from '@temporalio/common/lib/proto-utils.js';
import { reportReady } from '../support/processes.ts';
import { replayHistories } from '../support/replay.ts';
import { quietRuntime } from '../support/worker.ts';

quietRuntime();
const [, , bundle = ''] = process.argv;
const input = createInterface({ input: process.stdin });
input.once('close', () => process.exit(0)); // its parent is gone
reportReady();
for await (const file of input) {
  const list = JSON.parse(readFileSync(file, 'utf8')) as { workflowId: string; history: unknown }[];
  const histories = list.map(({ workflowId, history }) => ({
    workflowId,
    history: historyFromJSON(history),
  }));
  const { failures } = await replayHistories(bundle, histories);
  console.log(JSON.stringify(failures));
}
