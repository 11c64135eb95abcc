// docker-compose.yml, held to what the code reads, to its Dockerfile and to docs/production.md. No engine is
// needed: what only an engine can say is not said here.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { loadConfig, type Config } from '../src/config.ts';
import { defaultTaskQueue } from '../src/core/names.ts';
import { connectTemporal } from '../src/temporal-connection.ts';
import { searchAttributeArguments } from '../src/temporal-setup.ts';
import { interpolate, parseDockerfile, readCompose, type Compose, type Service } from './support/compose.ts';
import { parse } from 'yaml';

const root = fileURLToPath(new URL('../', import.meta.url));
const read = (file: string): string => readFileSync(join(root, file), 'utf8');
const example = join(root, 'examples/refund/countersign.config.ts');
const packageJson = JSON.parse(read('package.json'));
const production = read('docs/production.md');

const compose: Compose = readCompose(read('docker-compose.yml'));
const services = Object.entries(compose.services);
const dockerfile = parseDockerfile(read('Dockerfile'));
const finalStage = dockerfile.slice(dockerfile.findLastIndex(({ name }) => name === 'FROM'));
/** What an administrator must set. */
const required = { POSTGRES_PASSWORD: 'a' };
const own = services.filter(([, { image }]) => image.startsWith('countersign:'));
const jobs = new Set(
  services.flatMap(([, { depends_on: needs }]) =>
    Object.entries(needs)
      .filter(([, { condition }]) => condition === 'service_completed_successfully')
      .map(([name]) => name),
  ),
);

function service(name: string): Service {
  const found = compose.services[name];
  assert.ok(found, `there is no service ${name}`);
  return found;
}

function environmentOf(name: string, set: Record<string, string> = {}): Record<string, string> {
  return Object.fromEntries(
    Object.entries(service(name).environment).map(([variable, value]) => [
      variable,
      interpolate(value, { ...required, ...set }),
    ]),
  );
}

function configOf(name: string, set: Record<string, string> = {}): Promise<Config> {
  return loadConfig({ path: example, env: { ...imageEnvironment(), ...environmentOf(name, set) } });
}

function imageEnvironment(): Record<string, string> {
  return Object.fromEntries(
    finalStage
      .filter(({ name }) => name === 'ENV')
      .flatMap(({ rest }) =>
        [...rest.matchAll(/(\w+)=(\S+)/g)].map(([, name = '', value = '']) => [name, value]),
      ),
  );
}

/** `ip:host:container` of each published port. */
function portsOf(name: string, set: Record<string, string> = {}): string[] {
  return service(name).ports.map((port) => interpolate(port, { ...required, ...set }));
}

describe('every service', () => {
  test('is restarted, is limited, and keeps a bounded log', () => {
    for (const [name, { restart, deploy, logging }] of services) {
      assert.match(restart, jobs.has(name) ? /^on-failure:\d$/ : /^unless-stopped$/, name);
      assert.ok(Number(deploy.resources.limits.cpus) > 0, name);
      assert.equal(logging.driver, 'json-file', name);
    }
    assert.deepEqual([...jobs], ['temporal-schema', 'temporal-namespace']);
  });

  test('has a health check, except the jobs, which end', () => {
    for (const [name, { healthcheck }] of services) {
      assert.equal(healthcheck === undefined, jobs.has(name), name);
    }
  });

  test('gains no privilege, and only the image of PostgreSQL starts as root', () => {
    for (const [name, { security_opt: options, cap_drop: dropped, privileged }] of services) {
      assert.deepEqual(options, ['no-new-privileges:true'], name);
      assert.equal(privileged, undefined);
      if (name !== 'postgresql') assert.deepEqual(dropped, ['ALL'], name);
    }
    for (const [name, { read_only: readOnly }] of own) assert.equal(readOnly, true, name);
  });

  test('waits for a job to end and for a service to be healthy, and for nothing that may be left away', () => {
    for (const [name, { depends_on: needs, profiles }] of services) {
      for (const [other, { condition }] of Object.entries(needs)) {
        assert.equal(condition, jobs.has(other) ? 'service_completed_successfully' : 'service_healthy', name);
        if (profiles.length === 0) assert.deepEqual(service(other).profiles, [], `${name} needs ${other}`);
      }
    }
  });

  test('mounts only volumes that are declared and files that are there', () => {
    const mounts = services.flatMap(([, { volumes }]) => volumes).map((volume) => volume.split(':'));
    for (const [source = ''] of mounts) {
      if (source.startsWith('./')) assert.ok(existsSync(join(root, source)), source);
      else assert.ok(source in compose.volumes, `volume ${source} is not declared`);
    }
    assert.deepEqual(
      Object.keys(compose.volumes).filter((volume) => !mounts.some(([source]) => source === volume)),
      [],
      'a declared volume is not used',
    );
  });

  test('publishes its ports to this host alone, unless the API is told otherwise', () => {
    const published = services.flatMap(([name]) => portsOf(name));
    assert.deepEqual(published, ['127.0.0.1:7233:7233', '127.0.0.1:8080:8080', '127.0.0.1:7280:7280']);
    const everywhere = services.flatMap(([name]) => portsOf(name, { API_BIND: '0.0.0.0' }));
    assert.deepEqual(
      everywhere.filter((port) => !port.startsWith('127.0.0.1:')),
      ['0.0.0.0:7280:7280'],
    );
  });
});

