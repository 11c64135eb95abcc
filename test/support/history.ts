// Histories: read from a server, counted, written to a file and read back in the JSON form of Temporal's
// own tools (`temporal workflow show --output json`).
import { randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import { historyFromJSON, historyToJSON, type History } from '@temporalio/common/lib/proto-utils.js';
import { eventually } from './eventually.ts';

export interface NamedHistory {
  workflowId: string;
  history: History;
}

/** The history of the current execution of that workflow id, or of the one with that Temporal run id. */
export async function fetchHistory(client: Client, workflowId: string, runId?: string): Promise<History> {
  return client.workflow.getHandle(workflowId, runId).fetchHistory();
}

/** What a run costs the server (DESIGN §3): events, and completed workflow tasks. */
export function historyCounts(history: History): { events: number; workflowTasks: number } {
  const types = eventTypes(history);
  return {
    events: types.length,
    workflowTasks: types.filter((type) => type === 'WorkflowTaskCompleted').length,
  };
}

/** The types of the events, such as `ActivityTaskScheduled`; for messages and for finding one. */
export function eventTypes(history: History): string[] {
  return (history.events ?? []).map((event) => {
    const attributes = Object.keys(event).find((name) => name.endsWith('EventAttributes'));
    if (attributes === undefined) return `event ${String(event.eventType)}`;
    return attributes.charAt(0).toUpperCase() + attributes.slice(1, -'EventAttributes'.length);
  });
}

/** The server gives a task out again when signals came in while it ran (UnhandledCommand, ForceCloseCommand). */
const overtaken = [1, 17];

/** Messages of the workflow tasks that failed by the worker's word: none in a healthy run. */
export function taskFailures(history: History): string[] {
  return (history.events ?? []).flatMap(({ workflowTaskFailedEventAttributes: failed }) =>
    failed && !overtaken.includes(Number(failed.cause)) ? [failed.failure?.message ?? '(no message)'] : [],
  );
}

/** Every execution that the server still has, open and closed, the earlier ones of a chain too, page by page. */
export async function* allHistories(client: Client): AsyncGenerator<NamedHistory> {
  for (const { workflowId, runId } of await settledExecutions(client)) {
    try {
      yield { workflowId, history: await fetchHistory(client, workflowId, runId) };
    } catch (error) {
      // A test deleted it (as retention would) between the list and this.
      if (!(error instanceof WorkflowNotFoundError)) throw error;
    }
  }
}

/** The index is written a moment after the history: the list counts once two looks in a row are the same. */
async function settledExecutions(client: Client): Promise<{ workflowId: string; runId: string }[]> {
  let before = '';
  return eventually(
    async () => {
      const found = [];
      for await (const { workflowId, runId } of client.workflow.list()) found.push({ workflowId, runId });
      const now = found.map(({ runId }) => runId).join();
      const same = now === before;
      before = now;
      return same ? found : undefined;
    },
    { message: 'a list of executions that no longer changes' },
  );
}

/** Writes each history of the server into the folder, for the replay at the end of a test run. */
export async function exportHistories(client: Client, folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  for await (const { history } of allHistories(client)) {
    writeFileSync(join(folder, `${randomUUID()}.json`), historyToJSON(history));
  }
}

/** Reads a history file; the workflow id, which keys are made from, is in its first event. */
export function readHistoryFile(path: string): NamedHistory {
  const history = historyFromJSON(JSON.parse(readFileSync(path, 'utf8')));
  const workflowId = history.events?.[0]?.workflowExecutionStartedEventAttributes?.workflowId;
  if (!workflowId)
    throw new Error(`${path}: its first event names no workflow id; take the file from Temporal's own tools`);
  return { workflowId, history };
}
