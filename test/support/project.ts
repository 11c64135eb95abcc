// A user's project in a temporary folder: a config file with the example's tool, and a folder of specs.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
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
