// What doctor finds at Temporal: that it answers, the namespace, the search attributes, who polls the task
// queue, and its clock. Each finding needs the one before it.
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Connection } from '@temporalio/client';
import { defaultTaskQueue } from '../core/names.ts';
import {
  checkSearchAttributes,
  ensureNamespaceReady,
  ensureSearchAttributes,
  type SetupConnection,
} from '../temporal-setup.ts';
import { clockFinding, messageOf } from './doctor-local.ts';
import type { Finding } from './doctor.ts';

export interface TemporalCheck {
  connection: SetupConnection & Pick<Connection, 'withAbortSignal'>;
  namespace: string;
  address: string;
  taskQueue?: string;
  fix: boolean;
  now: () => number;
}

/** A server that is up answers in milliseconds. */
const answerMs = 3000;
/** A worker polls for a minute at a time. */
const pollerAgeMs = 90_000;

// temporal.api.enums.v1.TaskQueueType
const kinds = { workflow: 1, activity: 2 } as const;

export async function checkTemporal(wish: TemporalCheck): Promise<Finding[]> {
  const { connection, namespace, address } = wish;
  try {
    await ensureNamespaceReady(connection, namespace, { timeoutMs: answerMs });
  } catch (error) {
    return [{ check: 'temporal', result: 'fail', text: `${address}: ${messageOf(error)}` }];
  }
  return [
    { check: 'temporal', result: 'ok', text: `${address} answers for namespace "${namespace}"` },
    await attributes(wish),
    ...(await pollers(wish)),
    await clock(wish),
  ];
}

async function attributes({ connection, namespace, fix }: TemporalCheck): Promise<Finding> {
  const check = 'search attributes';
  try {
    if (fix) await ensureSearchAttributes(connection, namespace);
    else await checkSearchAttributes(connection, namespace);
    return { check, result: 'ok', text: 'all are registered' };
  } catch (error) {
    const hint = fix ? '' : '\nor run: countersign doctor --fix';
    return { check, result: 'fail', text: messageOf(error) + hint };
  }
}

async function pollers(wish: TemporalCheck): Promise<Finding[]> {
  const { taskQueue = defaultTaskQueue } = wish;
  const findings: Finding[] = [];
  for (const [kind, taskQueueType] of Object.entries(kinds)) {
    const check = `${kind} pollers`;
    try {
      const seen = await pollersOf(wish, taskQueue, taskQueueType);
      const live = seen.filter(({ at }) => wish.now() - at < pollerAgeMs);
      const names = live.map(({ identity }) => identity).join(', ');
      const text =
        live.length === 0
          ? `nobody polls task queue "${taskQueue}": start a worker; runs wait until one is there`
          : `${live.length} on task queue "${taskQueue}": ${names}`;
      findings.push({ check, result: live.length === 0 ? 'warn' : 'ok', text });
    } catch (error) {
      findings.push({ check, result: 'warn', text: `cannot be told: ${messageOf(error)}` });
    }
  }
  return findings;
}

/**
 * Temporal tells nobody its time. But it says when a poller was there last, by its own clock: so this polls
 * a task queue that nobody else uses, and looks itself up.
 */
async function clock(wish: TemporalCheck): Promise<Finding> {
  const check = 'clock (temporal)';
  const { connection, namespace, now } = wish;
  const name = `countersign-doctor-${randomUUID()}`;
  const askedAt = now();
  const over = new AbortController();
  const enough = new AbortController();
  const ask = () =>
    connection.workflowService.pollWorkflowTaskQueue({ namespace, taskQueue: { name }, identity: name });
  const poll = connection
    .withAbortSignal(enough.signal, () => connection.withDeadline(Date.now() + answerMs, ask))
    // it ends by its deadline, or by ours
    .catch(() => undefined)
    .finally(() => over.abort());
  try {
    while (!over.signal.aborted) {
      const [own] = await pollersOf(wish, name, kinds.workflow);
      const date = own === undefined ? null : new Date(own.at).toISOString();
      const finding = clockFinding(check, date, askedAt, now(), 0);
      if (finding !== undefined) return finding;
      await delay(50);
    }
  } catch {
    // told below: that it cannot be told is no failure
  } finally {
    enough.abort();
    // one that is asked again after the connection is closed ends the process
    await poll;
  }
  return { check, result: 'warn', text: 'cannot be told from here' };
}

async function pollersOf(
  { connection, namespace }: TemporalCheck,
  name: string,
  taskQueueType: number,
): Promise<{ identity: string; at: number }[]> {
  const { pollers: found } = await connection.withDeadline(Date.now() + answerMs, () =>
    connection.workflowService.describeTaskQueue({ namespace, taskQueue: { name }, taskQueueType }),
  );
  return (found ?? []).map(({ identity, lastAccessTime }) => ({
    identity: identity ?? '',
    at: Number(lastAccessTime?.seconds ?? 0) * 1000 + (lastAccessTime?.nanos ?? 0) / 1e6,
  }));
}
