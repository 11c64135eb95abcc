// Where this machine keeps what is its own: the dev server's database, secrets, ports. Nobody else may
// read it, and a repository that it lies in must not take it up.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Makes the folder if it is not there, readable by its owner alone, and ignored by git. */
export async function makePrivateFolder(folder: string): Promise<void> {
  const firstMade = await mkdir(folder, { recursive: true, mode: 0o700 });
  if (firstMade === undefined) return;
  await writeFile(join(folder, '.gitignore'), '*\n', { flag: 'wx' }).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  });
}
