// A deployment's secrets, made anew for each test file: keys that sign decisions, keys that make grants.
import { join } from 'node:path';
import { openSecrets, type Secrets } from '../../src/secrets.ts';
import { temporaryFolder } from './temporary-folder.ts';

export interface TestSecrets {
  /** the file, for child processes */
  path: string;
  secrets: Secrets;
  /** of the admin that every new secrets file has */
  adminToken: string;
}

export async function makeSecrets(): Promise<TestSecrets> {
  const path = join(temporaryFolder(), 'secrets.json');
  const { secrets, createdToken } = await openSecrets({ path, create: true });
  if (!createdToken) throw new Error(`${path} was there already`);
  return { path, secrets, adminToken: createdToken.token };
}
