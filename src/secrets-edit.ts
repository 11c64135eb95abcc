// Changing the secrets file: one process at a time, all of the new content or none of it, and the same owner and
// mode as before. Nothing else is touched; every other process sees the change by itself.
import { realpathSync, statSync } from 'node:fs';
import { chmod, chown, mkdir, rename, rm, rmdir } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { dropSpentPrivateParts } from './secret-keys.ts';
import {
  checkSecretsFile,
  hasCode,
  missingSecrets,
  readSecretsFile,
  SecretsError,
  writeBeside,
  type SecretsFile,
} from './secrets-file.ts';

// A change takes milliseconds; a lock that is older was left by a process that was killed.
const lockBoundMs = 5000;
/** Where a secret of a platform is mounted, or somebody else's file. */
const notOurs = ['EROFS', 'EACCES', 'EPERM'];

/** Reads the file, changes it and writes it; gives what `change` gives. @throws SecretsError, and then nothing changed */
export async function editSecretsFile<Result>(
  path: string,
  change: (file: SecretsFile) => Result | Promise<Result>,
  now = Date.now(),
): Promise<Result> {
  if (statSync(path, { throwIfNoEntry: false }) === undefined) throw missingSecrets(path);
  // a rename would put a file in the place of a link
  const real = realpathSync(path);
  try {
    return await withLock(real, async () => {
      const file = readSecretsFile(real);
      const result = await change(file);
      dropSpentPrivateParts(file, now);
      await replace(real, checkSecretsFile(real, file));
      return result;
    });
  } catch (error) {
    if (error instanceof SecretsError || !notOurs.some((code) => hasCode(error, code))) throw error;
    const why = (error as NodeJS.ErrnoException).code ?? '';
    throw new SecretsError(
      `${real} cannot be changed from here (${why}): change it as its owner, or where it is mounted from`,
    );
  }
}

async function replace(path: string, content: SecretsFile): Promise<void> {
  const { mode, uid, gid } = statSync(path);
  const temporary = await writeBeside(path, content);
  try {
    // root that changes the file of a service must not lock the service out
    if (process.getuid?.() === 0) await chown(temporary, uid, gid);
    await chmod(temporary, mode & 0o777);
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

async function withLock<Result>(path: string, change: () => Promise<Result>): Promise<Result> {
  const lock = `${path}.lock`;
  const giveUpAt = Date.now() + lockBoundMs;
  for (;;) {
    try {
      await mkdir(lock);
      break;
    } catch (error) {
      if (hasCode(error, 'ENOENT')) throw missingSecrets(path);
      if (!hasCode(error, 'EEXIST')) throw error;
      if (Date.now() > giveUpAt) {
        throw new SecretsError(
          `${lock} is in the way: another process is changing the file, or died at it; remove it`,
        );
      }
      await delay(20);
    }
  }
  try {
    return await change();
  } finally {
    await rmdir(lock);
  }
}
