// `npm run build`: dist from nothing. TypeScript, then the things it leaves: `.ts` specifiers in declarations
// (rewriteRelativeImportExtensions rewrites only JavaScript), the mode of the bin, and the workflow bundle,
// which is made once here because making it at every worker start costs 1 to 4 s.
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';

const root = fileURLToPath(new URL('../', import.meta.url));
const dist = join(root, 'dist');
const bin = join(dist, 'cli/main.js');

const relativeTypeScript = /(\bfrom\s*|\bimport\s*\(\s*|\bimport\s+)(['"])(\.{1,2}\/[^'"]+)\.ts\2/g;

function compile() {
  rmSync(dist, { recursive: true, force: true });
  const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
  const { status } = spawnSync(process.execPath, [tsc, '-p', join(root, 'tsconfig.build.json')], {
    cwd: root,
    stdio: 'inherit',
  });
  // tsc has said what is wrong.
  if (status !== 0) process.exit(1);
}

function rewriteDeclarations() {
  for (const file of filesUnder(dist, '.d.ts')) {
    const text = readFileSync(file, 'utf8');
    writeFileSync(file, text.replace(relativeTypeScript, '$1$2$3.js$2'));
  }
}

/** A specifier that points nowhere breaks only whoever installs the package; so it is looked for here. */
function checkSpecifiers() {
  for (const file of [...filesUnder(dist, '.js'), ...filesUnder(dist, '.d.ts')]) {
    const [left] = readFileSync(file, 'utf8').match(relativeTypeScript) ?? [];
    if (left) throw new Error(`${relative(root, file)} still imports TypeScript: ${left}`);
  }
}

function makeBinExecutable() {
  if (!existsSync(bin)) throw new Error('src/cli/main.ts is missing: package.json names it as the bin');
  if (!readFileSync(bin, 'utf8').startsWith('#!/usr/bin/env node\n')) {
    throw new Error(
      'src/cli/main.ts must begin with "#!/usr/bin/env node": without it the bin cannot be started',
    );
  }
  chmodSync(bin, 0o755);
}

async function bundleWorkflows() {
  const { code } = await bundleWorkflowCode({
    workflowsPath: join(dist, 'workflows/index.js'),
    logger: new DefaultLogger('WARN'),
  });
  writeFileSync(join(dist, 'workflow-bundle.js'), code);
}

function filesUnder(folder, ending) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(ending))
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name));
}

compile();
rewriteDeclarations();
checkSpecifiers();
makeBinExecutable();
await bundleWorkflows();
