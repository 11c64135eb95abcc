// The folder of specs: read in full at start, again on every change, and asked from memory.
import assert from 'node:assert/strict';
import { mkdirSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { z } from 'zod';
import { formatSpecProblem } from '../src/core/spec/load.ts';
import { openSpecRegistry, type SpecRegistry } from '../src/spec-registry.ts';
import type { Tool } from '../src/tool.ts';
import { eventually } from './support/eventually.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

const tools: Tool[] = [
  {
    name: 'orders.note',
    arguments: z.strictObject({ text: z.string() }),
    idempotency: 'key',
    run: async () => null,
  },
];

function specText(name: string, title = 'Go on?'): string {
  return `version: 1\nname: ${name}\nsteps:\n  - { id: ask, approval: { title: "${title}" } }\n`;
}

interface Opened {
  registry: SpecRegistry;
  logged: string[];
  write(file: string, text: string | Uint8Array): void;
  folder: string;
}

async function open(
  context: TestContext,
  files: Record<string, string | Uint8Array>,
  // An hour: a test that does not wait for the poll does not depend on it.
  pollMs = 3_600_000,
): Promise<Opened> {
  const folder = temporaryFolder();
  // At once, as editors do: a half-written file would be one more change.
  const write = (file: string, text: string | Uint8Array) => {
    writeFileSync(join(folder, '.new'), text);
    renameSync(join(folder, '.new'), join(folder, file));
  };
  for (const [file, text] of Object.entries(files)) write(file, text);
  const logged: string[] = [];
  const registry = await openSpecRegistry({ folder, tools, log: (message) => logged.push(message), pollMs });
  context.after(() => registry.close());
  return { registry, logged, write, folder };
}

const problemsOf = (registry: SpecRegistry) => registry.problems().map(formatSpecProblem);

test('a folder is read in full at start: .yaml and .yml, nothing hidden and nothing else', async (context) => {
  const { registry, logged } = await open(context, {
    'a.yaml': specText('a'),
    'b.yml': specText('b'),
    '.hidden.yaml': 'not: [valid',
    'notes.txt': 'not: [valid',
  });
  assert.deepEqual(registry.names(), ['a', 'b']);
  assert.deepEqual(registry.problems(), []);
  assert.equal(registry.get('a')?.spec.name, 'a');
  assert.match(registry.get('a')?.hash ?? '', /^sha256:/);
  assert.equal(registry.get('c'), undefined);
  assert.equal(registry.get('__proto__'), undefined);
  assert.deepEqual(logged, []);
});

test('problems of all files are told at start, and the good files are there', async (context) => {
  const { registry } = await open(context, {
    'bad.yaml': 'version: 1\nname: bad\nsteps:\n  - { id: ask, aproval: 1 }\n',
    'broken.yaml': 'a: [',
    'good.yaml': specText('good'),
    'large.yaml': `# ${'x'.repeat(256 * 1024)}`,
    'latin1.yaml': Uint8Array.of(0x61, 0x3a, 0x20, 0xe9),
  });
  assert.deepEqual(problemsOf(registry), [
    'bad.yaml:4:5 error step "ask": a step needs one of the keys tool, approval',
    'bad.yaml:4:16 error step "ask": unknown key "aproval"; a step has id, tool, with, before, approval',
    'broken.yaml:1:5 error not valid YAML: flow sequence in block collection must be sufficiently indented and end with a ]',
    'large.yaml:1:1 error the spec has 262146 bytes, the limit is 262144; split it',
    'latin1.yaml:1:1 error the file cannot be read: it is not UTF-8 text',
  ]);
  assert.deepEqual(registry.names(), ['good']);
});

test('a folder that is not there is a problem, and is read once it is there', async (context) => {
  const folder = join(temporaryFolder(), 'specs');
  const registry = await openSpecRegistry({ folder, tools, log: () => undefined, pollMs: 20 });
  context.after(() => registry.close());
  assert.deepEqual(problemsOf(registry), [
    `${folder}:1:1 error the folder of the specs cannot be read: it does not exist`,
  ]);
  mkdirSync(folder);
  writeFileSync(join(folder, 'a.yaml'), specText('a'));
  await eventually(() => registry.get('a'), { message: 'the spec of the new folder' });
  assert.deepEqual(registry.problems(), []);
});

test('one name in two files: a problem of both, and neither counts', async (context) => {
  const { registry, folder } = await open(context, {
    'a.yaml': specText('same'),
    'b.yaml': specText('same'),
    'c.yaml': specText('c'),
  });
  assert.deepEqual(problemsOf(registry), [
    'a.yaml:2:7 error name: "same" is also the name of the spec in b.yaml; each spec has its own',
    'b.yaml:2:7 error name: "same" is also the name of the spec in a.yaml; each spec has its own',
  ]);
  assert.deepEqual(registry.names(), ['c']);
  assert.match(registry.problemOf('same') ?? '', /^a\.yaml:2:7 error .* \(and 1 more\)$/);
  rmSync(join(folder, 'b.yaml'));
  await registry.refresh();
  assert.deepEqual(registry.names(), ['c', 'same']);
});

test('a changed file has another hash; restored, it has the first one again', async (context) => {
  const { registry, write, logged } = await open(context, { 'a.yaml': specText('a') });
  const first = registry.get('a')?.hash;
  write('a.yaml', specText('a', 'Really?'));
  await registry.refresh();
  assert.notEqual(registry.get('a')?.hash, first);
  write('a.yaml', `# restored\n${specText('a')}`);
  await registry.refresh();
  assert.equal(registry.get('a')?.hash, first);
  assert.deepEqual(logged, ['spec "a" changed', 'spec "a" changed']);
});

test('a file that goes bad later is told once, and its spec is gone until it is restored', async (context) => {
  const { registry, write, logged } = await open(context, {
    'a.yaml': specText('a'),
    'b.yaml': specText('b'),
  });
  const first = registry.get('a')?.hash;
  write('a.yaml', 'version: 1\nname: a\nsteps: []\n');
  await registry.refresh();
  await registry.refresh();
  assert.equal(registry.get('a'), undefined);
  assert.deepEqual(registry.names(), ['b']);
  assert.equal(registry.problemOf('a'), 'a.yaml:3:8 error steps: must not be empty');
  assert.equal(registry.problemOf('b'), undefined);
  assert.equal(registry.problemOf('unknown'), undefined);
  assert.deepEqual(logged, [
    'spec problem, its starts are refused: a.yaml:3:8 error steps: must not be empty',
    'spec "a" is gone',
  ]);
  write('a.yaml', specText('a'));
  await registry.refresh();
  assert.equal(registry.get('a')?.hash, first);
  assert.equal(registry.problemOf('a'), undefined);
  assert.deepEqual(logged.slice(2), ['spec "a" is there']);
});

test('a file that is deleted or renamed takes its spec along', async (context) => {
  const { registry, folder } = await open(context, { 'a.yaml': specText('a'), 'b.yaml': specText('b') });
  rmSync(join(folder, 'a.yaml'));
  renameSync(join(folder, 'b.yaml'), join(folder, 'renamed.yaml'));
  await registry.refresh();
  assert.deepEqual(registry.names(), ['b']);
  assert.equal(registry.problemOf('a'), undefined);
});

test('a change is seen by itself, by file events', async (context) => {
  const { registry, write } = await open(context, { 'a.yaml': specText('a') });
  const first = registry.get('a')?.hash;
  write('a.yaml', specText('a', 'Really?'));
  await eventually(() => registry.get('a')?.hash !== first, { message: 'the change of a.yaml' });
});

test('a change is seen by the poll alone, even with the same size and time', async (context) => {
  const folder = join(temporaryFolder(), 'later');
  // Made after the start, so there is nothing to send events.
  const registry = await openSpecRegistry({ folder, tools, log: () => undefined, pollMs: 20 });
  context.after(() => registry.close());
  mkdirSync(folder);
  const write = (title: string) => {
    writeFileSync(join(folder, 'a.yaml'), specText('a', title));
    utimesSync(join(folder, 'a.yaml'), 1000, 1000);
  };
  write('one');
  const first = (await eventually(() => registry.get('a'))).hash;
  write('two');
  await eventually(() => registry.get('a')?.hash !== first, { message: 'the change of a.yaml' });
});

test('refreshes asked for at once each see what was written before they were asked for', async (context) => {
  const { registry, write } = await open(context, { 'a.yaml': specText('a') });
  for (let round = 0; round < 20; round += 1) {
    const earlier = registry.refresh();
    write('a.yaml', specText('a', `round ${round}`));
    await registry.refresh();
    const step = registry.get('a')?.spec.steps[0];
    assert.deepEqual(step, { id: 'ask', approval: { title: `round ${round}` } });
    await earlier;
  }
});

test('a closed registry keeps what it had, and lets the process end', async (context) => {
  const { registry, write } = await open(context, { 'a.yaml': specText('a') }, 20);
  registry.close();
  write('a.yaml', specText('b'));
  await registry.refresh();
  assert.deepEqual(registry.names(), ['a']);
});