test('things start in an order in which each finds what it needs', () => {
  assert.deepEqual([...needed('temporal')], ['temporal-schema', 'postgresql']);
  for (const name of ['api', 'worker']) assert.ok(needed(name).has('temporal-namespace'), name);
  assert.ok(needed('temporal-namespace').has('temporal'));
  // the API makes the secrets, the worker only reads them
  assert.ok(needed('worker').has('api'));
});

function needed(name: string, seen: Set<string> = new Set()): Set<string> {
  for (const other of Object.keys(service(name).depends_on)) {
    assert.notEqual(other, name, 'a service that waits for itself never starts');
    if (seen.has(other)) continue;
    seen.add(other);
    needed(other, seen);
  }
  return seen;
}

describe('passwords', () => {
  test('have no default and stand in no file', () => {
    const secret = /PASSWORD|PWD|TOKEN|SECRET|API_KEY|PRIVATE/;
    const set = services.flatMap(([, { environment }]) =>
      Object.entries(environment).filter(([name]) => secret.test(name) && !name.endsWith('_FILE')),
    );
    assert.equal(set.length, 3);
    for (const [name, value] of set) assert.match(value, /^\$\{POSTGRES_PASSWORD:\?[^}]*\}$/, name);
    const inImage = dockerfile.filter(({ name, rest }) => /^(?:ARG|ENV)$/.test(name) && secret.test(rest));
    assert.deepEqual(
      inImage.flatMap(({ rest }) =>
        [...rest.matchAll(/\w*(?:PASSWORD|PWD|TOKEN|SECRET|API_KEY|PRIVATE)\w*/g)].join(),
      ),
      ['COUNTERSIGN_SECRETS_FILE'],
    );
  });

  test('that are missing stop the start, and say what to do', () => {
    const { POSTGRES_PASSWORD: value = '' } = service('postgresql').environment;
    assert.throws(() => interpolate(value, {}), /put POSTGRES_PASSWORD=.* into a file \.env/);
  });
});

