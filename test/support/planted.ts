// Planted secrets, and the search for them in whatever bytes a system leaves behind: whole or cut, as they are
// or encoded in the usual ways, inside of other text too.
import { createHash } from 'node:crypto';

/** Of a secret's random core; a cut one still has its beginning or its end. */
const endLength = 12;

/** A secret whose core is 48 characters that stand nowhere else; reproducible, so that a failure is too. */
export function plantedSecret(name: string, { before = '', after = '' } = {}): string {
  const core = createHash('sha256').update(`planted ${name}`).digest('base64url').replace(/[-_]/g, 'x');
  return `${before}${core}plant${after}`;
}

/** Finds any of the secrets in bytes: which, and in what form. */
export function createSecretSearch(secrets: Readonly<Record<string, string>>) {
  const needles = Object.entries(secrets).flatMap(([name, secret]) =>
    [...formsOf(secret)].map(([form, needle]) => ({ name, form, needle: Buffer.from(needle) })),
  );
  return (bytes: Uint8Array | string): string[] => {
    const text = Buffer.from(bytes);
    return needles.filter(({ needle }) => text.includes(needle)).map(({ name, form }) => `${name} (${form})`);
  };
}

/** Every text and all bytes of a message, such as a history: its payloads as they were sent, and its own fields. */
export function allBytes(value: unknown): Buffer {
  const found: Uint8Array[] = [];
  const walk = (item: unknown): void => {
    if (item instanceof Uint8Array) found.push(item);
    else if (typeof item === 'string') found.push(Buffer.from(item));
    else if (typeof item === 'object' && item !== null) {
      for (const [key, member] of Object.entries(item)) {
        found.push(Buffer.from(key));
        walk(member);
      }
    }
  };
  walk(value);
  return Buffer.concat(found.flatMap((bytes) => [bytes, Buffer.from('\n')]));
}

function formsOf(secret: string): Map<string, string> {
  const ends = [secret.slice(0, endLength), secret.slice(-endLength), middle(secret)];
  const forms = new Map<string, string>();
  for (const [at, end] of ends.entries()) {
    forms.set(`part ${at}`, end);
    forms.set(`part ${at} in hex`, Buffer.from(end).toString('hex'));
    forms.set(`part ${at} in HEX`, Buffer.from(end).toString('hex').toUpperCase());
    for (const offset of [0, 1, 2]) forms.set(`part ${at} in base64+${offset}`, base64Inside(end, offset));
  }
  return forms;
}

function middle(secret: string): string {
  const from = Math.floor((secret.length - endLength) / 2);
  return secret.slice(from, from + endLength);
}

/** What every base64 text has in which `text` stands at an offset of that many bytes (modulo 3). */
function base64Inside(text: string, offset: number): string {
  const encoded = Buffer.from('.'.repeat(offset) + text).toString('base64');
  // the first and last characters also hold bits of what stands beside it
  return encoded
    .slice(offset === 0 ? 0 : offset + 1)
    .replace(/.=*$/, (end) => (end.includes('=') ? '' : end));
}
