// The documents say what is there: the tests that they name, the links, the variables, the snippets.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { refund } from '../examples/three-doors/tools.ts';
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
    const pieces = name.split(/,? ?\(?\$\{[^}]*\}\)?/).map((piece) => piece.replace(/\\(['"`])/g, '$1'));
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
    const problems = mentions.flatMap(([, file = '', quoted = '']) => {
      if (!existsSync(join(root, file))) return [`${file} is not there`];
      const names = [...quoted.matchAll(/"([^"]+)"/g)].map(([, name = '']) => name);
      if (names.length === 0) return [`${file} is linked without the name of a test`];
      const patterns = testNames(file);
      return names
        .filter((name) => !patterns.some((pattern) => pattern.test(name)))
        .map((name) => `${file} has no test "${name}"`);
    });
    assert.deepEqual(problems, [], document);
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

test('the snippets in README.md are the files of examples/three-doors, which lint and types check', () => {
  const text = read('README.md');
  const snippets = [...blocks(text, 'ts'), ...blocks(text, 'yaml')].map((code) => {
    const name = /^(?:\/\/|#) ([\w./-]+):/.exec(code)?.[1];
    assert.ok(name !== undefined, 'a snippet begins with the name of its file');
    return [name, code];
  });
  const files = readdirSync(join(root, 'examples/three-doors'), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.\w+$/.test(name))
    .map((name) => [name, read(`examples/three-doors/${name}`)]);
  assert.equal(files.length, 4);
  assert.deepEqual(new Map(snippets as [string, string][]), new Map(files as [string, string][]));
});

test('the spec in README.md can be started with the tool in README.md', () => {
  const spec = read('examples/three-doors/specs/refund.yaml');
  const parsed = parseSpec(spec, { file: 'refund.yaml', tools: [refund] });
  assert.deepEqual('problems' in parsed ? parsed.problems : [], []);
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
