// The verdicts of decisions, by query. A worker answers one query a run at a time (Temporal buffers only
// one while a workflow task is pending), so all who wait for a run share one. A query tells nothing of a
// signal that came after it: whoever joins while one is in flight waits for the next.
import { NoWorkerError, TemporalUnavailableError, type CountersignClient } from '../countersign-client.ts';
import type { Receipt } from '../core/verdict.ts';

export interface ReceiptDesk {
  /** The judged receipt that `fits`, or undefined when there is none within the budget. */
  waitFor(
    runId: string,
    decisionId: string,
    fits: (receipt: Receipt) => boolean,
  ): Promise<Receipt | undefined>;
}

interface Waiter {
  decisionId: string;
  /** performance.now() at which it gives up */
  deadline: number;
  fits: (receipt: Receipt) => boolean;
  settle: (receipt: Receipt | undefined) => void;
}

interface Queue {
  waiting: Set<Waiter>;
  /** ends a pause early: a newcomer's signal is already in history */
  wake?: () => void;
}

/**
 * Milliseconds between two queries of a run whose decisions are not judged yet. The first is about what
 * judging takes (10 ms); the last keeps a slow worker free for its work.
 */
const pausesMs = [10, 25, 50, 100];
const longestPauseMs = 200;

/**
 * Temporal never answers a query that was waiting when its task was given out again or its run closed.
 * So a first one is given up after 1 s, which a healthy worker never needs; the next has all the time left.
 */
const firstTryMs = 1_000;

export function createReceiptDesk(
  client: Pick<CountersignClient, 'queryReceipts'>,
  budgetMs: number,
  onBug: (error: unknown) => void,
): ReceiptDesk {
  const queues = new Map<string, Queue>();

  async function serve(runId: string, queue: Queue): Promise<void> {
    let pause = 0;
    let tryMs = firstTryMs;
    try {
      while (queue.waiting.size > 0) {
        const batch = [...queue.waiting];
        const answered = await askFor(client, runId, batch, tryMs);
        tryMs = answered ? firstTryMs : Infinity;
        if (!answered) continue;
        if ([...queue.waiting].some((waiter) => !batch.includes(waiter))) pause = 0;
        else if (queue.waiting.size > 0) await pauseFor(queue, pausesMs[pause++] ?? longestPauseMs);
      }
    } catch (error) {
      // the decision is in history: that is what is answered, and the bug goes to the log
      onBug(error);
      for (const waiter of [...queue.waiting]) waiter.settle(undefined);
    } finally {
      // in the same turn as the last look at `waiting`: nobody can join a queue that is not served
      queues.delete(runId);
    }
  }

  return {
    waitFor(runId, decisionId, fits) {
      return new Promise((resolve) => {
        const served = queues.get(runId);
        const queue = served ?? { waiting: new Set() };
        const waiter: Waiter = {
          decisionId,
          deadline: performance.now() + budgetMs,
          fits,
          settle(receipt) {
            clearTimeout(timer);
            queue.waiting.delete(waiter);
            resolve(receipt);
          },
        };
        // its own clock: a shared query may take longer than one waiter's budget
        const timer = setTimeout(() => waiter.settle(undefined), budgetMs);
        queue.waiting.add(waiter);
        queue.wake?.();
        if (served !== undefined) return;
        queues.set(runId, queue);
        void serve(runId, queue);
      });
    },
  };
}

/** False when the query was given up after `tryMs`, with time left to ask again. */
async function askFor(
  client: Pick<CountersignClient, 'queryReceipts'>,
  runId: string,
  batch: readonly Waiter[],
  tryMs: number,
): Promise<boolean> {
  const ids = [...new Set(batch.map((waiter) => waiter.decisionId))];
  const askedAt = performance.now();
  const leftMs = Math.max(1, Math.max(...batch.map((waiter) => waiter.deadline)) - askedAt);
  const timeoutMs = Math.min(leftMs, tryMs);
  try {
    const receipts = await client.queryReceipts(runId, ids, Math.ceil(timeoutMs));
    for (const waiter of batch) {
      const receipt = receipts.findLast(
        (candidate) => candidate.decisionId === waiter.decisionId && waiter.fits(candidate),
      );
      if (receipt !== undefined && receipt.verdict !== 'pending') waiter.settle(receipt);
    }
  } catch (error) {
    // the decision is in history either way, so a lost query only means that its verdict is not known yet
    if (error instanceof TemporalUnavailableError) return true;
    if (!(error instanceof NoWorkerError)) throw error;
    // Said at once, it may only mean that no poller is free: Temporal counts one in use as gone when its last
    // poll began more than 20 s ago. So that is asked again, like a verdict that is not there yet.
    const waitedInVain = performance.now() - askedAt > timeoutMs / 2;
    if (waitedInVain && timeoutMs < leftMs) return false;
  }
  return true;
}

function pauseFor(queue: Queue, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      delete queue.wake;
      resolve();
    };
    const timer = setTimeout(end, ms);
    queue.wake = end;
  });
}
