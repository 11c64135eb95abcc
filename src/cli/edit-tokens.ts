// `countersign tokens`: what is in the secrets file, and changes of it. A plain token goes to stdout once, when it
// is made; nothing keeps it.
import { secretsFileOf } from '../config.ts';
import type { Scope } from '../scopes.ts';
import { revokeTokens, tokenRow, type TokenRow } from '../secret-tokens.ts';
import { editSecretsFile } from '../secrets-edit.ts';
import { readSecretsFile, SecretsError } from '../secrets-file.ts';
import { makeTokenIn } from '../secrets.ts';
import type { TokenKind } from '../tokens.ts';
import { CliProblem, exitCodes } from './exit-codes.ts';
import { printJson, printTable, type Column } from './show.ts';
import type { Terminal } from './terminal.ts';

export interface FileOptions {
  json?: boolean;
  file?: string;
}

export interface TokenOptions extends FileOptions {
  id: string;
  name?: string;
  role?: string[];
  scope?: Scope[];
  kind?: TokenKind;
  /** in milliseconds */
  expires?: number;
}

/** With the path of the secrets file; what is wrong with it is a problem of the command. */
export async function onSecrets<Result>(
  { env }: Terminal,
  { file }: FileOptions,
  work: (path: string) => Result | Promise<Result>,
): Promise<Result> {
  try {
    return await work(file ?? secretsFileOf(env));
  } catch (error) {
    if (!(error instanceof SecretsError)) throw error;
    throw new CliProblem(exitCodes.invalid, error.message, { code: 'secrets' });
  }
}

const columns: readonly Column<TokenRow>[] = [
  { title: 'id', of: ({ id }) => id },
  { title: 'hash', of: ({ hash }) => hash },
  { title: 'name', of: ({ name }) => name },
  { title: 'kind', of: ({ kind }) => kind },
  { title: 'roles', of: ({ roles }) => roles.join(' ') },
  { title: 'scopes', of: ({ scopes }) => scopes.join(' ') },
  { title: 'created', of: ({ createdAt }) => createdAt },
  { title: 'expires', of: ({ expiresAt = '', expired }) => expiresAt + (expired ? ' (expired)' : '') },
];

export async function listTokens(terminal: Terminal, options: FileOptions): Promise<void> {
  const { tokens } = await onSecrets(terminal, options, readSecretsFile);
  const rows = tokens.map((token) => tokenRow(token, terminal.now()));
  if (options.json === true) printJson(terminal, { tokens: rows });
  else printTable(terminal, rows, columns);
}

export async function createToken(terminal: Terminal, options: TokenOptions): Promise<void> {
  const { json, id, name = id, role = [], kind, scope, expires } = options;
  const wish = {
    ...{ id, name, roles: role },
    ...(kind === undefined ? {} : { kind }),
    ...(scope === undefined ? {} : { scopes: [...new Set(scope)] }),
    ...(expires === undefined ? {} : { expiresAt: new Date(terminal.now() + expires).toISOString() }),
  };
  const { token, record } = await onSecrets(terminal, options, (path) =>
    makeTokenIn(path, wish, terminal.now()),
  );
  const row = tokenRow(record, terminal.now());
  if (json === true) return printJson(terminal, { ...row, token });
  terminal.err(`a token of ${id} for ${row.scopes.join(', ')}, hash ${row.hash}; it is shown only now:`);
  terminal.out(`${token}\n`);
}

export async function revokeToken(
  terminal: Terminal,
  id: string,
  { json, hash, all, ...options }: FileOptions & { hash?: string; all?: boolean },
): Promise<void> {
  const which = { ...(hash === undefined ? {} : { hash }), ...(all === undefined ? {} : { all }) };
  const revoked = await onSecrets(terminal, options, (path) =>
    editSecretsFile(path, (file) => revokeTokens(file, id, which), terminal.now()),
  );
  const rows = revoked.map((token) => tokenRow(token, terminal.now()));
  if (json === true) return printJson(terminal, { revoked: rows });
  for (const row of rows) terminal.err(`revoked the token of ${row.id} with the hash ${row.hash}`);
}
