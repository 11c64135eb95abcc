// Numbers of a series, and work side by side.

export interface Summary {
  count: number;
  p50: number;
  p95: number;
}

/** Nearest-rank percentiles, rounded to hundredths. */
export function summary(values: readonly number[]): Summary {
  return { count: values.length, p50: percentile(values, 0.5), p95: percentile(values, 0.95) };
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const value = sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)];
  if (value === undefined) throw new Error('no value was measured');
  return round(value);
}

export function round(value: number): number {
  return Math.round(value * 100) / 100;
}

export function ratio(ours: number, theirs: number): number {
  return round(ours / theirs);
}

/** Calls `work` for every item, at most `width` at a time; results in the order of the items. */
export async function inParallel<Item, Result>(
  items: readonly Item[],
  width: number,
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let index = next++; index < items.length; index = next++) {
      results[index] = await work(items[index] as Item);
    }
  };
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, lane));
  return results;
}

/** Milliseconds on the machine's monotonic clock, which all its processes share. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
