// The processes of a chaos run are plain JavaScript, as a deployment's are, and start in half the time.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compileInto } from '../../bench/compile.ts';
import { buildTestBundle } from '../support/bundle.ts';

export interface Programs {
  /** folder of `src` and `test` as JavaScript */
  folder: string;
  /** the workflows, bundled */
  bundle: string;
}

/** Removed when this process ends. */
export async function buildPrograms(): Promise<Programs> {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-chaos-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const js = join(folder, 'js');
  mkdirSync(js);
  const given = process.env['COUNTERSIGN_TEST_BUNDLE'];
  const bundle = given ? given : join(folder, 'workflows.js');
  await Promise.all([
    compileInto(js, ['src', 'test/chaos', 'test/support', 'examples/refund']),
    given ? undefined : buildTestBundle(bundle),
  ]);
  return { folder: js, bundle };
}
