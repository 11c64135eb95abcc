// The format of the secrets file, and its one rule: its content reaches no log and no error. Errors name the
// file and the field, never a value.
import { randomUUID } from 'node:crypto';
import { readFileSync, statSync, type Stats } from 'node:fs';
import { open } from 'node:fs/promises';
import { z } from 'zod';
import { scopes } from './scopes.ts';
import { tokenKinds } from './tokens.ts';

/** The secrets file cannot be used; the message says why and what to do. */
export class SecretsError extends Error {
  override readonly name = 'SecretsError';
}

const name = z.string().min(1).max(200);
// a JWK is another standard's format: members that are not needed are no fault
const okpKey = { kty: z.literal('OKP'), crv: z.literal('Ed25519'), x: z.string().min(1) };
const time = z.iso.datetime();
const fileSchema = z.strictObject({
  v: z.literal(1),
  tokens: z.array(
    z.strictObject({
      id: name,
      name,
      roles: z.array(name),
      kind: z.enum(tokenKinds),
      scopes: z.array(z.enum(scopes)).optional(),
      sha256: z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 lower-case hex characters'),
      createdAt: z.iso.datetime(),
      expiresAt: z.iso.datetime().optional(),
    }),
  ),
  signingKeys: z
    .array(
      z
        .strictObject({
          kid: name,
          /** absent: it has signed, and verifies */
          privateJwk: z.object({ ...okpKey, d: z.string().min(1) }).optional(),
          publicJwk: z.object(okpKey),
          /** absent: always, and to this day */
          validFrom: time.optional(),
          validUntil: time.optional(),
        })
        .refine(
          ({ validFrom: from, validUntil: until }) =>
            from === undefined || until === undefined || Date.parse(from) < Date.parse(until),
          'validUntil must be after validFrom',
        ),
    )
    .refine((keys) => keys.some(({ privateJwk }) => privateJwk !== undefined), 'one must have a privateJwk')
    .superRefine(oneEach),
  grantKeys: z
    .array(
      z.strictObject({
        kid: name,
        secret: z.string().regex(/^[\w-]{43,}$/, 'must be 32 bytes, base64url'),
        /** it makes grants from then on; absent: always */
        validFrom: time.optional(),
      }),
    )
    .min(1)
    .superRefine(oneEach),
});
export type SecretsFile = z.infer<typeof fileSchema>;

export type SigningKeyRecord = SecretsFile['signingKeys'][number];
export type GrantKeyRecord = SecretsFile['grantKeys'][number];

/** A key is looked up by its id, so a second one of that id could never verify. */
function oneEach(keys: readonly { kid: string }[], context: z.RefinementCtx): void {
  const ids = keys.map(({ kid }) => kid);
  if (new Set(ids).size < ids.length) context.addIssue({ code: 'custom', message: 'two have one kid' });
}

/** @throws SecretsError when the file is missing, open to others, or not valid */
export function readSecretsFile(path: string): SecretsFile {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) throw missingSecrets(path);
  const problem = modeProblem(stats);
  if (problem !== undefined) throw new SecretsError(`${path} ${problem}; run: chmod 600 ${path}`);
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    // the parser's own message quotes the text around the fault, and the text is secret
    const why = error instanceof SyntaxError ? 'is not valid JSON' : `cannot be read (${codeOf(error)})`;
    throw new SecretsError(`${path} ${why}`);
  }
  return checkSecretsFile(path, content);
}

/** @throws SecretsError naming each field that is wrong, and no value */
export function checkSecretsFile(path: string, content: unknown): SecretsFile {
  const checked = fileSchema.safeParse(content);
  if (checked.success) return checked.data;
  const problems = checked.error.issues.map(
    ({ path: at, message }) => `${at.join('.') || 'the file'}: ${message}`,
  );
  throw new SecretsError(`${path} is not a valid secrets file: ${problems.join('; ')}`);
}

// A file that root gives to our group (a mounted Kubernetes secret) may be readable by the group.
function modeProblem(stats: Stats): string | undefined {
  const own = process.getuid?.();
  if (own === undefined) return undefined;
  const mode = stats.mode & 0o777;
  const forbidden = stats.uid === own ? 0o077 : 0o027;
  if ((mode & forbidden) === 0) return undefined;
  return `can be read or changed by others (mode ${mode.toString(8)}), and it holds secrets`;
}

/** The error of a file that is not there. */
export function missingSecrets(path: string): SecretsError {
  return new SecretsError(
    `${path} is not there: \`countersign dev\` makes one at its first start; in production set ` +
      'COUNTERSIGN_SECRETS_FILE to the file that all workers and API processes share',
  );
}

export function hasCode(error: unknown, code: string): boolean {
  return codeOf(error) === code;
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? 'unknown error';
}

/** Writes the whole content, to disk, under a name beside the file's; the caller gives it its name. */
export async function writeBeside(path: string, content: unknown): Promise<string> {
  const temporary = `${path}.${process.pid}.${randomUUID()}`;
  const file = await open(temporary, 'wx', 0o600);
  try {
    await file.writeFile(`${JSON.stringify(content, null, 2)}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  return temporary;
}
