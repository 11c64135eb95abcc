// A bundle of somebody's own workflows, for which `countersign/workflow` is the source and not a build.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import { temporaryFolder } from './temporary-folder.ts';

/** The path of the bundle of that file; its packages are looked for in the folders above it. */
export async function bundleFromSource(workflowsPath: string): Promise<string> {
  const { code } = await bundleWorkflowCode({
    workflowsPath,
    logger: new DefaultLogger('WARN'),
    webpackConfigHook: (config) => ({
      ...config,
      resolve: { ...config.resolve, conditionNames: ['countersign-source', '...'] },
    }),
  });
  const path = join(temporaryFolder(), 'workflows.js');
  writeFileSync(path, code);
  return path;
}
