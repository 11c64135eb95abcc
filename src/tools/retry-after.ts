// Reads `Retry-After` (RFC 9110 §10.2.3): seconds, or a date in one of the three forms of §5.6.7.

/** Nobody waits longer for a target's word than this; then it is asked again. */
export const maxRetryAfterMs = 3_600_000;

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const time = '(\\d{2}):(\\d{2}):(\\d{2})';
const imfFixdate = new RegExp(`^[A-Z][a-z]{2}, (\\d{2}) ([A-Z][a-z]{2}) (\\d{4}) ${time} GMT$`);
const rfc850 = new RegExp(`^[A-Z][a-z]{5,8}, (\\d{2})-([A-Z][a-z]{2})-(\\d{2}) ${time} GMT$`);
const asctime = new RegExp(`^[A-Z][a-z]{2} ([A-Z][a-z]{2}) ([ \\d]\\d) ${time} (\\d{4})$`);

/**
 * Milliseconds from `now` (milliseconds since the epoch), at most `maxRetryAfterMs`; undefined for no, a bad
 * or a past value, where the retry policy's own backoff is better than none.
 */
export function retryAfterMs(value: string | undefined, now: number): number | undefined {
  const text = value?.trim() ?? '';
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : (httpDateMs(text, now) ?? 0) - now;
  return ms > 0 ? Math.min(ms, maxRetryAfterMs) : undefined;
}

function httpDateMs(text: string, now: number): number | undefined {
  const fixed = imfFixdate.exec(text);
  if (fixed !== null) return dateMs(fixed[3], fixed[2], fixed[1], fixed.slice(4));
  const old = rfc850.exec(text);
  if (old !== null) return dateMs(fullYear(old[3], now), old[2], old[1], old.slice(4));
  const c = asctime.exec(text);
  return c === null ? undefined : dateMs(c[6], c[1], c[2], c.slice(3, 6));
}

/** Two digits that seem to be over 50 years ahead are of the last century (§5.6.7). */
function fullYear(twoDigits: string | undefined, now: number): number {
  const thisYear = new Date(now).getUTCFullYear();
  const year = Math.floor(thisYear / 100) * 100 + Number(twoDigits);
  return year > thisYear + 50 ? year - 100 : year;
}

function dateMs(
  year: string | number | undefined,
  month: string | undefined,
  day: string | undefined,
  clock: string[],
): number | undefined {
  const index = months.indexOf(month ?? '');
  const [hours = 0, minutes = 0, seconds = 0] = clock.map(Number);
  if (index === -1 || hours > 23 || minutes > 59 || seconds > 60) return undefined;
  const ms = Date.UTC(Number(year), index, Number(day), hours, minutes, seconds);
  return new Date(ms).getUTCMonth() === index ? ms : undefined;
}
