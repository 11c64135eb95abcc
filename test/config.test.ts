// A configuration is checked as a whole before anything starts; what is wrong is named, with the remedy.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { ConfigError } from '../src/config-file.ts';
import { loadConfig, redactConfig } from '../src/config.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

const zodUrl = JSON.stringify(import.meta.resolve('zod'));
const tool = (fields = ''): string =>
  `{ name: 'payments.refund', arguments: z.object({}), idempotency: 'key', run: async () => 1, ${fields} }`;

/** A folder with a config file that exports `config`, given as source. */
function project(config: string, name = 'countersign.config.mjs'): string {
  const folder = temporaryFolder();
  writeFileSync(join(folder, name), `import { z } from ${zodUrl};\nexport const config = ${config};\n`);
  return folder;
}

async function problem(cwd: string, env: NodeJS.ProcessEnv = {}): Promise<string> {
  const error = await loadConfig({ cwd, env }).then(
    () => assert.fail('the configuration was taken'),
    (error: unknown) => error,
  );
  assert.ok(error instanceof ConfigError, String(error));
  return error.message;
}

describe('a configuration', () => {
  test('has every default', async () => {
    const cwd = project(`{ tools: [${tool()}] }`);
    const { tools, ...rest } = await loadConfig({ cwd, env: {} });
    assert.deepEqual(
      tools.map(({ name }) => name),
      ['payments.refund'],
    );
    assert.deepEqual(rest, {
      file: join(cwd, 'countersign.config.mjs'),
      approvalTtlMs: 7 * 24 * 3600 * 1000,
      unsigned: 'allow',
      taskQueue: 'countersign',
      host: '127.0.0.1',
      port: 7280,
      dataDir: join(cwd, '.countersign'),
      secretsFile: join(cwd, '.countersign', 'secrets.json'),
    });
  });

  test('takes the deployment from the environment, before the file', async () => {
    const cwd = project(
      `{ tools: [], specs: './flows', approvalTtlMs: 5, unsigned: 'refuse', workflows: './w.ts' }`,
    );
    mkdirSync(join(cwd, 'flows'));
    const env = {
      COUNTERSIGN_APPROVAL_TTL_MS: '60000',
      COUNTERSIGN_TASK_QUEUE: 'payments',
      COUNTERSIGN_URL: 'https://approvals.example.com/base/',
      COUNTERSIGN_HOST: '0.0.0.0',
      COUNTERSIGN_PORT: '0',
      COUNTERSIGN_DATA_DIR: 'state',
      COUNTERSIGN_SECRETS_FILE: '/run/secrets/countersign.json',
    };
    assert.deepEqual(await loadConfig({ cwd, env }), {
      file: join(cwd, 'countersign.config.mjs'),
      tools: [],
      specsFolder: join(cwd, 'flows'),
      workflowsPath: join(cwd, 'w.ts'),
      approvalTtlMs: 60_000,
      unsigned: 'refuse',
      taskQueue: 'payments',
      baseUrl: 'https://approvals.example.com/base',
      host: '0.0.0.0',
      port: 0,
      dataDir: join(cwd, 'state'),
      secretsFile: '/run/secrets/countersign.json',
    });
    const empty = Object.fromEntries(Object.keys(env).map((name) => [name, '']));
    assert.equal((await loadConfig({ cwd, env: empty })).approvalTtlMs, 5);
  });

  test('may be named, in TypeScript, and then its paths are those of its own folder', async () => {
    const folder = project(`{ tools: [] as never[] }`, 'other.ts');
    mkdirSync(join(folder, 'specs'));
    const config = await loadConfig({ path: join(folder, 'other.ts'), cwd: temporaryFolder(), env: {} });
    assert.equal(config.specsFolder, join(folder, 'specs'));
  });

  test('holds triggers, whose secrets are names of variables, and prints them so', async () => {
    const triggers = `{ shop: { spec: 'refund', secrets: ['\${SHOP_NEW}', '\${SHOP_OLD}'], input: { orderId: 'data.order.id', note: 'data["the-note"][0]?' } } }`;
    const cwd = project(`{ tools: [], triggers: ${triggers}, dropHeaders: ['x-shop-*'] }`);
    const env = { SHOP_NEW: 'SECRET-NEW', SHOP_OLD: 'SECRET-OLD' };
    const printed = redactConfig(await loadConfig({ cwd, env }));
    assert.deepEqual(printed['triggers'], {
      shop: {
        spec: 'refund',
        secrets: ['${SHOP_NEW}', '${SHOP_OLD}'],
        input: { orderId: 'data.order.id', note: 'data["the-note"][0]?' },
      },
    });
    assert.deepEqual(printed['dropHeaders'], ['x-shop-*']);
    assert.doesNotMatch(JSON.stringify(printed), /SECRET/);
  });

  test('holds an OIDC issuer with every default of one, and prints it: nothing of it is secret', async () => {
    const cwd = project(
      `{ tools: [], oidc: { issuer: 'https://id.example.com/t/1', audience: 'countersign' } }`,
    );
    const printed = redactConfig(await loadConfig({ cwd, env: {} }));
    assert.deepEqual(printed['oidc'], {
      ...{ issuer: 'https://id.example.com/t/1', audience: 'countersign' },
      algorithms: ['RS256', 'PS256', 'ES256', 'EdDSA'],
      ...{ idClaim: 'sub', nameClaim: 'name', rolesClaim: 'roles' },
      ...{ scopes: ['start', 'read', 'decide'], roleScopes: {} },
    });
  });

  test('prints itself with tools by name and nothing of their code', async () => {
    const cwd = project(`{ tools: [${tool(`description: 'SECRET', attempts: 3`)}] }`);
    const text = JSON.stringify(redactConfig(await loadConfig({ cwd, env: {} })));
    assert.match(text, /"tools":\["payments\.refund"\]/);
    assert.doesNotMatch(text, /SECRET/);
  });
});

