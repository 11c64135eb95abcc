// Canonical JSON (RFC 8785), the text that every hash is over. What is hashed is parsed back from that
// text, and only the parsed value is shown, stored and executed: nothing outside the text can act.
// No Unicode normalisation: composed and decomposed é are different payloads.
import serialize from 'canonicalize';
import type { Json } from './json.ts';
import { jsonValueProblem, utf8Length } from './json-value.ts';

/**
 * Bytes of canonical text. Temporal refuses a payload over 2 MiB and a message over 4 MiB, and a payload
 * is recorded several times in a run (case, effect input, result); nobody can judge more than this anyway.
 */
export const payloadLimitBytes = 256 * 1024;

export type ValueProblemCode = 'invalid_value' | 'payload_too_large';

/** The value is not JSON (with the place), or too large to be a payload. */
export class ValueProblemError extends Error {
  override readonly name = 'ValueProblemError';
  readonly code: ValueProblemCode;
  /** RFC 6901; empty for the value itself */
  readonly pointer: string;

  constructor(code: ValueProblemCode, pointer: string, message: string) {
    super(message);
    this.code = code;
    this.pointer = pointer;
  }
}

/** The canonical text of `value`, of any size. @throws ValueProblemError `invalid_value` */
export function canonicalize(value: unknown): string {
  const problem = jsonValueProblem(value);
  if (problem !== undefined) throw new ValueProblemError('invalid_value', problem.pointer, problem.message);
  const text = serialize(value);
  if (text === undefined)
    throw new ValueProblemError('invalid_value', '', 'at the top: the value is not JSON');
  return text;
}

/** A payload made final: the canonical text, and the value that this text says. @throws ValueProblemError */
export function freeze(value: unknown): { value: Json; text: string } {
  const text = canonicalize(value);
  const size = utf8Length(text);
  if (size > payloadLimitBytes) {
    throw new ValueProblemError(
      'payload_too_large',
      '',
      `the payload has ${size} bytes of canonical JSON, the limit is ${payloadLimitBytes}; ` +
        'send a reference to the data instead',
    );
  }
  // JSON.parse, not the strict reader: 1e20 is a valid number whose canonical text has 21 digits.
  return { value: JSON.parse(text) as Json, text };
}
