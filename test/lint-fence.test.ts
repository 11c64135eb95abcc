// The fences of DESIGN §3 are only as good as the lint rules that hold them: each planted violation must be
// reported, and clean code must not be.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { ESLint } from 'eslint';

const root = fileURLToPath(new URL('../', import.meta.url));
const eslint = new ESLint({ cwd: root });

/** The rules that a text breaks when it stands in that file. The file must exist: typed rules need it. */
async function broken(file: string, text: string): Promise<string[]> {
  const [result] = await eslint.lintText(text, { filePath: join(root, file) });
  assert.ok(result);
  return result.messages.map(({ ruleId, message }) => ruleId ?? message);
}

const workflow = 'src/workflows/index.ts';
const safe = 'src/core/names.ts';
const core = 'src/core/hash.ts';
const node = 'src/client.ts';
const fence = 'countersign/fence';
const syntax = 'no-restricted-syntax';

const activity = `import { proxyActivities } from '@temporalio/workflow';
const { pay } = proxyActivities<{ pay(): Promise<void> }>({ startToCloseTimeout: '1m' });
`;

const planted: [what: string, file: string, text: string, rule: string][] = [
  [
    'a floating activity call',
    workflow,
    `${activity}export async function run(): Promise<void> { pay(); await pay(); }`,
    '@typescript-eslint/no-floating-promises',
  ],
  ['a library in a workflow', workflow, `export { z } from 'zod';`, fence],
  ['a node module in a workflow', workflow, `export { createHash } from 'node:crypto';`, fence],
  ['an unsafe core file in a workflow', workflow, `export { sha256 } from '../core/hash.ts';`, fence],
  [
    'an activity in a workflow',
    workflow,
    `export { createActivities } from '../activities/index.ts';`,
    fence,
  ],
  [
    'a path that winds to an unsafe file',
    workflow,
    `export { sha256 } from './../workflows/../core/hash.ts';`,
    fence,
  ],
  ['a type alone, in a workflow', workflow, `export type { Tool } from '../tool.ts';`, fence],
  ['a type by import()', workflow, `export type T = import('../tool.ts').Tool;`, fence],
  ['a late import in a workflow', workflow, `export const late = import('../client.ts');`, fence],
  ['a library in the sandbox door', 'src/workflow.ts', `export { z } from 'zod';`, fence],
  [
    'an activity in a workflow of the tests',
    'test/support/workflows/own.ts',
    `export { z } from 'zod';`,
    fence,
  ],
  [
    'a host global in a workflow',
    workflow,
    `export const bytes = Buffer.from('a');`,
    'no-restricted-globals',
  ],
  [
    'an order that follows the host',
    workflow,
    `export const order = (a: string, b: string): number => a.localeCompare(b);`,
    'no-restricted-properties',
  ],
  ['a library in a sandbox-safe core file', safe, `export { z } from 'zod';`, fence],
  ['Temporal in a sandbox-safe core file', safe, `export { sleep } from '@temporalio/workflow';`, fence],
  ['an unsafe core file in a sandbox-safe one', safe, `export { sha256 } from './hash.ts';`, fence],
  ['the client in core', core, `export type { CountersignClient } from '../client.ts';`, fence],
  ['Temporal in core', core, `export { Client } from '@temporalio/client';`, fence],
  [
    'local activities in a workflow',
    workflow,
    `import { proxyLocalActivities } from '@temporalio/workflow';
export const activities = proxyLocalActivities({ startToCloseTimeout: '1s' });`,
    syntax,
  ],
  [
    'local activities under another name',
    workflow,
    `import { proxyLocalActivities as local } from '@temporalio/workflow';
export const activities = local({ startToCloseTimeout: '1s' });`,
    syntax,
  ],
  [
    'local activities in a namespace',
    workflow,
    `import * as all from '@temporalio/workflow';
export const activities = all['proxyLocalActivities']({ startToCloseTimeout: '1s' });`,
    syntax,
  ],
  ['a default export', node, `export default 1;`, syntax],
  ['an export of everything', node, `export * from './tool.ts';`, syntax],
  ['an enum', node, `export enum Colour { Red }`, syntax],
  ['talk on the console', node, `console.log('hello');`, 'no-console'],
];

for (const [what, file, text, rule] of planted) {
  test(`lint reports ${what}`, async () => {
    const rules = await broken(file, text);
    assert.ok(rules.includes(rule), `expected ${rule}, got ${rules.join(', ') || 'nothing'}`);
  });
}

const clean: [what: string, file: string, text: string][] = [
  [
    'an awaited activity call in a workflow',
    workflow,
    `${activity}export async function run(): Promise<void> { await pay(); }`,
  ],
  ['a sandbox-safe core file in a workflow', workflow, `export { signalNames } from '../core/names.ts';`],
  ['a library in an ordinary core file', core, `export { z } from 'zod';`],
  [
    'local activities in record.ts',
    'src/workflows/record.ts',
    `import { proxyLocalActivities } from '@temporalio/workflow';
export const activities = proxyLocalActivities({ startToCloseTimeout: '1s' });`,
  ],
  ['talk in the CLI', 'src/cli/main.ts', `console.log('hello');`],
];

for (const [what, file, text] of clean) {
  test(`lint lets ${what} pass`, async () => {
    assert.deepEqual(await broken(file, text), []);
  });
}

/** Whether lint lets workflow code import that core file and holds it to the same fence. */
async function sandboxSafeForLint(file: string): Promise<boolean> {
  const config = (await eslint.calculateConfigForFile(join(root, file))) as {
    rules: { 'countersign/fence': [number, { packages: string[] }] };
  };
  return config.rules['countersign/fence'][1].packages.length === 0;
}

test('a core file is sandbox-safe for lint exactly when its first line says so', async () => {
  const files = readdirSync(join(root, 'src/core'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => `src/core/${name}`);
  const saying = files.filter((name) => readFileSync(join(root, name), 'utf8').startsWith('// Sandbox-safe'));
  const linted: string[] = [];
  for (const file of files) if (await sandboxSafeForLint(file)) linted.push(file);
  assert.deepEqual(linted.sort(), saying.sort());
  assert.ok(saying.length > 0);
});
