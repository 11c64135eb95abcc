// Finds and imports `countersign.config.{js,mjs,ts}` and checks what it exports. The check is strict: a
// misspelt field is an error that names it, never a setting that silently is not there.
import { stat } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { maxDurationMs } from './core/duration.ts';
import { oidcSchema } from './oidc-config.ts';
import { repeatProblem, toolNameProblem, type Tool } from './tool.ts';
import { dropHeaderSchema, triggerNameProblem, triggerSchema } from './triggers.ts';

/** The configuration cannot be used; the message names the file or variable, the rule and the value. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

const fileNames = ['countersign.config.js', 'countersign.config.mjs', 'countersign.config.ts'];

const idempotencyKinds = ['key', 'lookup', 'none'];
// the shortest form that a key is cut to (DESIGN §4)
const shortestKey = 43;

// a list that somebody wrote; more would be a mistake
const maxDropHeaders = 200;

const toolSchema = z.custom<Tool>().superRefine((value, context) => {
  const problem = toolProblem(value);
  if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
});

const configSchema = z
  .strictObject({
    /** the tools that specs and workflows may call */
    tools: z.array(toolSchema),
    /** folder of spec files, from the config file's folder */
    specs: z.string().min(1).optional(),
    /** how long an approval waits when its policy does not say, in milliseconds */
    approvalTtlMs: z
      .int()
      .min(1)
      .max(maxDurationMs, `must be at most ${maxDurationMs} (ten years)`)
      .optional(),
    /** whether a gate takes a decision that was sent without a proof */
    unsigned: z.enum(['allow', 'refuse']).optional(),
    /** module with one's own workflows, from the config file's folder */
    workflows: z.string().min(1).optional(),
    /** what signed webhooks start, by name (docs/hooks.md) */
    triggers: z.record(z.string(), triggerSchema).optional(),
    /** headers of webhooks to drop beside the usual ones */
    dropHeaders: z.array(dropHeaderSchema).max(maxDropHeaders).optional(),
    /** an OIDC issuer whose JWTs the API takes beside its own tokens (docs/security.md) */
    oidc: z.optional(oidcSchema),
  })
  .superRefine(({ tools, triggers = {} }, context) => {
    for (const name of Object.keys(triggers)) {
      const message = triggerNameProblem(name);
      if (message !== undefined) context.addIssue({ code: 'custom', path: ['triggers', name], message });
    }
    const names = tools.map((tool) => tool.name);
    names.forEach((name, index) => {
      if (names.indexOf(name) === index) return;
      context.addIssue({
        code: 'custom',
        path: ['tools', index],
        message: `a second tool is named "${name}"`,
      });
    });
  });

/** What a config file exports as `config`. */
export type ConfigFile = z.input<typeof configSchema>;

/** The one config file of a folder. @throws ConfigError when there is none, or more than one */
export async function findConfigFile(folder: string): Promise<string> {
  const present: string[] = [];
  for (const name of fileNames) {
    if (await isFile(join(folder, name))) present.push(name);
  }
  const [name, other] = present;
  if (name === undefined) {
    throw new ConfigError(
      `${folder} has no countersign.config.js, .mjs or .ts: write one with ` +
        "`export const config = { tools: [], specs: './specs' }`, or name another file with --config",
    );
  }
  if (other !== undefined) {
    throw new ConfigError(`${folder} has both ${name} and ${other}: keep one, or choose with --config`);
  }
  return join(folder, name);
}

/** @throws ConfigError when the file is not there, fails, or exports something else than it should */
export async function readConfigFile(path: string): Promise<z.output<typeof configSchema>> {
  const file = resolve(path);
  if (!(await isFile(file))) throw new ConfigError(`${file} is not there: --config must name a config file`);
  const exported = await importModule(file);
  if (exported['config'] === undefined) {
    const instead = exported['default'] === undefined ? '' : ' (it has a default export: give it that name)';
    throw new ConfigError(
      `${file} exports no \`config\`${instead}: write \`export const config = { tools: […] }\``,
    );
  }
  const checked = configSchema.safeParse(exported['config']);
  if (checked.success) return checked.data;
  const problems = checked.error.issues.map(({ path: at, message }) => {
    const field = ['config', ...at].map((part, index) => fieldPart(part, index)).join('');
    return `${field}: ${message}`;
  });
  throw new ConfigError(`${file}: ${problems.join('; ')}`);
}

async function importModule(file: string): Promise<Record<string, unknown>> {
  const url = pathToFileURL(file).href;
  try {
    return (await import(url)) as Record<string, unknown>;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code !== 'ERR_UNKNOWN_FILE_EXTENSION' && code !== 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX') {
      throw new ConfigError(`${file} fails: ${(error as Error).message}`, { cause: error });
    }
  }
  await loadTypeScriptSupport(file);
  try {
    // the loader keeps the failure of the first try under its URL
    return (await import(`${url}?typescript`)) as Record<string, unknown>;
  } catch (error) {
    throw new ConfigError(`${file} fails: ${(error as Error).message}`, { cause: error });
  }
}

// For the whole process, and for good: a config in a namespace of its own would get a second instance of
// this package, whose error classes are not ours.
async function loadTypeScriptSupport(file: string): Promise<void> {
  try {
    const { register } = await import('tsx/esm/api');
    register();
  } catch (error) {
    throw new ConfigError(
      `${file} is TypeScript, which Node ${process.versions.node} does not run by itself: ` +
        `run \`npm install --save-dev tsx\`, or write ${basename(file).replace(/ts$/, 'js')}`,
      { cause: error },
    );
  }
}

function toolProblem(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return 'must be a tool, as defineTool makes it';
  const tool = value as Partial<Record<keyof Tool, unknown>>;
  const badName = toolNameProblem(tool.name);
  if (badName !== undefined) return badName;
  const named = `tool "${String(tool.name)}"`;
  if (typeof tool.run !== 'function') return `${named} has no function run(context, arguments)`;
  if (!(tool.arguments instanceof z.ZodType)) return `${named}: arguments must be a zod 4 schema`;
  if (!idempotencyKinds.includes(tool.idempotency as string)) {
    return `${named}: idempotency must be 'key', 'lookup' or 'none'; it has no default, a wrong guess pays twice`;
  }
  for (const field of ['timeoutMs', 'attempts'] as const) {
    if (tool[field] !== undefined && !isWhole(tool[field], 1)) {
      return `${named}: ${field} must be a whole number from 1`;
    }
  }
  if (tool.keyMaxLength !== undefined && !isWhole(tool.keyMaxLength, shortestKey)) {
    return `${named}: keyMaxLength must be a whole number from ${shortestKey}`;
  }
  const problem = repeatProblem(tool);
  return problem === undefined ? undefined : `${named}: ${problem}`;
}

function isWhole(value: unknown, least: number): boolean {
  return Number.isSafeInteger(value) && (value as number) >= least;
}

function fieldPart(part: PropertyKey, index: number): string {
  if (typeof part === 'number') return `[${part}]`;
  return index === 0 ? String(part) : `.${String(part)}`;
}

async function isFile(path: string): Promise<boolean> {
  const stats = await stat(path).catch(() => undefined);
  return stats?.isFile() === true;
}
