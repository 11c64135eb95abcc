// Durations as people write them, compiled before a run starts.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatDuration, maxDurationMs, parseDuration } from '../src/core/duration.ts';

test('durations are whole numbers with a unit, larger units first', () => {
  const cases: [string, number][] = [
    ['1ms', 1], ['500ms', 500], ['30s', 30_000], ['10m', 600_000], ['2h', 7_200_000], ['7d', 604_800_000],
    ['1h30m', 5_400_000], ['90m', 5_400_000], ['1d2h3m4s5ms', 93_784_005], ['5m500ms', 300_500], ['0h5m', 300_000],
    ['3650d', maxDurationMs],
  ]; // prettier-ignore
  for (const [text, ms] of cases) assert.equal(parseDuration(text), ms, text);
});

test('nothing, no time, more than ten years and other spellings are refused', () => {
  const refused = [
    '', '0s', '0d0h', '3651d', '3650d1ms', '99999999999999999999d', '5', '1.5h', '-1h', '+1h', '1 h', ' 1h', '1h ', '1h\n',
    '30m1h', '1h1h', '1H', '1w', '1y', 'P1D', '١h', '1e3s', 'h', 'ms', '1msx',
  ]; // prettier-ignore
  for (const text of refused) assert.equal(parseDuration(text), undefined, text);
});

test('a duration is shown exactly, in the same spelling that is read', () => {
  assert.equal(formatDuration(604_800_000), '7d');
  assert.equal(formatDuration(5_400_000), '1h30m');
  assert.equal(formatDuration(0), '0s');
  assert.equal(formatDuration(0.7), '0s');
  assert.equal(formatDuration(-61_000), '-1m1s');
  fc.assert(
    fc.property(fc.integer({ min: 1, max: maxDurationMs }), (ms) => {
      assert.equal(parseDuration(formatDuration(ms)), ms);
    }),
  );
});
