// Waiting for what is awaited, and not for a time.
import { setTimeout as pause } from 'node:timers/promises';

export interface Patience {
  /** between two looks */
  pauseMs: number;
  boundMs: number;
}

/** Far above what anything here takes, so that a slow machine decides nothing. */
const forMachines: Patience = { pauseMs: 50, boundMs: 60_000 };

/** A person may take as long as an approval waits by default. */
export const forPeople: Patience = { pauseMs: 500, boundMs: 7 * 24 * 3600 * 1000 };

/** Looks until there is something, and gives it. */
export async function until<Found>(
  what: string,
  look: () => Promise<Found | undefined>,
  { pauseMs, boundMs } = forMachines,
): Promise<Found> {
  const giveUpAt = performance.now() + boundMs;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (performance.now() > giveUpAt) throw new Error(`waited ${boundMs / 1000} s in vain for ${what}`);
    await pause(pauseMs);
  }
}
