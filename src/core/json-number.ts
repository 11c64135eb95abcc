// Which JSON number literals mean the same to every reader: those whose decimal value is the one that
// JavaScript prints for them. 1.0, 100 and 1e2 are fine; 0.1000000000000000000001 would be shown,
// hashed and paid as 0.1.
import { printable } from './json-value.ts';

/** Why the literal (of JSON's grammar) is refused, with the remedy; undefined when it is not. */
export function jsonNumberProblem(literal: string): string | undefined {
  const value = Number(literal);
  const shown = printable(literal, 40);
  // Written out as an integer it is an id or an amount in cents, and a neighbour may be meant.
  if (/^-?\d+$/.test(literal) && !Number.isSafeInteger(value)) {
    return `the integer ${shown} is beyond ±${Number.MAX_SAFE_INTEGER}, where numbers lose digits; send it as a string`;
  }
  if (!Number.isFinite(value)) return `the number ${shown} is too large; send it as a string`;
  const same = decimalOf(literal) === decimalOf(String(value));
  return same ? undefined : `the number ${shown} would become ${value}; send it as a string`;
}

/** One text for each decimal value: its digits without zeros at the ends, and the exponent of the last. */
function decimalOf(literal: string): string {
  const parts = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(literal);
  if (parts === null) return literal;
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = parts;
  const digits = whole + fraction;
  // Loops, not /0+$/: on a long run of zeros inside, that expression takes quadratic time.
  let start = 0;
  while (digits[start] === '0') start += 1;
  if (start === digits.length) return '0';
  let end = digits.length;
  while (digits[end - 1] === '0') end -= 1;
  const lastExponent = Number(exponent) - fraction.length + (digits.length - end);
  return `${sign}${digits.slice(start, end)}e${lastExponent}`;
}
