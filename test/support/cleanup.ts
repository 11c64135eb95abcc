// What a test file opened is closed after its last test, whatever became of the tests: one child, worker or
// connection left open would keep the file's process alive until the runner gives it up.
import { after } from 'node:test';

type Close = () => Promise<void>;

const open: Close[] = [];

/** Closes it after the file, the last opened first. `close` must bear being called when it is closed already. */
export function closeAfterFile(close: Close): void {
  open.push(close);
}

async function closeAll(): Promise<void> {
  const failures: unknown[] = [];
  for (let close = open.pop(); close; close = open.pop()) {
    await close().catch((error: unknown) => failures.push(error));
  }
  if (failures.length > 0) throw new AggregateError(failures, `after the file: ${failures.join('; ')}`);
}

// Registered while the file is loaded: `after` inside a hook or a test would close at the end of that one.
// A child process or a script that uses these helpers is no test file, and node:test must not start there.
if (process.argv[1]?.endsWith('.test.ts')) after(closeAll);