describe('a config file is refused', () => {
  test('when there is none, or two, or the named one is not there', async () => {
    assert.match(
      await problem(temporaryFolder()),
      /has no countersign\.config\.js, \.mjs or \.ts: write one/,
    );
    const cwd = project('{ tools: [] }');
    writeFileSync(join(cwd, 'countersign.config.js'), '');
    assert.match(await problem(cwd), /both countersign\.config\.js and countersign\.config\.mjs: keep one/);
    await assert.rejects(loadConfig({ path: 'gone.mjs', cwd, env: {} }), /gone\.mjs is not there: --config/);
  });

  test('when it throws, with its own words and the file', async () => {
    assert.match(
      await problem(project('(() => { throw new Error("no database") })()')),
      /config\.mjs fails: no database/,
    );
    assert.match(await problem(project('{ tools: [')), /config\.mjs fails: \w+/);
  });

  test('when it exports something else', async () => {
    const cwd = temporaryFolder();
    const file = join(cwd, 'countersign.config.mjs');
    writeFileSync(file, 'export default { tools: [] };');
    assert.match(await problem(cwd), /exports no `config` \(it has a default export: give it that name\)/);
  });

  for (const [what, config, says] of [
    ['an unknown field', '{ tools: [], spec: "./specs" }', /config: .*"spec"/],
    ['no tools', '{}', /config\.tools: /],
    ['a tool that is none', '{ tools: [7] }', /config\.tools\[0\]: must be a tool/],
    ['a tool without a name', `{ tools: [{ run() {} }] }`, /config\.tools\[0\]: its name must be/],
    [
      'a tool with a bad name',
      `{ tools: [${tool('name: "pay me"')}] }`,
      /config\.tools\[0\]: its name must be/,
    ],
    [
      'a tool with a name over 64 characters',
      `{ tools: [${tool(`name: "${'x'.repeat(65)}"`)}] }`,
      /config\.tools\[0\]: its name must be 1 to 64 characters/,
    ],
    ['a tool without run', `{ tools: [${tool('run: 1')}] }`, /tool "payments\.refund" has no function run/],
    ['a tool without a schema', `{ tools: [${tool('arguments: {}')}] }`, /arguments must be a zod 4 schema/],
    [
      'a tool without idempotency',
      `{ tools: [${tool('idempotency: undefined')}] }`,
      /'key', 'lookup' or 'none'; it has no default/,
    ],
    [
      'a tool without attempts',
      `{ tools: [${tool('attempts: 0')}] }`,
      /attempts must be a whole number from 1/,
    ],
    [
      'a tool with too short keys',
      `{ tools: [${tool('keyMaxLength: 42')}] }`,
      /keyMaxLength must be a whole number from 43/,
    ],
    [
      'a lookup tool that cannot be asked',
      `{ tools: [${tool('idempotency: "lookup"')}] }`,
      /tool "payments\.refund": idempotency 'lookup' needs find/,
    ],
    [
      'a key that lasts no time',
      `{ tools: [${tool('keyTtl: "soon"')}] }`,
      /tool "payments\.refund": keyTtl must be a duration like/,
    ],
    [
      'two tools of one name',
      `{ tools: [${tool()}, ${tool()}] }`,
      /config\.tools\[1\]: a second tool is named "payments\.refund"/,
    ],
    ['a lifetime of nothing', '{ tools: [], approvalTtlMs: 0 }', /config\.approvalTtlMs: /],
    ['a lifetime of ages', '{ tools: [], approvalTtlMs: 1e12 }', /config\.approvalTtlMs: must be at most/],
    ['a doubtful unsigned', '{ tools: [], unsigned: "maybe" }', /config\.unsigned: .*"allow"/],
    [
      'a signing secret itself in a trigger',
      `{ tools: [], triggers: { shop: { spec: 'a', secrets: ['whsec_SECRETSECRET'], input: {} } } }`,
      /config\.triggers\.shop\.secrets\[0\]: must be a placeholder such as \$\{SHOP_HOOK_SECRET\}, and never/,
    ],
    [
      'a trigger without secrets, and six',
      `{ tools: [], triggers: { a: { spec: 'a', secrets: [], input: {} }, b: { spec: 'a', secrets: Array(6).fill('\${A}'), input: {} } } }`,
      /config\.triggers\.a\.secrets: .*config\.triggers\.b\.secrets: /,
    ],
    [
      'a path that is none, a name that is none, and an unknown field in a trigger',
      `{ tools: [], triggers: { '../x': { spec: 'a', secrets: ['\${A}'], input: {} }, b: { spec: 'a', secrets: ['\${A}'], input: { x: 'a..b', y: '$.a', z: '' }, secret: 'SECRET' } } }`,
      /config\.triggers\.b\.input\.x: must be a path such as .*input\.y: .*input\.z: .*"secret"/,
    ],
    [
      'the name of a trigger that no path can have',
      `{ tools: [], triggers: { '../x': { spec: 'a', secrets: ['\${A}'], input: {} } } }`,
      /config\.triggers\.\.\.\/x: a name is 1 to 64 characters/,
    ],
    [
      'a header to drop that is no name',
      `{ tools: [], dropHeaders: ['x-ok', 'not a name'] }`,
      /config\.dropHeaders\[1\]: must be the name of a header/,
    ],
    [
      'an issuer over plain HTTP',
      `{ tools: [], oidc: { issuer: 'http://id.example.com', audience: 'a' } }`,
      /config\.oidc\.issuer: must be an https URL without user, \? and # \(http only for localhost\)/,
    ],
    [
      'an issuer with a password, keys over plain HTTP',
      `{ tools: [], oidc: { issuer: 'https://u:SECRETSECRET@id.example.com', audience: 'a', jwksUri: 'http://k.example' } }`,
      /config\.oidc\.issuer: must be .*config\.oidc\.jwksUri: must be/,
    ],
    [
      'an issuer for anybody',
      `{ tools: [], oidc: { issuer: 'https://id.example.com' } }`,
      /config\.oidc\.audience: /,
    ],
    [
      'algorithms whose key both sides know',
      `{ tools: [], oidc: { issuer: 'https://id.example.com', audience: [], algorithms: ['HS256', 'none'] } }`,
      /oidc\.audience: .*oidc\.algorithms\[0\]: must be one of RS256.*oidc\.algorithms\[1\]: must be one of/,
    ],
    [
      'a scope that there is not',
      `{ tools: [], oidc: { issuer: 'https://id.example.com', audience: 'a', scopes: ['write'] } }`,
      /config\.oidc\.scopes\[0\]: .*"start"/,
    ],
    [
      'a role that nobody can have',
      `{ tools: [], oidc: { issuer: 'https://id.example.com', audience: 'a', roles: ['x'], roleScopes: { y: ['admin'] } } }`,
      /config\.oidc\.roleScopes: names a role that is not in roles/,
    ],
    [
      'a missing specs folder',
      '{ tools: [], specs: "./flows" }',
      /config\.specs is "\.\/flows", and .*flows is not a folder/,
    ],
  ] as const) {
    test(`with ${what}`, async () => {
      const cwd = project(config);
      const message = await problem(cwd);
      assert.match(message, says);
      assert.ok(message.startsWith(join(cwd, 'countersign.config.mjs')), message);
      assert.doesNotMatch(message, /SECRETSECRET/);
    });
  }
});

