// `countersign api` as a process of the bench.
import { join } from 'node:path';
import { startPart } from '../src/cli/part.ts';
import type { Stage } from './stage.ts';

export interface ApiProcess {
  /** A request as the admin; its answer is read to the end. @throws Error for one that is refused */
  call(
    method: string,
    path: string,
    more?: { headers?: Record<string, string>; body?: unknown },
  ): Promise<unknown>;
  stop(): Promise<void>;
}

export async function startApiProcess(stage: Stage, taskQueue: string): Promise<ApiProcess> {
  const part = startPart({
    name: 'countersign api',
    args: [
      join(stage.programs, 'src/cli/main.js'),
      ...['api', '--config', join(stage.programs, 'bench/countersign.config.js')],
    ],
    env: {
      ...process.env,
      TEMPORAL_ADDRESS: stage.address,
      TEMPORAL_NAMESPACE: stage.namespace,
      COUNTERSIGN_SECRETS_FILE: stage.secrets.path,
      COUNTERSIGN_TASK_QUEUE: taskQueue,
      COUNTERSIGN_PORT: '0',
    },
    say: () => undefined,
  });
  const url = String((await part.ready)['url']);
  return {
    async call(method, path, { headers = {}, body } = {}) {
      const response = await fetch(url + path, {
        method,
        headers: {
          authorization: `Bearer ${stage.adminToken}`,
          'content-type': 'application/json',
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const answer: unknown = await response.json();
      // 202: recorded, and a busy worker has not judged it within 3 s
      if (response.status !== 200 && response.status !== 202) {
        throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`);
      }
      return answer;
    },
    stop: () => part.stop(),
  };
}
