// Approvals as they come and go. It looks again and again: a list costs no worker, and a watcher that was
// cut off misses nothing that still waits.
import { readApproval } from './decide.ts';
import { outcomeText, type Approval } from './case-text.ts';
import { pages, type Online } from './commands/parts.ts';
import { CliProblem, exitCodes } from './exit-codes.ts';
import { printJsonLine, printTable } from './show.ts';

interface WatchWish {
  json: boolean;
  intervalMs: number;
  timeoutMs: number | undefined;
  query: Readonly<Record<string, string | undefined>>;
}

export async function watchApprovals(on: Online, wish: WatchWish): Promise<void> {
  const { terminal, api } = on;
  const { json, intervalMs, timeoutMs, query } = wish;
  const began = terminal.now();
  const waiting = new Map<string, Approval>();
  terminal.err('watching; Ctrl-C ends it');
  for (;;) {
    const seen = await readPending();
    if (seen !== undefined) {
      for (const approval of seen.values()) if (!waiting.has(approval.key)) tell(approval);
      for (const key of waiting.keys()) if (!seen.has(key)) await tellEnd(key);
      waiting.clear();
      for (const [key, approval] of seen) waiting.set(key, approval);
    }
    if (timeoutMs !== undefined && terminal.now() - began >= timeoutMs) return;
    await terminal.sleep(intervalMs);
  }

  /** Undefined while the API is away; the client has tried for a while by then. */
  async function readPending(): Promise<Map<string, Approval> | undefined> {
    try {
      const found = new Map<string, Approval>();
      const source = { path: '/approvals', member: 'approvals', query };
      for await (const { rows } of pages(on, source)) {
        for (const approval of rows as Approval[]) found.set(approval.key, approval);
      }
      return found;
    } catch (error) {
      if (!(error instanceof CliProblem) || error.exitCode !== exitCodes.unavailable) throw error;
      terminal.err(error.message);
      return undefined;
    }
  }

  async function tellEnd(key: string): Promise<void> {
    try {
      tell(await readApproval(api, key));
    } catch (error) {
      // no longer kept, or away: the next look is soon
      if (!(error instanceof CliProblem)) throw error;
      terminal.err(error.message);
    }
  }

  function tell(approval: Approval): void {
    if (json) return printJsonLine(terminal, approval);
    const { state, key, title, outcome } = approval;
    const line = outcome === undefined ? title : outcomeText(outcome);
    // a line each, as it comes: there is no table to align
    printTable(
      { ...terminal, outIsTty: false },
      [line],
      [
        { title: 'at', of: () => new Date(terminal.now()).toISOString() },
        { title: 'state', of: () => state },
        { title: 'key', of: () => key },
        { title: 'about', of: () => line },
      ],
    );
  }
}
