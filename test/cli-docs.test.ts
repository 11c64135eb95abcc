// docs/cli.md and the completion are made from the commands: neither may lag behind them.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { cliDocs } from '../scripts/cli-docs.ts';
import { runCommand } from './support/fake-terminal.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

const folder = temporaryFolder();

test('docs/cli.md is what scripts/cli-docs.ts makes of the commands', async () => {
  const text = readFileSync(new URL('../docs/cli.md', import.meta.url), 'utf8');
  assert.ok(text === (await cliDocs()), 'run: node --import tsx scripts/cli-docs.ts');
});

test('docs/cli.md has every command that the issues name', async () => {
  const headings = [...(await cliDocs()).matchAll(/^## countersign (.*)$/gm)].map(([, name]) => name);
  assert.deepEqual(headings, [
    ...['dev', 'worker', 'api', 'run', 'runs list', 'runs show', 'runs cancel', 'trail'],
    ...['approvals list', 'approvals show', 'approvals watch', 'decisions export'],
    ...['approve', 'reject', 'edit', 'respond', 'amend', 'withdraw', 'comment'],
    ...['tokens list', 'tokens create', 'tokens revoke', 'keys list', 'keys rotate', 'keys remove'],
    ...['doctor', 'config print', 'completion'],
  ]);
});

/** What bash offers for the last of the words. */
async function complete(...words: string[]): Promise<string[]> {
  const { stdout } = await runCommand(['completion', 'bash']);
  const file = join(folder, 'completion.bash');
  writeFileSync(file, stdout);
  const ask = `source ${file}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _countersign; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const args = ['--norc', '-c', ask, 'bash', 'countersign', ...words];
  const bash = spawnSync('bash', args, { encoding: 'utf8', cwd: folder });
  assert.equal(bash.stderr, '');
  return bash.stdout.split('\n').filter((line) => line !== '');
}

test('bash completes commands, commands of commands, options and files', async () => {
  assert.deepEqual(await complete('ap'), ['api', 'approvals', 'approve']);
  assert.deepEqual(await complete('runs', ''), ['list', 'show', 'cancel', '--help']);
  assert.deepEqual(await complete('runs', 'list', '--st'), ['--status']);
  assert.deepEqual(await complete('approve', 'some-key', '--h'), ['--hash', '--help']);
  assert.deepEqual(await complete('run', 'refund', '--input', 'compl'), ['completion.bash']);
});

test('a shell without a completion is refused by name', async () => {
  const { exitCode, stdout, stderr } = await runCommand(['completion', 'tcsh']);
  assert.deepEqual([exitCode, stdout], [64, '']);
  assert.match(stderr, /bash, zsh, not for "tcsh"/);
});
