// What webhooks may start: the config's word for each trigger, and its signing secrets. The config holds only
// the names of the variables that they stand in, so that it can be printed, kept and shared.
import { z } from 'zod';
import { parsePath } from './core/spec/template-syntax.ts';

const placeholder = /^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$/;
/** In a URL path and in a run id. */
const triggerName = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$/;
/** RFC 9110 field names in lower case, and `*` for any part. */
const headerPattern = /^[a-z0-9!#$%&'*+.^_`|~-]+$/i;

/** Standard Webhooks asks for 24 to 64 bytes; senders that take longer ones are no danger. */
const leastSecretBytes = 24;
/** The sender's current one and the one before; more than a few at once is a forgotten one. */
const maxSecrets = 5;
const maxFields = 100;

const path = z.string().refine((text) => parseMapping(text) !== undefined, {
  message:
    'must be a path such as data.order.id, lines[0].sku or data["order-id"], with a ? at its end if it may be missing',
});

/** One trigger, as the config file has it. */
export const triggerSchema = z.strictObject({
  /** name of a spec of this deployment */
  spec: z.string().min(1),
  /** placeholders of the environment variables that hold the signing secrets */
  secrets: z
    // no value in the message: whoever writes the secret itself here must not find it in a log
    .array(
      z
        .string()
        .regex(placeholder, 'must be a placeholder such as ${SHOP_HOOK_SECRET}, and never the secret itself'),
    )
    .min(1)
    .max(maxSecrets),
  /** of the run: each field by its path in the delivered JSON */
  input: z
    .record(z.string(), path)
    .refine((fields) => Object.keys(fields).length <= maxFields, `at most ${maxFields} fields`),
});
export type TriggerConfig = z.output<typeof triggerSchema>;

export const dropHeaderSchema = z
  .string()
  .max(100)
  .regex(headerPattern, 'must be the name of a header, such as x-shop-token, or a pattern such as *-token');

export interface MappedField {
  field: string;
  path: readonly string[];
  /** as written, for messages */
  source: string;
  optional: boolean;
}

/** A trigger as the API uses it. */
export interface HookTrigger {
  name: string;
  spec: string;
  input: readonly MappedField[];
  /** keys of HMAC-SHA256; any of them verifies */
  secrets: readonly Uint8Array[];
}

export function triggerNameProblem(name: string): string | undefined {
  return triggerName.test(name)
    ? undefined
    : 'a name is 1 to 64 characters of A-Z a-z 0-9 . _ -, and does not begin with a dot';
}

/**
 * The triggers with their secrets. One secret of several may be unset, so that a rotation is a change of the
 * environment alone; `tell` gets to know it. @throws TypeError naming trigger and variable, and no value
 */
export function openTriggers(
  triggers: Readonly<Record<string, TriggerConfig>>,
  env: NodeJS.ProcessEnv,
  tell: (message: string) => void,
): ReadonlyMap<string, HookTrigger> {
  const open = Object.entries(triggers).map(([name, { spec, secrets, input }]) => {
    const variables = secrets.map((text) => placeholder.exec(text)?.[1] ?? '');
    const set = variables.filter((variable) => env[variable]);
    if (set.length === 0) {
      throw new TypeError(`trigger "${name}": no signing secret is set; set ${variables.join(' or ')}`);
    }
    for (const variable of variables.filter((one) => !set.includes(one))) {
      tell(`trigger "${name}": ${variable} is not set, and nothing is verified with it`);
    }
    const keys = set.map((variable) => signingKey(name, variable, env[variable] ?? ''));
    const fields = Object.entries(input).map(([field, source]) => ({ field, source, ...mapping(source) }));
    return [name, { name, spec, input: fields, secrets: keys }] as const;
  });
  return new Map(open);
}

/** Standard Webhooks: `whsec_` and base64; the prefix may be missing. */
function signingKey(trigger: string, variable: string, text: string): Uint8Array {
  const base64 = text.trim().replace(/^whsec_/, '');
  const key = /^[A-Za-z0-9+/]+={0,2}$/.test(base64) ? Buffer.from(base64, 'base64') : Buffer.alloc(0);
  if (key.length >= leastSecretBytes) return key;
  throw new TypeError(
    `trigger "${trigger}": ${variable} is no signing secret: it must be whsec_ and base64 of at least ${leastSecretBytes} bytes`,
  );
}

function mapping(source: string): { path: readonly string[]; optional: boolean } {
  const parsed = parseMapping(source);
  if (parsed === undefined) throw new TypeError(`not a path: ${source}`);
  return parsed;
}

function parseMapping(text: string): { path: readonly string[]; optional: boolean } | undefined {
  const optional = text.endsWith('?');
  const parsed = parsePath(optional ? text.slice(0, -1) : text);
  return parsed === undefined ? undefined : { path: parsed, optional };
}
