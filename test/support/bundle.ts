// The workflow bundle of the tests: our workflows and the tests' own. Bundling costs seconds, so a test
// run does it once (`npm test` names the file in the environment) and a file run alone once a process.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';

let building: Promise<string> | undefined;

/** The path of the test bundle; made on the first call when the environment names none. */
export function testBundle(): Promise<string> {
  const given = process.env['COUNTERSIGN_TEST_BUNDLE'];
  if (given) return Promise.resolve(given);
  building ??= buildInTemporaryFolder();
  return building;
}

async function buildInTemporaryFolder(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-bundle-'));
  process.once('exit', () => {
    rmSync(folder, { recursive: true, force: true });
  });
  const path = join(folder, 'workflows.js');
  await buildTestBundle(path);
  return path;
}

/** `entry`: a file of support/workflows. */
export async function buildTestBundle(path: string, entry = 'index.ts'): Promise<void> {
  const { code } = await bundleWorkflowCode({
    workflowsPath: fileURLToPath(new URL(`./workflows/${entry}`, import.meta.url)),
    logger: new DefaultLogger('WARN'),
  });
  writeFileSync(path, code);
}
