// Tokens and keys: these commands read and change the secrets file and nothing else. They speak to no server;
// running processes see the change by themselves. Their code is loaded when they are called.
import { InvalidArgumentError, type Command } from 'commander';
import { scopes, type Scope } from '../../scopes.ts';
import { tokenKinds } from '../../tokens.ts';
import type { KeyOptions } from '../edit-keys.ts';
import type { FileOptions, TokenOptions } from '../edit-tokens.ts';
import { exitCodes } from '../exit-codes.ts';
import type { Terminal } from '../terminal.ts';
import { duration, withJson, type CommandContext } from './parts.ts';

export function addSecretCommands(program: Command, context: CommandContext): void {
  addTokenCommands(program, context);
  addKeyCommands(program, context);
}

function addTokenCommands(program: Command, context: CommandContext): void {
  const tokens = program.command('tokens').description('list, make and revoke API tokens');
  const load = () => import('../edit-tokens.ts');

  withFile(tokens.command('list'))
    .description('whose tokens there are, what for, and until when')
    .action(act(context, async (on, options: FileOptions) => (await load()).listTokens(on, options)));

  withFile(tokens.command('create'))
    .description('make a token and print it, this once')
    .requiredOption(
      '--id <id>',
      'whom it stands for in decisions and trails; a second one of an id is fine',
      id,
    )
    .option('--name <name>', 'for people; default: the id')
    .option('--role <role>', 'a role; may be repeated', collect(String))
    .option(
      '--scope <scope>',
      `${scopes.join(', ')}; may be repeated. Default: start, read, decide`,
      collect(scope),
    )
    .option('--kind <kind>', `${tokenKinds.join(' or ')}; default: person`, oneOf(tokenKinds))
    .option('--expires <duration>', 'how long it is valid; default: until it is revoked', duration)
    .action(act(context, async (on, options: TokenOptions) => (await load()).createToken(on, options)));

  withFile(tokens.command('revoke').argument('<id>', 'whose token'))
    .description('take a token out: within a second no API process takes it any more')
    .option('--hash <hash>', 'which of several, by its hash in `tokens list`', hash)
    .option('--all', 'every one of them')
    .action(
      act(context, async (on, whose: string, options: FileOptions & { hash?: string; all?: boolean }) =>
        (await load()).revokeToken(on, whose, options),
      ),
    );
}

function addKeyCommands(program: Command, context: CommandContext): void {
  const keys = program.command('keys').description('list, rotate and remove the keys of this deployment');
  const load = () => import('../edit-keys.ts');

  withFile(keys.command('list'))
    .description('the keys that sign decisions and make grants, without what is secret of them')
    .action(act(context, async (on, options: FileOptions) => (await load()).listKeys(on, options)));

  withUse(withFile(keys.command('rotate')))
    .description('make a new key; the ones before it go on verifying')
    .option(
      '--in <duration>',
      'from when it is used, so that every process knows it by then; default: 2m',
      duration,
    )
    .option('--now', 'use it at once: where all processes read this very file')
    .action(act(context, async (on, options: KeyOptions) => (await load()).rotateKeys(on, options)));

  withUse(withFile(keys.command('remove').argument('<kid>', 'id of the key')))
    .description('take an old key out: what was made with it holds no more, at once')
    .action(
      act(context, async (on, kid: string, options: KeyOptions) => (await load()).dropKey(on, kid, options)),
    );
}

function withFile(command: Command): Command {
  return withJson(command).option(
    '--file <file>',
    'the secrets file; default: COUNTERSIGN_SECRETS_FILE, else secrets.json in the data dir',
  );
}

function withUse(command: Command): Command {
  return command
    .option('--signing', 'of the keys that sign decisions')
    .option('--grant', 'of the keys that make grants');
}

function act<Arguments extends unknown[]>(
  { terminal, exit }: CommandContext,
  work: (terminal: Terminal, ...args: Arguments) => Promise<void>,
) {
  return async (...args: Arguments): Promise<void> => {
    await work(terminal, ...args);
    exit(exitCodes.ok);
  };
}

function id(text: string): string {
  if (text.startsWith('hook:'))
    throw new InvalidArgumentError('Ids that begin with hook: are those of webhooks.');
  if (/^\S[^\p{Cc}\p{Cf}]{0,199}$/u.test(text)) return text;
  throw new InvalidArgumentError('It must be 1 to 200 characters, without control characters.');
}

function hash(text: string): string {
  if (/^[0-9a-f]{8,64}$/.test(text)) return text;
  throw new InvalidArgumentError('It must be at least 8 hex characters, as `tokens list` shows them.');
}

function scope(text: string): Scope {
  return oneOf(scopes)(text);
}

function oneOf<Value extends string>(known: readonly Value[]) {
  return (text: string): Value => {
    const value = known.find((one) => one === text);
    if (value === undefined) throw new InvalidArgumentError(`It must be one of ${known.join(', ')}.`);
    return value;
  };
}

function collect<Value>(read: (text: string) => Value) {
  return (text: string, before: Value[] = []): Value[] => [...before, read(text)];
}
