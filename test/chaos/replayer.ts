// Replays histories in a process of its own: plain JavaScript, so that no loader maps the stack of every promise
// of a workflow, which made it the longest part of a run.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { historyToJSON, type History } from '@temporalio/common/lib/proto-utils.js';
import { spawnProcess, type TestProcess } from '../support/processes.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import type { Programs } from './compile.ts';

export interface Replayer {
  /** What went wrong, by workflow id; empty: each history replays. */
  replay(histories: readonly { workflowId: string; history: History }[]): Promise<ReplayFailure[]>;
  process: TestProcess;
}

export interface ReplayFailure {
  workflowId: string;
  message: string;
}

/** A line on stdin of replay-main.ts: a file with `{workflowId, history}[]`. It answers with a line of failures. */
export async function startReplayer({ folder, bundle }: Programs): Promise<Replayer> {
  let answer: (line: string) => void = () => undefined;
  const child = await spawnProcess(join(folder, 'test/chaos/replay-main.js'), {
    node: [],
    args: [bundle],
    onLine: (line) => answer(line),
  });
  const file = join(temporaryFolder(), 'histories.json');
  return {
    process: child,
    async replay(histories) {
      const list = histories.map(({ workflowId, history }) => ({
        workflowId,
        history: JSON.parse(historyToJSON(history)) as unknown,
      }));
      writeFileSync(file, JSON.stringify(list));
      const line = await new Promise<string>((resolve, reject) => {
        answer = resolve;
        void child.ended.then(() => reject(new Error(`the replayer ended:\n${child.stderr()}`)));
        child.send(file);
      });
      return JSON.parse(line) as ReplayFailure[];
    },
  };
}
