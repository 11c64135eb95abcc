// Sandbox. How a run comes to a standstill, so that it can be carried into its next execution: effects and child
// runs end, gates go on until then; after that no gate takes a decision, nothing new starts, and no end is
// handed to its caller. What stands in a gate's queue, or has ended and was not handed over, is carried.
import { CancellationScope, condition } from '@temporalio/workflow';

/** effects, child runs, and what callers do with the end of a gate */
let underway = 0;
/** gates that are being frozen or have a decision judged: at most a recording each */
let moving = 0;
let closed = false;

export function isClosed(): boolean {
  return closed;
}

/** Resolves while the run is not being carried, and else when that was given up. */
export async function whileOpen(): Promise<void> {
  while (closed) await CancellationScope.nonCancellable(() => condition(() => !closed));
}

/** Work that must end before the run is carried. It starts at once, or not at all in this execution. */
export async function working<T>(work: () => T | Promise<T>): Promise<T> {
  if (closed) await whileOpen();
  underway += 1;
  try {
    return await work();
  } finally {
    underway -= 1;
  }
}

/** A step of a gate begins that is not carried in its middle. What it changes, it must have changed at its end. */
export function beginMotion(): void {
  moving += 1;
}

export function endMotion(): void {
  moving -= 1;
}

/** @throws CancelledFailure; the run goes on as before then */
export async function standStill(): Promise<void> {
  if (closed) return;
  // not at once: what was just returned to somebody must first reach them, and may start an effect
  let isFirstLook = true;
  await condition(() => {
    const isLater = !isFirstLook;
    isFirstLook = false;
    return isLater && underway === 0;
  });
  while (underway > 0) await condition(() => underway === 0);
  closed = true;
  try {
    await condition(() => moving === 0);
  } catch (error) {
    closed = false;
    throw error;
  }
}

/** The run goes on in this execution after all. */
export function goOn(): void {
  closed = false;
}
