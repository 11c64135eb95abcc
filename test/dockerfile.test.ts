// The Dockerfile: what it copies is enough to run and is let in, and what runs is not root.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { copiedFiles, parseDockerfile, readCompose } from './support/compose.ts';

const root = fileURLToPath(new URL('../', import.meta.url));
const read = (file: string): string => readFileSync(join(root, file), 'utf8');
const packageJson = JSON.parse(read('package.json'));
const dockerfile = parseDockerfile(read('Dockerfile'));
const finalStage = dockerfile.slice(dockerfile.findLastIndex(({ name }) => name === 'FROM'));
const compose = readCompose(read('docker-compose.yml'));
const copied = copiedFiles(dockerfile);

test('the image builds on a Debian Node that runs TypeScript by itself, in two stages', () => {
  const [first, ...rest] = dockerfile;
  assert.match(first?.rest ?? '', /^NODE_IMAGE=node:(?:2[4-9]|[3-9]\d)\S*-(?:bookworm|trixie)-slim$/);
  const froms = rest.filter(({ name }) => name === 'FROM').map((instruction) => instruction.rest);
  assert.deepEqual(froms, ['${NODE_IMAGE} AS build', '${NODE_IMAGE}']);
});

test('the image runs as a user that is not root, and says how it is', () => {
  const users = finalStage.filter(({ name }) => name === 'USER').map(({ rest }) => rest);
  assert.deepEqual(users, ['1000:1000']);
  const health = finalStage.find(({ name }) => name === 'HEALTHCHECK');
  assert.ok(health?.rest.endsWith('["node", "/app/deploy/api-health.mjs"]'), health?.rest);
  const entry = finalStage.find(({ name }) => name === 'ENTRYPOINT');
  const main = posix.join('/app', packageJson.bin.countersign);
  assert.deepEqual(JSON.parse(entry?.rest ?? ''), ['node', main]);
});

test('the image copies files that are there, that .dockerignore lets in, and that its health checks need', () => {
  const allowed = read('.dockerignore')
    .split('\n')
    .filter((line) => line.startsWith('!'))
    .map((line) => line.slice(1));
  for (const file of copied) {
    assert.ok(existsSync(join(root, file)), `${file} is not there`);
    assert.ok(
      allowed.some((entry) => matches(file, entry)),
      `.dockerignore keeps ${file} out`,
    );
  }
  for (const entry of allowed) {
    const used = copied.some((file) => matches(file, entry));
    assert.ok(used, `.dockerignore lets ${entry} in, which nothing copies`);
  }
  const files = Object.values(compose.services)
    .flatMap(({ healthcheck }) => healthcheck?.test ?? [])
    .filter((word) => word.startsWith('/app/'));
  assert.equal(files.length, 2);
  for (const file of files)
    assert.ok(copied.includes(file.slice('/app/'.length)), `${file} is not in the image`);
});

test('the image keeps every package that the program imports when it drops those for development', () => {
  const kept = new Set([...Object.keys(packageJson.dependencies), packageJson.name]);
  // asked for only where Node does not run TypeScript by itself
  kept.add('tsx');
  const files = [
    ...readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .map((file) => join('src', file)),
    ...copied.filter((file) => /^(?:deploy|examples)\/.*\.m?[jt]s$/.test(file)),
  ];
  assert.ok(files.length > 80);
  for (const file of files) {
    const imports = read(file).matchAll(
      /^(?:import|export)\b[^;]*?\bfrom '([^'.][^']*)'|\bimport\('([^'.][^']*)'\)/gm,
    );
    for (const [, fixed, dynamic] of imports) {
      const specifier = fixed ?? dynamic ?? '';
      if (specifier.startsWith('node:')) continue;
      const name = specifier
        .split('/')
        .slice(0, specifier.startsWith('@') ? 2 : 1)
        .join('/');
      assert.ok(kept.has(name), `${file} imports ${name}, which is not a dependency`);
    }
  }
});

test('the image holds the whole example, so that it starts with nothing but itself', () => {
  for (const file of copied.filter((name) => /^examples\/.*\.ts$/.test(name))) {
    for (const [, specifier = ''] of read(file).matchAll(/\bfrom '(\.[^']+)'/g)) {
      const target = posix.join(dirname(file), specifier);
      assert.ok(copied.includes(target), `${file} imports ${target}, which is not copied`);
    }
  }
});

function matches(file: string, pattern: string): boolean {
  if (file === pattern || file.startsWith(`${pattern}/`)) return true;
  const parts = pattern.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('[^/]*')}$`).test(file);
}
