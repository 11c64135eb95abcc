// All runs, page by page and a few at a time, for who needs the facts of all of them.
import type { CountersignClient, RunDescription } from '../countersign-client.ts';

/**
 * Rows a page: nobody waits for one page, and the embedded and self-hosted servers allow few lists a second.
 * A row is at most 80 KB (a memo of 200 gates), a message at most 128 MB.
 */
const pageSize = 100;

/** Histories read at a time, so that a decision that comes now finds Temporal free. */
const atOnce = 4;

/**
 * A run that closed is in the lists a while later; this is far beyond what a healthy index needs, and costs
 * one row more for each run that closed in that time.
 */
export const closeLagMs = 60_000;

/** Calls `look` for every execution that is open or closed since then. */
export async function lookAtRuns(
  client: Pick<CountersignClient, 'listChanged'>,
  closedSince: number,
  look: (run: RunDescription) => Promise<unknown>,
): Promise<void> {
  let cursor: string | undefined;
  do {
    const page = await client.listChanged({
      closedSince: Math.max(0, closedSince - closeLagMs),
      pageSize,
      ...(cursor === undefined ? {} : { cursor }),
    });
    const queue = [...page.runs];
    const work = async (): Promise<void> => {
      for (let run = queue.shift(); run !== undefined; run = queue.shift()) await look(run);
    };
    await Promise.all(Array.from({ length: atOnce }, work));
    cursor = page.cursor;
  } while (cursor !== undefined);
}
