// Histories that earlier releases recorded replay under today's workflow code. One is added a release and
// none is ever recorded again (CONTRIBUTING.md); a folder without any shows nothing, so it fails.
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { testBundle } from './support/bundle.ts';
import { readHistoryFile } from './support/history.ts';
import { replayHistories } from './support/replay.ts';

const folder = fileURLToPath(new URL('./histories/', import.meta.url));
// git keeps no empty folder
const files = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.json')) : [];

test('there is at least one kept history, and each is named by its date', () => {
  assert.ok(files.length > 0, 'test/histories holds no *.json: keep one history a release there');
  for (const name of files) assert.match(name, /^\d{4}-\d{2}-\d{2}-[a-z0-9-]+\.json$/);
});

test('a history that the code did not make is reported', async () => {
  const { workflowId, history } = readHistoryFile(folder + (files[0] ?? 'none'));
  const started = history.events?.[0]?.workflowExecutionStartedEventAttributes;
  assert.ok(started);
  started.workflowType = { name: 'answerAtOnce' };
  const report = await replayHistories(await testBundle(), [{ workflowId, history }]);
  assert.equal(report.failures.length, 1);
});

for (const name of files) {
  test(`a run recorded as ${name} replays to the same commands`, async () => {
    const report = await replayHistories(await testBundle(), [readHistoryFile(folder + name)]);
    assert.deepEqual(report, { replayed: 1, failures: [] });
  });
}
