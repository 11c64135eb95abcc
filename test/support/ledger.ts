// The ledger of the refund example as a child process of a test.
import { join } from 'node:path';
import { spawnProcess, type TestProcess } from './processes.ts';
import { temporaryFolder } from './temporary-folder.ts';

export interface LedgerLine {
  time: string;
  path: string;
  key: string | null;
  payloadHash: string;
  body: unknown;
  outcome: 'refunded' | 'replayed' | 'conflict' | 'refused';
  refund?: string;
}

export interface LedgerCounts {
  /** lines */
  requests: number;
  /** different idempotency keys */
  keys: number;
  /** what was really carried out */
  refunds: number;
}

export interface Ledger {
  process: TestProcess;
  url: string;
  file: string;
  lines(): Promise<LedgerLine[]>;
  counts(): Promise<LedgerCounts>;
  /** From now on requests are carried out and written, and not answered until `release`. */
  hold(): Promise<void>;
  release(): Promise<void>;
  /** The next `times` requests are written, not carried out, and answered with `status`. */
  fail(fault: { status: number; times: number }): Promise<void>;
}

export async function startLedger(options: { file?: string } = {}): Promise<Ledger> {
  const file = options.file ?? join(temporaryFolder(), 'ledger.jsonl');
  const child = await spawnProcess('examples/refund/ledger.ts', {
    args: ['--file', file, '--end-with-stdin'],
  });
  const url = String(child.ready['url']);

  const read = async (): Promise<{ lines: LedgerLine[]; counts: LedgerCounts }> => {
    const response = await fetch(`${url}/ledger`);
    return (await response.json()) as { lines: LedgerLine[]; counts: LedgerCounts };
  };
  const control = async (path: string, body: unknown = {}): Promise<void> => {
    const response = await fetch(url + path, { method: 'POST', body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`POST ${path}: ${String(response.status)} ${await response.text()}`);
  };
  return {
    process: child,
    url,
    file,
    lines: async () => (await read()).lines,
    counts: async () => (await read()).counts,
    hold: () => control('/hold'),
    release: () => control('/release'),
    fail: (fault) => control('/fail', fault),
  };
}
