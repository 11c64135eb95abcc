// Reads docker-compose.yml and the Dockerfile for a test. The schema is strict: it knows the part of the
// Compose specification that is used here, so a misspelt key is an error, not a setting that is not there.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { z } from 'zod';

const root = fileURLToPath(new URL('../../', import.meta.url));

const seconds = z.string().regex(/^\d+s$/, 'must be seconds, such as "10s"');
const size = z.string().regex(/^\d+[mMG]$/, 'must be a size, such as "256M"');
const words = z.array(z.string().min(1)).min(1);

const serviceSchema = z.strictObject({
  image: z.string(),
  build: z.string().optional(),
  pull_policy: z.literal('never').optional(),
  profiles: z.array(z.string()).default([]),
  entrypoint: words.optional(),
  command: words.default([]),
  environment: z.record(z.string().regex(/^[A-Z_0-9]+$/), z.string()).default({}),
  depends_on: z
    .record(
      z.string(),
      z.strictObject({ condition: z.enum(['service_healthy', 'service_completed_successfully']) }),
    )
    .default({}),
  ports: z.array(z.string().regex(/^(?:127\.0\.0\.1|\$\{API_BIND:-127\.0\.0\.1\}):.+:\d+$/)).default([]),
  volumes: z.array(z.string().regex(/^(?:\.\/)?[\w/-]+:\/[\w/-]+(?::ro)?$/)).default([]),
  tmpfs: z.array(z.string()).optional(),
  shm_size: size.optional(),
  read_only: z.boolean().optional(),
  privileged: z.never().optional(),
  cap_drop: z.array(z.string()).optional(),
  security_opt: z.array(z.string()).optional(),
  restart: z.string(),
  stop_grace_period: seconds.optional(),
  healthcheck: z
    .strictObject({
      test: z.tuple([z.literal('CMD')], z.string()),
      interval: seconds,
      timeout: seconds,
      retries: z.int().min(1),
      start_period: seconds,
    })
    .optional(),
  logging: z.strictObject({
    driver: z.string(),
    options: z.strictObject({ 'max-size': z.string(), 'max-file': z.string() }),
  }),
  deploy: z.strictObject({
    resources: z.strictObject({
      limits: z.strictObject({
        cpus: z.string().regex(/^\d+(?:\.\d+)?$/),
        memory: size,
        pids: z.int().min(1),
      }),
    }),
  }),
});

const composeSchema = z.strictObject({
  name: z.string(),
  services: z.record(z.string(), serviceSchema),
  volumes: z.record(z.string(), z.null()),
});

export type Service = z.infer<typeof serviceSchema>;
export type Compose = z.infer<typeof composeSchema>;

/** @throws when the file is not as the schema wants it, naming each place */
export function readCompose(text: string): Compose {
  const file = parse(text, { merge: true }) as Record<string, unknown>;
  const meant = Object.entries(file).filter(([key]) => !key.startsWith('x-'));
  const checked = composeSchema.safeParse(Object.fromEntries(meant));
  if (checked.success) return checked.data;
  throw new Error(`docker-compose.yml:\n${z.prettifyError(checked.error)}`);
}

/** Compose's own `${NAME:-default}` and `${NAME:?message}`, nested too. @throws where a value is required */
export function interpolate(text: string, env: Readonly<Record<string, string>>): string {
  const innermost = /\$\{([A-Z_]+):([-?])([^${}]*)\}/;
  let result = text;
  for (let found = innermost.exec(result); found !== null; found = innermost.exec(result)) {
    const [whole, name = '', kind, rest = ''] = found;
    const value = env[name] || undefined;
    if (value === undefined && kind === '?') throw new Error(rest === '' ? `${name} is not set` : rest);
    result = result.replace(whole, () => value ?? rest);
  }
  if (result.includes('$')) throw new Error(`what is ${result}?`);
  return result;
}

export interface Instruction {
  name: string;
  rest: string;
}

/** The instructions of a Dockerfile, continued lines joined, without comments. */
export function parseDockerfile(text: string): Instruction[] {
  return text
    .split('\n')
    .filter((line) => !line.trimStart().startsWith('#'))
    .join('\n')
    .replace(/\\\n/g, ' ')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [, name = '', rest = ''] = /^([A-Z]+)\s+(.*)$/.exec(line.trim()) ?? [];
      if (name === '') throw new Error(`not an instruction: ${line}`);
      return { name, rest: rest.trim() };
    });
}

/** What is copied from this repository, folders as the files in them. */
export function copiedFiles(dockerfile: readonly Instruction[]): string[] {
  return dockerfile
    .filter(({ name, rest }) => name === 'COPY' && !rest.startsWith('--from='))
    .flatMap(({ rest }) => rest.split(/\s+/).slice(0, -1))
    .flatMap((source) => filesOf(source));
}

function filesOf(source: string): string[] {
  if (/\.\w+$/.test(source) || source === 'LICENSE') return [source];
  return readdirSync(join(root, source), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length));
}
