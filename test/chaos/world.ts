// What a chaos run runs in: a Temporal dev server with its file, an API, workers and a target, each a process of
// its own, and a proxy between every pair. One world serves many runs, one after the other; what a fault broke is
// made whole before the next. Everything that it started ends with it, by its id.
import { readFileSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { CountersignClient } from '../../src/countersign-client.ts';
import { createClient } from '../../src/client.ts';
import { addToken, openSecrets, type Secrets } from '../../src/secrets.ts';
import { eventually } from '../support/eventually.ts';
import { spawnProcess, type TestProcess } from '../support/processes.ts';
import { ownServer, type OwnServer } from '../support/temporal.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import type { Programs } from './compile.ts';
import { openGrpcProxy, type GrpcProxy } from './grpc-proxy.ts';
import type { Link } from './plan-faults.ts';
import { people } from './plan.ts';
import { openProxy, type TcpProxy } from './proxy.ts';
import { startReplayer, type Replayer } from './replayer.ts';
import { namedSpec } from './specs.ts';
import { startTarget, type Target } from './target-process.ts';
import { createWorkers, type Workers } from './workers.ts';

export interface World {
  temporal: OwnServer;
  /** to the server itself, past every proxy */
  countersign: CountersignClient;
  secrets: Secrets;
  /** by person */
  tokens: ReadonlyMap<string, string>;
  /** of the API, through its proxy */
  apiUrl: string;
  links: Readonly<Record<Link, TcpProxy>>;
  grpc: { api: GrpcProxy; worker: GrpcProxy };
  target: Target;
  workers: Workers;
  replayer: Replayer;
  api(): TestProcess;
  /** SIGKILL, and another one at once. */
  killApi(): Promise<void>;
  /** Writes the named spec anew. */
  writeSpec(text: string): void;
  /** Lets the clock of the API, or of the workers, jump by so many milliseconds from the real one. Says how many did. */
  setClock(whose: 'api' | 'worker', shiftMs: number): Promise<number>;
  /** Ends every fault: proxies open, clocks right, one good worker and an API at least, the spec as it was. */
  heal(): Promise<void>;
  close(): Promise<void>;
}

export async function openWorld(programs: Programs): Promise<World> {
  const folder = temporaryFolder();
  const specs = join(folder, 'specs');
  await mkdir(specs);
  const writeSpec = (text: string): void => writeFileSync(join(specs, 'chaos.yaml'), text);
  writeSpec(namedSpec);

  const secretsFile = join(folder, 'secrets.json');
  await openSecrets({ path: secretsFile, create: true });
  const tokens = new Map<string, string>();
  for (const id of people)
    tokens.set(id, await addToken(secretsFile, { id, name: id.toUpperCase(), roles: ['finance'] }));
  tokens.set('admin', await addToken(secretsFile, { id: 'admin', name: 'Admin', roles: ['admin'] }));
  const { secrets } = await openSecrets({ path: secretsFile, create: false });

  const [temporal, target] = await Promise.all([
    ownServer({ keepHistories: false }),
    startTarget(programs, join(folder, 'ledger.jsonl')),
  ]);
  const serverPort = Number(temporal.address.split(':')[1]);
  const grpc = { api: await openGrpcProxy(() => serverPort), worker: await openGrpcProxy(() => serverPort) };
  const links: Record<Link, TcpProxy> = {
    'worker-server': await openProxy(grpc.worker.port),
    'api-server': await openProxy(grpc.api.port),
    'worker-target': await openProxy(target.port),
    'client-api': await openProxy(0),
  };
  const clocks = { api: join(folder, 'clock-api'), worker: join(folder, 'clock-worker') };
  for (const file of Object.values(clocks)) writeFileSync(file, '0');
  const clockModule = join(programs.folder, 'test/chaos/clock.js');
  const preload = ['--import', clockModule];
  const { namespace, taskQueue, client } = temporal;
  const targetUrl = `http://127.0.0.1:${links['worker-target'].port}`;

  const startApi = async (): Promise<TestProcess> => {
    const started = await spawnProcess(join(programs.folder, 'src/cli/main.js'), {
      node: preload,
      args: ['api', '--config', join(programs.folder, 'test/chaos/countersign.config.js')],
      env: {
        COUNTERSIGN_END_WITH_STDIN: '1',
        COUNTERSIGN_SECRETS_FILE: secretsFile,
        COUNTERSIGN_TASK_QUEUE: taskQueue,
        COUNTERSIGN_PORT: '0',
        TEMPORAL_ADDRESS: `127.0.0.1:${links['api-server'].port}`,
        TEMPORAL_NAMESPACE: namespace,
        CHAOS_TARGET: targetUrl,
        CHAOS_SPECS: specs,
        CHAOS_CLOCK: clocks.api,
      },
    });
    links['client-api'].setUpstream(Number(new URL(String(started.ready['url'])).port));
    return started;
  };
  const workers = createWorkers({
    program: join(programs.folder, 'test/chaos/worker-main.js'),
    node: preload,
    env: { CHAOS_CLOCK: clocks.worker },
    settings: {
      address: `127.0.0.1:${links['worker-server'].port}`,
      namespace,
      taskQueue,
      secretsFile,
      specs,
      targetUrl,
      bundle: programs.bundle,
    },
  });
  const [firstApi, replayer] = await Promise.all([startApi(), startReplayer(programs), workers.start()]);

  let api = firstApi;

  const setClock: World['setClock'] = async (whose, shiftMs) => {
    writeFileSync(clocks[whose], String(shiftMs));
    const processes = whose === 'api' ? [api] : workers.running();
    const asked = processes.filter(({ running }) => running());
    for (const { pid } of asked) process.kill(pid, 'SIGUSR2');
    const hasJumped = ({ pid, running }: TestProcess): boolean =>
      !running() || readFileSync(`${clocks[whose]}.${pid}`, 'utf8') === String(shiftMs);
    await eventually(() => asked.every(hasJumped), { message: `the clock of each ${whose}` });
    return asked.length;
  };

  return {
    temporal,
    countersign: createClient({ client, namespace, taskQueue, deadlineMs: 10_000 }),
    secrets,
    tokens,
    apiUrl: `http://127.0.0.1:${links['client-api'].port}`,
    links,
    grpc,
    target,
    workers,
    replayer,
    api: () => api,
    async killApi() {
      await api.kill();
      api = await startApi();
    },
    writeSpec,
    setClock,
    async heal() {
      for (const link of Object.values(links)) link.heal(true);
      for (const proxy of Object.values(grpc))
        Object.assign(proxy, { onCall: undefined, onAnswer: undefined });
      writeSpec(namedSpec);
      await Promise.all([setClock('api', 0), setClock('worker', 0)]);
      await target.control({ reset: true });
      if (!api.running()) api = await startApi();
      await workers.heal();
    },
    async close() {
      await Promise.all([
        workers.close(),
        api.kill().catch(() => undefined),
        target.process.kill(),
        replayer.process.kill(),
      ]);
      await temporal.stop();
      for (const link of Object.values(links)) await link.close();
      for (const proxy of Object.values(grpc)) await proxy.close();
    },
  };
}