describe('what API and worker are told', () => {
  test('is what the code reads, and nothing else', async () => {
    const readNames = new Set<string>();
    const recorder = new Proxy<NodeJS.ProcessEnv>(
      {},
      {
        get: (_, name) => void readNames.add(String(name)),
      },
    );
    await loadConfig({ path: example, env: recorder });
    for (const [name, { environment }] of own) {
      for (const variable of [...Object.keys(environment), ...Object.keys(imageEnvironment())]) {
        if (!variable.startsWith('COUNTERSIGN_')) continue;
        assert.ok(readNames.has(variable), `${name} sets ${variable}, which nothing reads`);
      }
    }
    const others = own.flatMap(([, { environment }]) => Object.keys(environment));
    assert.deepEqual([...new Set(others)].filter((variable) => !variable.startsWith('COUNTERSIGN_')).sort(), [
      'LEDGER_URL',
      'TEMPORAL_ADDRESS',
      'TEMPORAL_NAMESPACE',
    ]);
    assert.ok(read('examples/refund/tools.ts').includes("process.env['LEDGER_URL']"));
  });

  test('leads to the Temporal of this file, in the namespace that its job makes', async () => {
    for (const name of ['api', 'worker']) {
      const env = environmentOf(name, { TEMPORAL_NAMESPACE: 'approvals' });
      const { connection, namespace } = connectTemporal({ env });
      assert.equal(connection.options.address, 'temporal:7233');
      assert.equal(namespace, 'approvals');
      await connection.close();
    }
    const job = environmentOf('temporal-namespace', { TEMPORAL_NAMESPACE: 'approvals' });
    assert.deepEqual(job, { TEMPORAL_ADDRESS: 'temporal:7233', TEMPORAL_NAMESPACE: 'approvals' });
    assert.equal(environmentOf('temporal-ui')['TEMPORAL_ADDRESS'], 'temporal:7233');
  });

  test('makes them meet on one task queue, one secrets file and one address', async () => {
    const [api, worker] = [await configOf('api'), await configOf('worker')];
    for (const { taskQueue, secretsFile, baseUrl, approvalTtlMs } of [api, worker]) {
      assert.equal(taskQueue, defaultTaskQueue);
      assert.equal(secretsFile, '/var/lib/countersign/secrets.json');
      assert.equal(baseUrl, 'http://localhost:7280');
      assert.equal(approvalTtlMs, 7 * 86_400_000);
    }
    assert.deepEqual(service('api').volumes, ['countersign-secrets:/var/lib/countersign']);
    assert.deepEqual(service('worker').volumes, ['countersign-secrets:/var/lib/countersign:ro']);
    const moved = await configOf('api', { API_PORT: '9000', COUNTERSIGN_APPROVAL_TTL_MS: '5' });
    assert.equal(moved.baseUrl, 'http://localhost:9000');
    assert.equal(moved.approvalTtlMs, 5);
  });

  test('makes the API listen where its port is published', async () => {
    const { host, port } = await configOf('api');
    assert.equal(host, '0.0.0.0');
    assert.deepEqual(portsOf('api', { API_PORT: '9000' }), [`127.0.0.1:9000:${port}`]);
    assert.equal(finalStage.find(({ name }) => name === 'EXPOSE')?.rest, String(port));
    assert.equal(imageEnvironment()['COUNTERSIGN_PORT'], String(port));
  });

  test('are commands and options of the program', () => {
    for (const name of ['api', 'worker']) {
      const [command = '', ...options] = service(name).command;
      const { stdout, status } = spawnSync(
        process.execPath,
        ['--import', 'tsx', '--conditions=countersign-source', 'src/cli/main.ts', command, '--help'],
        { cwd: root, encoding: 'utf8' },
      );
      assert.equal(status, 0);
      assert.ok(stdout.includes(`countersign ${command} `), stdout);
      for (const option of options) assert.ok(stdout.includes(`${option} `), `${command} ${option}`);
    }
    assert.deepEqual(service('worker').command, ['worker'], 'only one process makes the secrets');
  });

  test('leaves a worker the time that it gives to effects in flight', () => {
    const [, grace] = /shutdownGraceTime: '(\d+)s'/.exec(read('src/worker.ts')) ?? [];
    const [, stop] = /^(\d+)s$/.exec(service('worker').stop_grace_period ?? '') ?? [];
    assert.ok(Number(stop) > Number(grace), `${stop} s to stop, ${grace} s for effects`);
  });
});

