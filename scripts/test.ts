// `npm test`: starts what the tests need, runs them, runs the server tests again without a workflow cache,
// replays every history that any of them made, and stops what it started. The last line of its output is
// `N passed, N failed`, and it exits 0 only when nothing failed and something ran.
// `npm test -- test/gate.server.test.ts` runs chosen files the same way.

import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { DefaultLogger, Runtime } from '@temporalio/worker';
import { startDevServer } from '../src/embedded/dev-server.ts';
import { findTemporalCli } from '../src/embedded/find-temporal-cli.ts';
import { largeMessages } from '../src/temporal-connection.ts';
import { buildTestBundle } from '../test/support/bundle.ts';
import { allHistories, readHistoryFile, type NamedHistory } from '../test/support/history.ts';
import { endOnSignals } from '../test/support/processes.ts';
import { replayHistories } from '../test/support/replay.ts';
import { testDynamicConfig } from '../test/support/temporal.ts';
import { runTestFiles, type CountedTest } from './run-test-files.ts';

const isServerTest = (file: string): boolean => file.endsWith('.server.test.ts');
/** Where the history of a run that no longer replays is left for whoever has to look. */
const failedHistories = '.countersign/failed-histories';

endOnSignals();
process.env['TZ'] = 'UTC';
const folder = mkdtempSync(join(tmpdir(), 'countersign-npm-test-'));
process.once('exit', () => {
  rmSync(folder, { recursive: true, force: true });
});

const results: CountedTest[] = [];
try {
  results.push(...(await runAll(chosenFiles())));
} catch (error) {
  console.error(error);
  results.push({
    name: 'npm test itself',
    result: 'failed',
    note: error instanceof Error ? error.message : String(error),
  });
}
const { exitCode } = report(results);
process.exit(exitCode);

function chosenFiles(): string[] {
  const chosen = process.argv.slice(2);
  if (chosen.length > 0) return chosen;
  return readdirSync('test')
    .filter((name) => name.endsWith('.test.ts'))
    .sort()
    .map((name) => `test/${name}`);
}

async function runAll(files: string[]): Promise<CountedTest[]> {
  const bundle = join(folder, 'workflows.js');
  await buildTestBundle(bundle);
  const env = { ...settingsOfTheTests(), COUNTERSIGN_TEST_BUNDLE: bundle };
  const serverFiles = files.filter(isServerTest);
  if (serverFiles.length === 0) return runTestFiles(files, { env, folder });

  const cli = await findTemporalCli({ log: (line) => console.error(line) });
  const server = await startDevServer({
    cli,
    folder: join(folder, 'server'),
    dynamicConfig: testDynamicConfig,
  });
  try {
    const exported = join(folder, 'histories');
    const withServer = {
      ...env,
      TEMPORAL_CLI: cli.path,
      COUNTERSIGN_TEST_ADDRESS: server.address,
      COUNTERSIGN_TEST_NAMESPACE: server.namespace,
      COUNTERSIGN_TEST_HISTORIES: exported,
    };
    console.log(`# every test file (${files.length})`);
    const first = await runTestFiles(files, { env: withServer, folder });
    console.log(`\n# the server tests again, with maxCachedWorkflows: 0 (${serverFiles.length})`);
    const uncached = await runTestFiles(serverFiles, {
      env: { ...withServer, COUNTERSIGN_TEST_CACHE: '0' },
      folder,
      label: 'cache 0',
    });
    console.log('\n# every history that they made, replayed');
    return [...first, ...uncached, ...(await replayAll(server.address, exported, bundle))];
  } finally {
    await server.stop();
  }
}

/** This process's environment without anybody's own Temporal or countersign: tests never touch those. */
function settingsOfTheTests(): NodeJS.ProcessEnv {
  const foreign = /^(?:TEMPORAL_(?!CLI$)|COUNTERSIGN_(?!TEST_LOG$))/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !foreign.test(name)));
}

async function replayAll(address: string, exported: string, bundle: string): Promise<CountedTest[]> {
  Runtime.install({ logger: new DefaultLogger('ERROR') });
  const connection = await Connection.connect({ address, channelArgs: largeMessages });
  try {
    const { replayed, failures } = await replayHistories(
      bundle,
      historiesOf(connection, exported),
      failedHistories,
    );
    console.log(`${replayed} replayed, ${failures.length} failed`);
    if (replayed === 0)
      return [{ name: 'replay', result: 'failed', note: 'no test made a history that can be replayed' }];
    if (failures.length === 0) return [{ name: `replay of ${replayed} histories`, result: 'passed' }];
    return failures.map(({ workflowId, message }) => ({
      name: `replay of ${workflowId}`,
      result: 'failed',
      note: `${message} (history in ${failedHistories})`,
    }));
  } finally {
    await connection.close();
  }
}

async function* historiesOf(connection: Connection, exported: string): AsyncGenerator<NamedHistory> {
  const { namespaces } = await connection.workflowService.listNamespaces({});
  for (const { namespaceInfo } of namespaces ?? []) {
    const namespace = namespaceInfo?.name;
    if (!namespace || namespace === 'temporal-system') continue;
    yield* allHistories(new Client({ connection, namespace }));
  }
  if (!existsSync(exported)) return;
  for (const name of readdirSync(exported)) yield readHistoryFile(join(exported, name));
}

function report(all: CountedTest[]): { exitCode: number } {
  const count = (result: CountedTest['result']): number => all.filter((one) => one.result === result).length;
  const line = ({ name, file, note }: CountedTest): string => {
    const place = file === undefined ? '' : `${basename(file)}${file === name ? '' : ': '}`;
    return `  ${place}${file === name ? '' : name}${note === undefined ? '' : ` (${note})`}`;
  };
  for (const result of ['skipped', 'failed'] as const) {
    if (count(result) === 0) continue;
    console.log(`\n${count(result)} ${result}:`);
    for (const one of all) if (one.result === result) console.log(line(one));
  }
  const passed = count('passed');
  const failed = count('failed') + (passed + count('failed') === 0 ? 1 : 0);
  console.log(`\n${passed} passed, ${failed} failed`);
  return { exitCode: failed === 0 ? 0 : 1 };
}
