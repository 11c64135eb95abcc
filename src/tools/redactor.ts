// Takes secrets out of what a target says (P10). Targets echo what they got: in JSON, in a page, in a URL, in the
// base64 of the whole header; each is found in any of these forms, and its placeholder is put there.
import type { Json } from '../core/json.ts';

export interface Redactor {
  text: (text: string) => string;
  json: (value: Json) => Json;
}

interface Secret {
  /** what is put in its place */
  shown: string;
  value: string;
  /** one of these is in the essence of every text that holds the secret in any form */
  essences: string[];
  pattern: string;
}

/** @param names of the environment variables that hold the secrets */
export function createRedactor(names: Iterable<string>, env: NodeJS.ProcessEnv): Redactor {
  const secrets = [...names].flatMap((name) => {
    const value = env[name] ?? '';
    return value === '' ? [] : [secretOf(`\${${name}}`, value)];
  });
  // The longest first, since one value may hold another; in one pass, so that no placeholder is read again.
  secrets.sort((a, b) => b.value.length - a.value.length);
  const text = (from: string): string => {
    // the patterns are slow on a long text, and nearly every text holds nothing
    const given = essencesOf(from);
    const held = secrets.filter(({ essences }) =>
      essences.some((one) => given.some((all) => all.includes(one))),
    );
    if (held.length === 0) return from;
    const pattern = new RegExp(held.map((secret) => `(${secret.pattern})`).join('|'), 'g');
    return from.replaceAll(
      pattern,
      (_: string, ...groups: unknown[]) =>
        held[groups.findIndex((group) => group !== undefined)]?.shown ?? '',
    );
  };
  const json = (value: Json): Json => {
    if (typeof value === 'string') return text(value);
    if (typeof value === 'number') {
      const shown = text(String(value));
      return shown === String(value) ? value : shown;
    }
    if (Array.isArray(value)) return value.map(json);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [text(key), json(item)]));
  };
  return { text, json };
}

function secretOf(shown: string, value: string): Secret {
  const bytes = Buffer.from(value, 'utf8');
  const inside = base64Insides(bytes);
  const forms = [value, bytes.toString('hex'), bytes.toString('base64'), ...inside.map(({ own }) => own)];
  return { shown, value, essences: forms.flatMap(essencesOf), pattern: formsOf(bytes, inside).join('|') };
}

const escapes =
  /%([0-9a-f]{2})|&#0{0,3}(\d{1,3});|&#x0{0,3}([0-9a-f]{2});|\\{1,8}(?:u00|x)([0-9a-f]{2})|&(?:amp;)?[a-z]{2,4};/gi;

/** Letters and digits alone, in lower case: with escapes read, and as they are. What is escaped more is in neither. */
function essencesOf(text: string): string[] {
  const read = text.replace(escapes, (_, percent?: string, decimal?: string, hex?: string, json?: string) => {
    const digits = percent ?? hex ?? json;
    if (digits !== undefined) return String.fromCharCode(parseInt(digits, 16));
    return decimal === undefined ? '' : String.fromCharCode(Number(decimal));
  });
  return [read, text].map((one) => one.replace(/[^A-Za-z0-9]+/g, '').toLowerCase());
}

/** As sources of regular expressions, without groups that capture. */
function formsOf(bytes: Buffer, insides: readonly Inside[]): string[] {
  const any = '[A-Za-z0-9+/_-]?';
  return [
    [...bytes.toString('utf8')].map(characterForms).join(''),
    `${urlForms(bytes.toString('base64').replace(/=+$/, ''))}=*`,
    ...insides.map(({ own, before, after }) => `${before ? any : ''}${urlForms(own)}${after ? any : ''}=*`),
    [...bytes.toString('hex')].map(eitherCase).join(''),
  ];
}

/** A character of printable ASCII as itself, or as JSON, URLs, HTML and quoting write it. */
function characterForms(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  const hex = [...code.toString(16)].map(eitherCase).join('');
  const forms = [
    `%${hex}`,
    `&#0{0,3}${code};`,
    `&#[xX]0{0,3}${hex};`,
    `\\\\{1,8}u0{0,3}${hex}`,
    `\\\\{1,8}x${hex}`,
  ];
  const entity = entities[character];
  if (entity !== undefined) forms.push(`&(?:amp;)?${entity};`);
  if (character === ' ') forms.push('\\+');
  // text inside of text has several backslashes before a quote
  const plain = /[A-Za-z0-9]/.test(character) ? character : `\\\\{0,8}${escapeRegExp(character)}`;
  return `(?:${[...forms, plain].join('|')})`;
}

const entities: Readonly<Record<string, string>> = {
  '&': 'amp',
  '<': 'lt',
  '>': 'gt',
  '"': 'quot',
  "'": 'apos',
};

/** Shorter ones would be found in texts that hold nothing. */
const leastInside = 8;

interface Inside {
  own: string;
  /** the character there holds bits of a neighbour too */
  before: boolean;
  after: boolean;
}

/** What of a value stands in the base64 of any text around it: three ways, by the bytes before it modulo 3. */
function base64Insides(bytes: Buffer): Inside[] {
  return [0, 1, 2].flatMap((offset) => {
    const encoded = Buffer.concat([Buffer.alloc(offset), bytes])
      .toString('base64')
      .replace(/=+$/, '');
    const after = (offset + bytes.length) % 3 !== 0;
    const own = encoded.slice(offset === 0 ? 0 : offset + 1, after ? -1 : undefined);
    return own.length < leastInside ? [] : [{ own, before: offset !== 0, after }];
  });
}

/** The two alphabets of base64, and `%2B` and the like. */
function urlForms(base64: string): string {
  return base64.replace(/[+/]/g, (character) =>
    character === '+' ? '(?:[+-]|%2[bB])' : '(?:\\\\?/|_|%2[fF])',
  );
}

function eitherCase(digit: string): string {
  return /[a-f]/i.test(digit) ? `[${digit.toLowerCase()}${digit.toUpperCase()}]` : digit;
}

function escapeRegExp(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
}
