// `countersign keys`: which keys there are, new ones, and old ones taken out. Nothing secret of a key is printed.
import {
  keyRows,
  removeKey,
  rotateGrantKey,
  rotateSigningKey,
  type KeyRow,
  type KeyUse,
} from '../secret-keys.ts';
import { editSecretsFile } from '../secrets-edit.ts';
import { readSecretsFile } from '../secrets-file.ts';
import { onSecrets, type FileOptions } from './edit-tokens.ts';
import { usageProblem } from './exit-codes.ts';
import { printJson, printTable, type Column } from './show.ts';
import type { Terminal } from './terminal.ts';

export interface KeyOptions extends FileOptions {
  signing?: boolean;
  grant?: boolean;
  now?: boolean;
  /** in milliseconds */
  in?: number;
}

/** Longer than Kubernetes takes to hand a changed secret to its pods: a sync a minute, and its cache. */
const knownAfterMs = 2 * 60_000;

const columns: readonly Column<KeyRow>[] = [
  { title: 'use', of: ({ use }) => use },
  { title: 'kid', of: ({ kid }) => kid },
  { title: 'state', of: ({ state }) => state },
  { title: 'from', of: ({ validFrom }) => validFrom },
  { title: 'until', of: ({ validUntil }) => validUntil },
  { title: 'private part', of: ({ hasPrivatePart: has }) => (has === undefined ? '' : has ? 'yes' : 'no') },
];

export async function listKeys(terminal: Terminal, options: FileOptions): Promise<void> {
  const rows = keyRows(await onSecrets(terminal, options, readSecretsFile), terminal.now());
  if (options.json === true) printJson(terminal, { keys: rows });
  else printTable(terminal, rows, columns);
}

export async function rotateKeys(terminal: Terminal, options: KeyOptions): Promise<void> {
  const { json, now = false, in: delay } = options;
  if (now && delay !== undefined) throw usageProblem('--now and --in exclude each other');
  const uses = usesOf(options);
  const at = terminal.now();
  const from = at + (now ? 0 : (delay ?? knownAfterMs));
  const made = await onSecrets(terminal, options, (path) =>
    editSecretsFile(
      path,
      async (file) => {
        const kids: string[] = [];
        if (uses.includes('signing')) kids.push((await rotateSigningKey(file, { now: at, from })).kid);
        if (uses.includes('grant')) kids.push(rotateGrantKey(file, { from }).kid);
        return keyRows(file, at).filter(({ kid }) => kids.includes(kid));
      },
      at,
    ),
  );
  if (json === true) return printJson(terminal, { keys: made });
  for (const { use, kid, validFrom = '' } of made)
    terminal.err(`new ${use} key ${kid}, used from ${validFrom} on`);
}

export async function dropKey(terminal: Terminal, kid: string, options: KeyOptions): Promise<void> {
  const [use, other] = usesOf(options);
  if (use === undefined || other !== undefined)
    throw usageProblem('one of --signing and --grant says which key');
  await onSecrets(terminal, options, (path) =>
    editSecretsFile(path, (file) => removeKey(file, use, kid, terminal.now()), terminal.now()),
  );
  if (options.json === true) return printJson(terminal, { removed: { use, kid } });
  terminal.err(`removed ${use} key ${kid}`);
}

function usesOf({ signing = false, grant = false }: KeyOptions): KeyUse[] {
  if (!signing && !grant) throw usageProblem('--signing or --grant says which keys');
  return [...(signing ? ['signing' as const] : []), ...(grant ? ['grant' as const] : [])];
}
