// Mutants: patches of `src` that break a promise. Each is applied to a copy of the compiled programs, never to the
// repository; the harness and its checks stay as they are, so that they judge the mutant and not themselves.
import { readdirSync, readFileSync } from 'node:fs';
import { cp, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import ts from 'typescript';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { applyPatch } from '../support/unified-diff.ts';
import type { Programs } from './compile.ts';
import type { Violation } from './evidence.ts';

/** What catches a mutant: the plan of this seed and `only`, by a violation of one of these. */
export interface Pin {
  seed: number;
  only: string[];
  invariants: Violation['invariant'][];
}

const repository = fileURLToPath(new URL('../../', import.meta.url));
const folder = join(repository, 'test/mutants');

export function mutantNames(): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.patch'))
    .map((name) => name.slice(0, -'.patch'.length))
    .sort();
}

export function readPins(): Record<string, Pin> {
  return JSON.parse(readFileSync(join(folder, 'pinned.json'), 'utf8')) as Record<string, Pin>;
}

/** The files that it changes, with their new texts. @throws Error when the patch fits no more */
export function mutatedFiles(name: string): Map<string, string> {
  const patch = readFileSync(join(folder, `${name}.patch`), 'utf8');
  return applyPatch(patch, (path) => readFileSync(join(repository, path), 'utf8'));
}

/** A copy of the programs, with the mutant in it. Call `remove` when nothing of it runs any more. */
export async function buildMutant(
  name: string,
  base: Programs,
): Promise<Programs & { remove: () => Promise<void> }> {
  const place = temporaryFolder();
  const js = join(place, 'js');
  await mkdir(js);
  for (const part of ['src', 'test', 'examples', 'package.json']) {
    await cp(join(base.folder, part), join(js, part), { recursive: true });
  }
  await symlink(join(repository, 'node_modules'), join(js, 'node_modules'));
  const files = mutatedFiles(name);
  for (const [path, text] of files) {
    const file = join(js, path.replace(/\.ts$/, '.js'));
    // what is replaced must be there, or nothing was mutated
    if ((await readFile(file, 'utf8')) === transpiled(text))
      throw new Error(`mutant "${name}" changes nothing`);
    await writeFile(file, transpiled(text));
  }
  const isInSandbox = [...files.keys()].some((path) => /^src\/(?:workflows|core)\//.test(path));
  return {
    folder: js,
    bundle: isInSandbox ? await bundle(js, join(place, 'workflows.js')) : base.bundle,
    remove: () => rm(place, { recursive: true, force: true }),
  };
}

function transpiled(text: string): string {
  const compilerOptions = {
    target: ts.ScriptTarget.ES2023,
    module: ts.ModuleKind.ESNext,
    verbatimModuleSyntax: true,
    rewriteRelativeImportExtensions: true,
  };
  return ts.transpileModule(text, { compilerOptions }).outputText;
}

async function bundle(js: string, path: string): Promise<string> {
  const { code } = await bundleWorkflowCode({
    workflowsPath: join(js, 'test/support/workflows/index.js'),
    logger: new DefaultLogger('WARN'),
  });
  await writeFile(path, code);
  return path;
}
