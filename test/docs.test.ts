// The documents say what is there: the tests that they name, the links, the variables, the snippets.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { z } from 'zod';
import { parseSpec } from '../src/core/spec/load.ts';

const root = fileURLToPath(new URL('../', import.meta.url));
const documents = [
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  ...readdirSync(join(root, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8');
}

function filesUnder(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(folder, name));
}

function blocks(text: string, language: string): string[] {
  return [...text.matchAll(new RegExp(`^( *)\`\`\`${language}\\n([^]*?)^\\1\`\`\``, 'gm'))].map(
    ([, , code = '']) => code,
  );
}

/** Text without its code blocks, in which nothing is a link. */
function prose(text: string): string {
  return text.replace(/^( *)```[^]*?^\1```/gm, '');
}

/** Every test of a file, as a pattern: what a template fills in may be anything, or left out with its brackets. */
function testNames(file: string): RegExp[] {
  const calls = read(file).matchAll(/\b(?:test|it)\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/g);
  return [...calls].map(([, , name = '']) => {
    const pieces = name.split(/ ?\(?\$\{[^}]*\}\)?/).map((piece) => piece.replace(/\\(['"`])/g, '$1'));
    return new RegExp(`^${pieces.map((piece) => piece.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('.*')}$`);
  });
}

test('every test that a document names is there, in the file that it names', () => {
  for (const document of ['README.md', 'docs/guarantees.md']) {
    // [file](test/file.test.ts) "name", "another name"
    const mentions = [
      ...read(document).matchAll(/\]\([./]*(test\/[\w.-]+\.test\.ts)\)((?:[\s,]*"[^"\n]+")*)/g),
    ];
    assert.ok(mentions.length >= 5, `${document} names its tests`);
    for (const [, file = '', quoted = ''] of mentions) {
      const names = [...quoted.matchAll(/"([^"]+)"/g)].map(([, name = '']) => name);
      assert.notEqual(names.length, 0, `${document}: ${file} is linked without the name of a test`);
      assert.ok(existsSync(join(root, file)), `${document} names ${file}, which is not there`);
      const patterns = testNames(file);
      for (const name of names) {
        assert.ok(
          patterns.some((pattern) => pattern.test(name)),
          `${document}: ${file} has no test "${name}"`,
        );
      }
    }
  }
});

test('docs/guarantees.md shows every promise that is kept so far by a test', () => {
  const rows = read('docs/guarantees.md')
    .split('\n')
    .filter((line) => line.startsWith('| P'));
  for (const promise of ['P1', 'P2', 'P3', 'P4', 'P6', 'P8', 'P9', 'P11']) {
    const own = rows.filter((row) => row.startsWith(`| ${promise} `));
    assert.notEqual(own.length, 0, `no row for ${promise}`);
    for (const row of own) assert.match(row, /\.test\.ts\)\s+"/, `a row without a test: ${row}`);
  }
});

test('every relative link in a document leads somewhere', () => {
  let links = 0;
  for (const document of documents) {
    for (const [, target = ''] of prose(read(document)).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      links += 1;
      const [path = '', anchor] = target.split('#');
      const file = path === '' ? document : join(dirname(document), path);
      assert.ok(existsSync(join(root, file)), `${document} links to ${target}, which is not there`);
      if (anchor === undefined) continue;
      assert.ok(anchors(read(file)).includes(anchor), `${document} links to ${target}: no such heading`);
    }
  }
  assert.ok(links >= 20, 'links were looked at');
});

/** Headings as GitHub makes anchors of them. */
function anchors(text: string): string[] {
  return [...prose(text).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

test('README.md has every variable that the code reads, and no other', () => {
  const inCode = new Set(
    filesUnder('src').flatMap((file) => [...read(file).matchAll(/\bCOUNTERSIGN_[A-Z_]+\b/g)].map(String)),
  );
  const inTable = [...read('README.md').matchAll(/^\| `(COUNTERSIGN_[A-Z_]+)`/gm)].map(([, name]) => name);
  assert.deepEqual(inTable.sort(), [...inCode].sort());
});

test('README.md has every field of the config file', () => {
  const schema = /strictObject\(\{([^]*?)\n {2}\}\)/.exec(read('src/config-file.ts'))?.[1] ?? '';
  const fields = [...schema.matchAll(/^ {4}(\w+): z/gm)].map(([, name]) => name);
  const inTable = [...read('README.md').matchAll(/^\| `([a-z]\w*)` +\|/gm)].map(([, name]) => name);
  assert.ok(fields.length >= 5, 'the schema was found');
  assert.deepEqual(inTable.sort(), fields.sort());
});

test('the YAML in README.md is a spec that can be started', () => {
  const [spec = '', ...others] = blocks(read('README.md'), 'yaml');
  assert.equal(others.length, 0);
  const amounts = z.strictObject({
    order: z.string(),
    amount: z.string(),
    currency: z.string().default('EUR'),
  });
  const tool = {
    name: 'payments.refund',
    arguments: amounts,
    idempotency: 'key',
    requiresApproval: true,
  } as const;
  const parsed = parseSpec(spec, { file: 'README.md', tools: [tool] });
  assert.deepEqual('problems' in parsed ? parsed.problems : [], []);
});

test('the TypeScript in README.md compiles against the package', () => {
  const snippets = new Map(
    blocks(read('README.md'), 'ts').map((code) => {
      const name = /^\/\/ ([\w.-]+\.ts)\n/.exec(code)?.[1];
      assert.ok(name !== undefined, 'a snippet begins with the name of its file');
      return [join(root, 'test', 'readme', name), code];
    }),
  );
  assert.deepEqual([...snippets.keys()].map((file) => file.split('/').at(-1)).sort(), [
    'countersign.config.ts',
    'tools.ts',
    'workflows.ts',
  ]);
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile) as { config: unknown };
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
  const host = ts.createCompilerHost(options);
  const { fileExists, readFile, getSourceFile } = host;
  host.fileExists = (file) => snippets.has(file) || fileExists(file);
  host.readFile = (file) => snippets.get(file) ?? readFile(file);
  host.getSourceFile = (file, version, ...rest) => {
    const code = snippets.get(file);
    return code === undefined
      ? getSourceFile(file, version, ...rest)
      : ts.createSourceFile(file, code, version, true);
  };
  // a test's timeout must not depend on how long all of src takes: only the snippets are checked
  const program = ts.createProgram([...snippets.keys()], options, host);
  const problems = [...snippets.keys()].flatMap((file) => {
    const source = program.getSourceFile(file);
    assert.ok(source !== undefined);
    return [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)];
  });
  assert.deepEqual(
    problems.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n')),
    [],
  );
});

test('docs/architecture.md stays short enough to be read, and names files that are there', () => {
  const text = read('docs/architecture.md');
  assert.ok(Buffer.byteLength(text) <= 6 * 1024, `${Buffer.byteLength(text)} bytes, the limit is 6 KiB`);
  const names = [...text.matchAll(/`((?:src|test|docs)\/[\w./-]+)`/g)].map(([, name = '']) => name);
  assert.ok(names.length >= 10, 'files were looked at');
  for (const name of names) assert.ok(existsSync(join(root, name)), `${name} is not there`);
});

test('docs/decisions.md gives a reason for every dependency', () => {
  const { dependencies } = JSON.parse(read('package.json')) as { dependencies: Record<string, string> };
  const [, section = ''] = read('docs/decisions.md').split('\n## Dependencies\n');
  for (const name of Object.keys(dependencies)) {
    const short = name.replace('@temporalio/', '');
    assert.ok(section.includes(`\`${name}\``) || section.includes(`\`${short}\``), `${name} has no reason`);
  }
});
