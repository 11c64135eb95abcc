// Folders of one test file, gone when its process ends.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { endOnSignals } from './processes.ts';

let base: string | undefined;

/** Makes an empty folder. It is removed when this process ends. */
export function temporaryFolder(): string {
  base ??= makeBase();
  return mkdtempSync(join(base, 'folder-'));
}

function makeBase(): string {
  endOnSignals();
  const folder = mkdtempSync(join(tmpdir(), 'countersign-test-'));
  process.once('exit', () => {
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}
