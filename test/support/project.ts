// A user's project in a temporary folder (a config file with the example's tool, and a folder of specs), and
// `countersign` run on it. These processes are the product's own: they follow no setting of the tests.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { startScript, type Script } from './script.ts';
import { temporaryFolder } from './temporary-folder.ts';

export interface TestProject {
  /** for `--config` */
  config: string;
  dataDir: string;
  /** Writes a spec file, or writes it anew; gives its path. */
  writeSpec(file: string, text: string): string;
  /** what points countersign at this project, and at no other Temporal, API or port */
  env: Record<string, string | undefined>;
}

export const goodSpec = `version: 1
name: refund
input:
  type: object
  required: [order, amount]
  properties: { order: { type: string }, amount: { type: string } }
steps:
  - id: refund
    tool: payments.refund
    with: { order: '\${{ input.order }}', amount: '\${{ input.amount }}' }
    before: { approve: { title: 'Refund \${{ input.order }}', ttl: 1h } }
`;

export function makeProject(specs: Record<string, string> = { 'refund.yaml': goodSpec }): TestProject {
  const folder = temporaryFolder();
  const config = join(folder, 'countersign.config.ts');
  const tools = pathToFileURL('examples/refund/tools.ts').href;
  // a user's module may print; that must not be taken for a report
  writeFileSync(
    config,
    `import { refund } from '${tools}';\nconsole.log('{"hello": "from the config"}');\nexport const config = { tools: [refund], specs: './specs' };\n`,
  );
  mkdirSync(join(folder, 'specs'));
  const writeSpec = (file: string, text: string): string => {
    const path = join(folder, 'specs', file);
    writeFileSync(path, text);
    return path;
  };
  for (const [file, text] of Object.entries(specs)) writeSpec(file, text);
  const dataDir = join(folder, 'data');
  return {
    config,
    dataDir,
    writeSpec,
    env: {
      TEMPORAL_ADDRESS: undefined,
      COUNTERSIGN_DATA_DIR: dataDir,
      COUNTERSIGN_PORT: '0',
      LEDGER_URL: 'http://127.0.0.1:9', // nobody listens there
    },
  };
}

/** The pass with `maxCachedWorkflows: 0` would show nothing new of them. */
export const skipWithoutCache =
  process.env['COUNTERSIGN_TEST_CACHE'] === '0' && 'these processes have a cache of their own';

export function countersign(
  command: string,
  { config, env }: TestProject,
  more: Record<string, string | undefined> = {},
): Script {
  return startScript('src/cli/main.ts', { args: [command, '--config', config], env: { ...env, ...more } });
}

/** What it reports when it is ready. */
export async function ready(script: Script): Promise<Record<string, string>> {
  const [, line = ''] = await script.says(/^(\{"ready":true.*\})$/m);
  return JSON.parse(line) as Record<string, string>;
}

/** A request to its API. */
export async function call(url: string, token: string, path: string, body?: object) {
  const response = await fetch(url + path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}