describe('Temporal', () => {
  test('is set up for PostgreSQL, with shards for good, and answers beyond its own container', () => {
    const { DB, NUM_HISTORY_SHARDS, BIND_ON_IP, POSTGRES_SEEDS } = environmentOf('temporal');
    assert.deepEqual([DB, NUM_HISTORY_SHARDS, BIND_ON_IP], ['postgres12', '512', '0.0.0.0']);
    assert.equal(POSTGRES_SEEDS, 'postgresql');
    const job = environmentOf('temporal-schema', { POSTGRES_PASSWORD: 'p' });
    assert.deepEqual(
      [job['SQL_PLUGIN'], job['SQL_HOST'], job['SQL_PASSWORD']],
      ['postgres12', 'postgresql', 'p'],
    );
  });

  test('cannot take more connections than PostgreSQL has', () => {
    const { SQL_MAX_CONNS: main, SQL_VIS_MAX_CONNS: visibility } = environmentOf('temporal');
    const has = service('postgresql').command.find((word) => word.startsWith('max_connections='));
    const temporalServices = 4;
    const forAdministrators = 10;
    const most = temporalServices * (Number(main) + Number(visibility)) + forAdministrators;
    assert.ok(most <= Number(has?.split('=')[1]), `${most} of ${has}`);
  });

  test('has the limits that the embedded server has', () => {
    const { DYNAMIC_CONFIG_FILE_PATH: path = '' } = environmentOf('temporal');
    const [mount = ''] = service('temporal').volumes;
    const [source = '', target = ''] = mount.split(':');
    assert.equal(posix.dirname(path), target);
    const values = parse(read(join(source, posix.basename(path)))) as Record<string, { value: number }[]>;
    const embedded = read('src/embedded/dev-server.ts');
    assert.deepEqual(Object.keys(values).sort(), [
      'frontend.namespaceRPS.visibility',
      'history.MaxBufferedQueryCount',
      'limit.maxIDLength',
    ]);
    for (const [key, [first]] of Object.entries(values)) {
      assert.ok(embedded.includes(`'${key}': '${first?.value}'`), `${key} differs from dev-server.ts`);
    }
  });

  test('gets every search attribute of countersign from its namespace job', () => {
    const script = read('deploy/temporal/namespace.sh');
    const registered = [...script.matchAll(/^register (\w+) (\w+)$/gm)].map(
      ([, name, kind]) => `${name}=${kind}`,
    );
    assert.deepEqual(registered.sort(), searchAttributeArguments().sort());
    for (const attribute of registered) {
      const [name = ''] = attribute.split('=');
      assert.match(script, new RegExp(`query[^]*\\b${name} [=>]`), `the job does not wait for ${name}`);
    }
    assert.match(script, /--retention 720h/);
  });

  test('has jobs whose scripts a shell can read', () => {
    for (const name of jobs) {
      const { entrypoint, command, volumes } = service(name);
      const [script = ''] = command;
      const [mount = ''] = volumes;
      assert.deepEqual(entrypoint, ['/bin/sh']);
      assert.equal(posix.dirname(script), mount.split(':')[1]);
      const file = join(root, mount.split(':')[0] ?? '', posix.basename(script));
      const { status, stderr } = spawnSync('sh', ['-n', file], { encoding: 'utf8' });
      assert.equal(status, 0, stderr);
    }
  });
});

describe('images', () => {
  test('are pinned to versions, those that docs/production.md names', () => {
    const [, base = ''] = /^NODE_IMAGE=(\S+)$/.exec(dockerfile[0]?.rest ?? '') ?? [];
    const used = new Set([...services.map(([, { image }]) => image), base]);
    for (const image of used) assert.match(image, /^[a-z][a-z/-]*:\d[\w.-]*$/, 'an image needs a version');
    const [, table = ''] = /\n## Images\n([^]*?)\n## /.exec(production) ?? [];
    const named = [...table.matchAll(/^\| `([^`]+)`/gm)].map(([, image]) => image);
    assert.deepEqual(named.sort(), [...used].sort());
  });

  test('of Temporal are of one version', () => {
    const [, version] = service('temporal').image.split(':');
    for (const name of jobs) assert.equal(service(name).image, `temporalio/admin-tools:${version}`);
  });

  test('of ours are of this package, built once and looked for in no registry', () => {
    assert.deepEqual(
      own.map(([name, { build }]) => [name, build]),
      [
        ['api', '.'],
        ['worker', undefined],
        ['ledger', undefined],
      ],
    );
    for (const [name, { image, pull_policy: policy }] of own) {
      assert.equal(image, `countersign:${packageJson.version}`, name);
      assert.equal(policy, 'never', name);
    }
  });
});

test('docs/production.md tells every variable that an administrator can set, with its default', () => {
  const text = read('docker-compose.yml');
  const variables = [...text.matchAll(/\$\{([A-Z_]+)/g)].map(([, name = '']) => name);
  assert.ok(variables.length > 10);
  const [, table = ''] = /\n## Settings\n([^]*?)\n## /.exec(production) ?? [];
  const named = [...table.matchAll(/^\| ([^|]+)\|/gm)]
    .flatMap(([, cell = '']) => [...cell.matchAll(/`([A-Z_]+)`/g)])
    .map(([, name = '']) => name);
  assert.deepEqual([...new Set(named)].sort(), [...new Set(variables)].sort());
});
