// Workers of the tests, the real `createWorker`, with the test tools and the test bundle: in this process
// where nothing is killed (it starts in a tenth of the time), as a child process where something is.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  DefaultLogger,
  makeTelemetryFilterString,
  NativeConnection,
  Runtime,
  Worker,
  type LogLevel,
} from '@temporalio/worker';
import { createActivities } from '../../src/activities/index.ts';
import { openSecrets } from '../../src/secrets.ts';
import { openSpecRegistry } from '../../src/spec-registry.ts';
import type { Tool } from '../../src/tool.ts';
import { createWorker, type WorkerDeps } from '../../src/worker.ts';
import { testBundle } from './bundle.ts';
import { closeAfterFile } from './cleanup.ts';
import { spawnProcess, type TestProcess } from './processes.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { testTools } from './tools.ts';

/** What a child can be told too: strings, so that they fit into an environment. */
export interface WorkerSettings {
  address: string;
  namespace: string;
  taskQueue: string;
  secretsFile: string;
  /** folder of spec files; none: no spec is known */
  specs?: string;
  /** what the test tools send to; without it any effect fails */
  ledgerUrl?: string;
  /** Default COUNTERSIGN_TEST_CACHE, else the product's own. */
  maxCachedWorkflows?: number;
  unsigned?: 'allow' | 'refuse';
  /** Default 7 days, as the product's. */
  approvalTtlMs?: number;
  /** Takes workflow tasks only, so that what they schedule stays scheduled. Default false. */
  withoutEffects?: boolean;
}

/** What only lives in the memory of this process, in place of the test tools or beside the activities. */
export interface InProcess {
  tools?: readonly Tool[];
  activities?: NonNullable<WorkerDeps['activities']>;
  /** path of another bundle than the one of all tests */
  bundle?: string;
  /** what the activities know, in place of the secrets file and the spec folder */
  deps?: Partial<Pick<WorkerDeps, 'currentSpecHash' | 'grantKeys' | 'proofKeys'>>;
}

export interface TestWorker {
  stop(): Promise<void>;
}

/** The discard port: nobody listens there, so an effect of a worker without a ledger fails. */
const nowhere = 'http://127.0.0.1:9';
const sevenDaysMs = 7 * 24 * 3_600_000;
const settingsVariable = 'COUNTERSIGN_TEST_WORKER';

/** Runs a worker in this process; it is stopped after the file at the latest. */
export async function startWorker(settings: WorkerSettings, own: InProcess = {}): Promise<TestWorker> {
  const { worker, close } = await makeWorker(settings, own);
  const running = worker.run();
  // Seen by stop(); without this an early end would be an unhandled rejection somewhere else.
  running.catch(() => undefined);
  let stopped: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    if (worker.getState() === 'RUNNING') worker.shutdown();
    await running;
    await close();
  };
  const stopOnce = (): Promise<void> => (stopped ??= stop());
  closeAfterFile(stopOnce);
  return { stop: stopOnce };
}

/** Runs a worker as a child process, with the test tools, to be killed. Resolves when it polls. */
export async function spawnWorker(
  settings: WorkerSettings,
  env: Record<string, string> = {},
): Promise<TestProcess> {
  // Named one by one: a caller may spread a whole TestTemporal in, and a connection is no JSON.
  const { address, namespace, taskQueue, secretsFile, specs, ledgerUrl } = settings;
  const { maxCachedWorkflows, unsigned, approvalTtlMs, withoutEffects } = settings;
  const told: { [Name in keyof Required<WorkerSettings>]: WorkerSettings[Name] } = {
    ...{ address, namespace, taskQueue, secretsFile, specs, ledgerUrl },
    ...{ maxCachedWorkflows, unsigned, approvalTtlMs, withoutEffects },
  };
  return spawnProcess('test/support/worker-main.ts', {
    env: {
      COUNTERSIGN_TEST_BUNDLE: await testBundle(),
      ...env,
      [settingsVariable]: JSON.stringify(told),
    },
  });
}

/** For worker-main.ts. */
export function settingsFromEnvironment(): WorkerSettings {
  const text = process.env[settingsVariable];
  if (!text) throw new Error(`${settingsVariable} is not set: worker-main.ts is started by spawnWorker()`);
  return JSON.parse(text) as WorkerSettings;
}

export async function makeWorker(
  settings: WorkerSettings,
  own: InProcess = {},
): Promise<{ worker: Worker; close: () => Promise<void> }> {
  const tools = own.tools ?? testTools(settings.ledgerUrl ?? nowhere);
  quietRuntime();
  const { secrets } = await openSecrets({ path: settings.secretsFile, create: false });
  const log = (message: string): void => {
    if (logLevel() === 'DEBUG') process.stderr.write(`${message}\n`);
  };
  const registry = settings.specs
    ? await openSpecRegistry({ folder: settings.specs, tools, log })
    : undefined;
  const connection = await NativeConnection.connect({ address: settings.address });
  const cache = settings.maxCachedWorkflows ?? cacheFromEnvironment();
  const create = settings.withoutEffects === true ? createWithoutEffects : createWorker;
  const worker = await create({
    connection,
    namespace: settings.namespace,
    taskQueue: settings.taskQueue,
    tools,
    currentSpecHash: (name) => registry?.get(name)?.hash,
    grantKeys: secrets.grantKeys,
    proofKeys: secrets.proofKeys,
    workflowBundle: { codePath: own.bundle ?? (await testBundle()) },
    unsigned: settings.unsigned ?? 'allow',
    approvalTtlMs: settings.approvalTtlMs ?? sevenDaysMs,
    ...own.deps,
    ...(own.activities === undefined ? {} : { activities: own.activities }),
    ...(cache === undefined ? {} : { maxCachedWorkflows: cache }),
    log,
  });
  const close = async (): Promise<void> => {
    registry?.close();
    await connection.close();
  };
  return { worker, close };
}

/** No product's worker: it runs workflows and what they record in their tasks, and never an activity task. */
async function createWithoutEffects(deps: WorkerDeps): Promise<Worker> {
  const { connection, namespace, taskQueue, workflowBundle, maxCachedWorkflows } = deps;
  assert(taskQueue !== undefined && workflowBundle !== undefined);
  return Worker.create({
    ...{ connection, namespace, taskQueue, workflowBundle },
    ...(maxCachedWorkflows === undefined ? {} : { maxCachedWorkflows }),
    activities: createActivities(deps),
    enableNonLocalActivities: false,
    stickyQueueScheduleToStartTimeout: '1s',
  });
}

/** Writes spec files (name → YAML text) into a new folder. Write there again to change one. */
export function specFolder(files: Record<string, string>): string {
  const folder = join(temporaryFolder(), 'specs');
  mkdirSync(folder);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

function cacheFromEnvironment(): number | undefined {
  const value = process.env['COUNTERSIGN_TEST_CACHE'];
  return value === undefined || value === '' ? undefined : Number(value);
}

function logLevel(): LogLevel {
  return (process.env['COUNTERSIGN_TEST_LOG'] ?? 'ERROR') as LogLevel;
}

let quiet = false;

/** Test output is for tests; COUNTERSIGN_TEST_LOG=INFO (or DEBUG) shows what workers say. */
export function quietRuntime(): void {
  if (quiet) return;
  quiet = true;
  const level = logLevel();
  Runtime.install({
    logger: new DefaultLogger(level),
    telemetryOptions: { logging: { filter: makeTelemetryFilterString({ core: level, other: level }) } },
    shutdownSignals: [],
  });
}
