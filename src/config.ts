// The checked configuration of a worker or an API: what the config file says about tools and specs, what
// the environment says about this deployment. Secrets are in neither; they have a file of their own.
import { stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { ConfigError, findConfigFile, readConfigFile } from './config-file.ts';
import { maxDurationMs } from './core/duration.ts';
import { defaultTaskQueue } from './core/names.ts';
import type { OidcConfig } from './oidc-config.ts';
import type { Tool } from './tool.ts';
import type { TriggerConfig } from './triggers.ts';

/** Every path is absolute. */
export interface Config {
  /** the config file itself */
  file: string;
  tools: readonly Tool[];
  /** absent: no specs, only workflows of one's own */
  specsFolder?: string;
  /** module with one's own workflows */
  workflowsPath?: string;
  /** milliseconds */
  approvalTtlMs: number;
  unsigned: 'allow' | 'refuse';
  /** what signed webhooks start, by name; secrets are names of variables */
  triggers?: Readonly<Record<string, TriggerConfig>>;
  /** headers of webhooks to drop beside the usual ones */
  dropHeaders?: readonly string[];
  /** whose JWTs the API takes beside its own tokens */
  oidc?: OidcConfig;
  taskQueue: string;
  /** where people reach the API, without a slash at the end; for links */
  baseUrl?: string;
  /** where the API listens; port 0 takes one that is free */
  host: string;
  port: number;
  /** what the embedded default keeps on this machine */
  dataDir: string;
  secretsFile: string;
}

export interface LoadConfigOptions {
  /** `--config`; default: the one config file in `cwd`. */
  path?: string;
  /** Default: that of this process. */
  cwd?: string;
  /** Default: that of this process. */
  env?: NodeJS.ProcessEnv;
}

const defaults = {
  approvalTtlMs: 7 * 86_400_000,
  host: '127.0.0.1',
  port: 7280,
  dataDir: '.countersign',
};

/** The environment wins over the file. @throws ConfigError */
export async function loadConfig(options: LoadConfigOptions = {}): Promise<Config> {
  const cwd = options.cwd ?? process.cwd();
  const env = options.env ?? process.env;
  const deployment = readEnvironment(env, cwd);
  const file = options.path === undefined ? await findConfigFile(cwd) : resolve(cwd, options.path);
  const content = await readConfigFile(file);
  const folder = dirname(file);
  const { ttlMs, ...rest } = deployment;
  const config: Config = {
    file,
    tools: content.tools,
    approvalTtlMs: ttlMs ?? content.approvalTtlMs ?? defaults.approvalTtlMs,
    unsigned: content.unsigned ?? 'allow',
    ...rest,
  };
  const specsFolder = await findSpecs(file, folder, content.specs);
  if (specsFolder !== undefined) config.specsFolder = specsFolder;
  if (content.triggers !== undefined) config.triggers = content.triggers;
  if (content.dropHeaders !== undefined) config.dropHeaders = content.dropHeaders;
  if (content.oidc !== undefined) config.oidc = content.oidc;
  if (content.workflows !== undefined) config.workflowsPath = resolve(folder, content.workflows);
  return config;
}

/**
 * For logs: tools by name, since their code may hold anything. Nothing else in a Config is secret; the secrets
 * of triggers are in it by the names of their variables.
 */
export function redactConfig(config: Config): Record<string, unknown> {
  return { ...config, tools: config.tools.map((tool) => tool.name) };
}

type Deployment = Pick<Config, 'taskQueue' | 'host' | 'port' | 'dataDir' | 'secretsFile'> & {
  baseUrl?: string;
  ttlMs?: number | undefined;
};

function readEnvironment(env: NodeJS.ProcessEnv, cwd: string): Deployment {
  const dataDir = resolve(cwd, env['COUNTERSIGN_DATA_DIR'] || defaults.dataDir);
  const baseUrl = readUrl(env, 'COUNTERSIGN_URL');
  return {
    ttlMs: readWhole(env, 'COUNTERSIGN_APPROVAL_TTL_MS', 1, maxDurationMs),
    taskQueue: env['COUNTERSIGN_TASK_QUEUE'] || defaultTaskQueue,
    ...(baseUrl === undefined ? {} : { baseUrl }),
    host: env['COUNTERSIGN_HOST'] || defaults.host,
    port: readWhole(env, 'COUNTERSIGN_PORT', 0, 65_535) ?? defaults.port,
    dataDir,
    secretsFile: secretsFileOf(env, cwd),
  };
}

/** Where the secrets file of this deployment is, whatever the config file says. */
export function secretsFileOf(env: NodeJS.ProcessEnv, cwd: string = process.cwd()): string {
  const dataDir = env['COUNTERSIGN_DATA_DIR'] || defaults.dataDir;
  return resolve(cwd, env['COUNTERSIGN_SECRETS_FILE'] || resolve(cwd, dataDir, 'secrets.json'));
}

// An empty variable counts as unset, as everywhere in shells and compose files.
function readWhole(
  env: NodeJS.ProcessEnv,
  name: string,
  least: number,
  greatest: number,
): number | undefined {
  const text = env[name];
  if (!text) return undefined;
  const value = /^\d{1,15}$/.test(text) ? Number(text) : NaN;
  if (value >= least && value <= greatest) return value;
  throw new ConfigError(`${name} must be a whole number from ${least} to ${greatest}, got "${text}"`);
}

// Without its value in the message where it holds a password.
function readUrl(env: NodeJS.ProcessEnv, name: string): string | undefined {
  const text = env[name];
  if (!text) return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !['http:', 'https:'].includes(url.protocol)) {
    throw new ConfigError(`${name} must be an http or https URL, such as https://approvals.example.com`);
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new ConfigError(
      `${name} must be a URL without user, password, ? and #: people get links made from it`,
    );
  }
  return url.href.replace(/\/+$/, '');
}

async function findSpecs(
  file: string,
  folder: string,
  specs: string | undefined,
): Promise<string | undefined> {
  const path = resolve(folder, specs ?? 'specs');
  const stats = await stat(path).catch(() => undefined);
  if (stats?.isDirectory() === true) return path;
  if (specs === undefined) return undefined;
  throw new ConfigError(
    `${file}: config.specs is "${specs}", and ${path} is not a folder: make it, or correct it`,
  );
}
