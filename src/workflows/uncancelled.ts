// Sandbox. What is not cancelled with the run: a recording, since half a fact is none, and an effect, which is
// awaited and recorded. One scope for all of it: each new one costs three promises, and each promise a stack trace.
import { CancellationScope } from '@temporalio/workflow';

let scope: CancellationScope | undefined;

export function uncancelled<T>(work: () => Promise<T>): Promise<T> {
  scope ??= new CancellationScope({ cancellable: false });
  return scope.run(work);
}
