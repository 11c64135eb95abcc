// What the demo asks of the ledger: what it did, and to hold its answers back.

interface LedgerState {
  lines: { key: string | null; body: { order?: string }; outcome: string }[];
}

export interface LedgerClient {
  url: string;
  hold(): Promise<void>;
  release(): Promise<void>;
  /** What it did for one order, such as "2 requests, 1 key, 1 refund". */
  counts(order: string): Promise<string>;
}

export function ledgerClient(url: string): LedgerClient {
  const control = async (path: string): Promise<void> => {
    const response = await fetch(url + path, { method: 'POST' });
    if (!response.ok) throw new Error(`POST ${url}${path} answered ${response.status}`);
  };
  const read = async () => (await (await fetch(`${url}/ledger`)).json()) as LedgerState;
  return {
    url,
    hold: () => control('/hold'),
    release: () => control('/release'),
    async counts(order) {
      const lines = (await read()).lines.filter(({ body }) => body.order === order);
      const keys = new Set(lines.map(({ key }) => key)).size;
      const refunds = lines.filter(({ outcome }) => outcome === 'refunded').length;
      return `${some(lines.length, 'request')}, ${some(keys, 'key')}, ${some(refunds, 'refund')}`;
    },
  };
}

function some(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}
