// When a target says "later" it is asked later.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { retryAfterMs } from '../src/tools/retry-after.ts';

test('Retry-After: seconds and all three forms of a date, bounded (RFC 9110 §10.2.3)', () => {
  const at = Date.UTC(1994, 10, 6, 8, 49, 0);
  const cases: [string | undefined, number | undefined][] = [
    ['120', 120_000],
    [' 1 ', 1_000],
    ['Sun, 06 Nov 1994 08:49:37 GMT', 37_000],
    ['Sunday, 06-Nov-94 08:49:37 GMT', 37_000],
    ['Sun Nov  6 08:49:37 1994', 37_000],
    ['3600', 3_600_000],
    ['3601', 3_600_000],
    ['99999999999999999999', 3_600_000],
    ['Mon, 06 Nov 2094 08:49:37 GMT', 3_600_000],
    ['0', undefined],
    ['Sun, 06 Nov 1994 08:48:59 GMT', undefined],
    ['Sunday, 06-Nov-45 08:49:37 GMT', undefined], // 1945: 2045 is over 50 years ahead
    ['-1', undefined],
    ['1.5', undefined],
    ['', undefined],
    [undefined, undefined],
    ['soon', undefined],
    ['1994-11-06T08:49:37Z', undefined],
    ['Sun, 06 Nov 1994 08:49:37', undefined],
    ['Sun, 06 Nov 1994 24:49:37 GMT', undefined],
    ['Sun, 31 Nov 2094 08:49:37 GMT', undefined],
    ['Sun, 06 Nop 2094 08:49:37 GMT', undefined],
  ];
  for (const [value, ms] of cases) assert.equal(retryAfterMs(value, at), ms, value);
});
