// P6: what a reset cut off, from the histories that Temporal keeps of it; without a server, by a client that has
// nothing but these.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Client } from '@temporalio/client';
import { readChain } from '../src/history.ts';

/** Events of three kinds, numbered from 1; the run that a reset went back from is named with it. */
function historyOf(kinds: readonly string[]): { events: object[] } {
  const events = kinds.map((kind, index) => {
    const place = { eventId: index + 1, eventTime: { seconds: 1_800_000_000 + index, nanos: 0 } };
    if (kind === 'start') return { ...place, workflowExecutionStartedEventAttributes: {} };
    if (kind === 'task') return { ...place, workflowTaskCompletedEventAttributes: {} };
    return { ...place, workflowTaskFailedEventAttributes: { baseRunId: kind } };
  });
  return { events };
}

function clientWith(histories: Record<string, readonly string[]>, current: string): Client {
  const getHandle = (_id: string, runId?: string) => ({
    describe: async () => ({ runId: current }),
    fetchHistory: async () => historyOf(histories[runId ?? current] ?? assert.fail(`no run ${runId}`)),
  });
  const options = { loadedDataConverter: { payloadCodecs: [] } };
  return { workflow: { getHandle }, options } as unknown as Client;
}

test('P6: what a run had copied before it was reset again, further back, is cut off too', async () => {
  const first = ['start', 'task', 'task', 'task', 'task', 'task'];
  const histories = {
    first,
    second: [...first.slice(0, 4), 'first', 'task'],
    nearer: [...first.slice(0, 4), 'first', 'task', 'second'],
    further: [...first.slice(0, 2), 'second', 'task'],
  };
  const cutsOf = async (current: string): Promise<unknown[]> => {
    const chain = await readChain(clientWith(histories, current), 'any');
    return chain.map(({ runId, cutAfter, copied }) => [runId, cutAfter, copied]);
  };
  assert.deepEqual(await cutsOf('second'), [['first', 4, undefined], ['second', undefined, 4]]); // prettier-ignore
  assert.deepEqual(await cutsOf('nearer'), [['first', 4, undefined], ['second', 6, 4], ['nearer', undefined, 6]]); // prettier-ignore
  assert.deepEqual(await cutsOf('further'), [['first', 2, undefined], ['second', 2, 4], ['further', undefined, 2]]); // prettier-ignore
});