describe('the environment is refused', () => {
  for (const [name, value, says] of [
    ['COUNTERSIGN_PORT', '70000', /whole number from 0 to 65535, got "70000"/],
    ['COUNTERSIGN_PORT', '-1', /got "-1"/],
    [
      'COUNTERSIGN_APPROVAL_TTL_MS',
      '7d',
      /COUNTERSIGN_APPROVAL_TTL_MS must be a whole number from 1 .*got "7d"/,
    ],
    ['COUNTERSIGN_APPROVAL_TTL_MS', '0', /got "0"/],
    ['COUNTERSIGN_URL', 'approvals.example.com', /COUNTERSIGN_URL must be an http or https URL/],
    ['COUNTERSIGN_URL', 'javascript:alert(1)', /http or https/],
    ['COUNTERSIGN_URL', 'https://user:SECRET@example.com', /without user, password/],
    ['COUNTERSIGN_URL', 'https://example.com/?token=SECRET', /without user, password, \? and #/],
  ] as const) {
    test(`with ${name}=${value}`, async () => {
      const message = await problem(temporaryFolder(), { [name]: value });
      assert.match(message, says);
      assert.doesNotMatch(message, /SECRET/);
    });
  }
});

test('a config file is imported once: a class of this package is the same on both sides', async () => {
  const url = JSON.stringify(pathToFileURL(join(import.meta.dirname, '../src/tool.ts')).href);
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  const run = `async () => { throw new ToolRefusedError('no') }`;
  const source = `import { z } from ${zodUrl};\nimport { ToolRefusedError } from ${url};\nexport const config = { tools: [${tool(`run: ${run}`)}] };`;
  writeFileSync(join(folder, 'countersign.config.ts'), source);
  const { tools } = await loadConfig({ cwd: folder, env: {} });
  const { ToolRefusedError } = await import('../src/tool.ts');
  await assert.rejects(tools[0]!.run({} as never, {}), ToolRefusedError);
});
