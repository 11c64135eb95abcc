// The processes of the bench run plain JavaScript, as a deployment does. With a loader that transpiles at run time
// Node maps every stack trace back, and the SDK takes one for each promise of a workflow: a tenth of a worker's time.
import { execFile } from 'node:child_process';
import { copyFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const repository = fileURLToPath(new URL('../', import.meta.url));

/** Writes these folders of the repository as JavaScript into that folder. */
export async function compileInto(folder: string, parts = ['src', 'bench']): Promise<void> {
  const project = {
    extends: join(repository, 'tsconfig.json'),
    // types are checked elsewhere
    compilerOptions: { noEmit: false, noCheck: true, rootDir: repository, outDir: folder, types: [] },
    include: parts.map((part) => join(repository, part)),
  };
  const file = join(folder, 'tsconfig.json');
  await writeFile(file, JSON.stringify(project));
  await copyFile(join(repository, 'package.json'), join(folder, 'package.json')); // modules are ES modules
  await symlink(join(repository, 'node_modules'), join(folder, 'node_modules'));
  await promisify(execFile)(process.execPath, [
    join(repository, 'node_modules/typescript/bin/tsc'),
    '--project',
    file,
  ]);
}
