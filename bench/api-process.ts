// `countersign api` as a process of the bench.
import { fileURLToPath } from 'node:url';
import { startPart } from '../src/cli/part.ts';
import type { Stage } from './stage.ts';
import { nodeArguments } from './worker-process.ts';

export interface ApiProcess {
  /** A request as the admin; its answer is read to the end. */
  call(
    method: string,
    path: string,
    more?: { headers?: Record<string, string>; body?: unknown },
  ): Promise<unknown>;
  stop(): Promise<void>;
}

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

export async function startApiProcess(stage: Stage, taskQueue: string): Promise<ApiProcess> {
  const part = startPart({
    name: 'countersign api',
    args: [...nodeArguments, here('../src/cli/main.ts'), 'api', '--config', here('countersign.config.ts')],
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
      if (response.status !== 200) {
        throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`);
      }
      return answer;
    },
    stop: () => part.stop(),
  };
}
