// Sandbox-safe. Durations as people write them: `30s`, `10m`, `2h`, `7d`, `500ms`, `1h30m`. Compiled to
// milliseconds before a run starts, since an invalid duration throws inside a workflow.

/** Ten years: a longer wait is a typing error, and Temporal's nanosecond clocks end at 292 years. */
export const maxDurationMs = 3650 * 86_400_000;

/** For messages of whoever refuses a duration. */
export const durationRule = 'a duration like 500ms, 30s, 10m, 2h, 7d or 1h30m, more than 0, at most 3650d';

// Each unit at most once, largest first, so that a duration has one spelling per choice of units.
const form = /^(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+)s)?(?:(\d+)ms)?$/;

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
  ['ms', 1],
] as const;

/** Milliseconds, or undefined when the text is not `durationRule`. */
export function parseDuration(text: string): number | undefined {
  const match = form.exec(text);
  if (match === null) return undefined;
  let total = 0;
  units.forEach(([, size], index) => {
    total += Number(match[index + 1] ?? 0) * size;
  });
  return total > 0 && total <= maxDurationMs ? total : undefined;
}

/** The shortest exact spelling in whole milliseconds: `1h30m`; `0s` for nothing, `-` before a past one. */
export function formatDuration(ms: number): string {
  let rest = Math.abs(Math.trunc(ms));
  if (rest === 0) return '0s';
  let text = ms < 0 ? '-' : '';
  for (const [unit, size] of units) {
    const count = Math.floor(rest / size);
    if (count > 0) text += `${count}${unit}`;
    rest -= count * size;
  }
  return text;
}
