// The worker's health check in a container: has Temporal seen this container's worker ask for work lately?
// A worker listens nowhere, and that its process runs says nothing.
import { hostname } from 'node:os';
import { Connection } from '@temporalio/client';
import { loadClientConnectConfig } from '@temporalio/envconfig';

// A worker without work asks again every 60 s.
const recentMs = 90_000;
const workflowTasks = 1;

const queue = process.env.COUNTERSIGN_TASK_QUEUE;
if (!queue) throw new Error('COUNTERSIGN_TASK_QUEUE must be set for the health check');
const { connectionOptions, namespace } = loadClientConnectConfig();
const connection = await Connection.connect({ ...connectionOptions, connectTimeout: '4s' });
const { pollers } = await connection.withDeadline(Date.now() + 4000, () =>
  connection.workflowService.describeTaskQueue({
    namespace: namespace ?? 'default',
    taskQueue: { name: queue },
    taskQueueType: workflowTasks,
  }),
);
// the SDK names a worker <pid>@<host>
const own = (pollers ?? []).filter(({ identity }) => identity?.endsWith(`@${hostname()}`));
const seen = own.map(({ lastAccessTime }) => Number(lastAccessTime?.seconds ?? 0) * 1000);
await connection.close();
if (!seen.some((time) => Date.now() - time < recentMs)) {
  throw new Error(
    `no worker of ${hostname()} has asked for work on "${queue}" in the last ${recentMs / 1000} s`,
  );
}
