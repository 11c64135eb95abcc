// What the bench is asked to do: which parts, and how much of each.
import { parseArgs } from 'node:util';

export const parts = ['cost', 'latency', 'decisions', 'memory', 'list', 'recovery', 'http'] as const;
export type Part = (typeof parts)[number];

export interface BenchOptions {
  only: readonly Part[];
  /** of each kind, for events, latency and HTTP */
  runs: number;
  /** pending at once when all are decided */
  burst: number;
  /** rounds of that, of each kind */
  rounds: number;
  /** pending in a list: few, and many; many is also what memory is measured with */
  few: number;
  many: number;
  /** kills of each sort */
  kills: number;
  json: boolean;
}

type Counts = Pick<BenchOptions, 'runs' | 'burst' | 'rounds' | 'few' | 'many' | 'kills'>;

const full: Counts = { runs: 200, burst: 500, rounds: 3, few: 200, many: 2_000, kills: 5 };
const quick: Counts = { runs: 30, burst: 100, rounds: 1, few: 50, many: 300, kills: 1 };

export const usage = `npm run bench -- [--quick] [--json] [--only ${parts.join(',')}]
  ${Object.entries(full)
    .map(([name, count]) => `[--${name} ${count}]`)
    .join(' ')}`;

/** @throws Error for an unknown option, part or count */
export function readOptions(args: readonly string[]): BenchOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      only: { type: 'string' },
      ...Object.fromEntries(Object.keys(full).map((name) => [name, { type: 'string' as const }])),
    },
  }) as { values: Record<string, string | boolean | undefined> };
  const counts = { ...(values['quick'] === true ? quick : full) };
  for (const name of Object.keys(full) as (keyof Counts)[]) {
    const text = values[name];
    if (typeof text === 'string') counts[name] = readCount(name, text);
  }
  if (counts.few > counts.many) throw new Error(`--few ${counts.few} is more than --many ${counts.many}`);
  const only = typeof values['only'] === 'string' ? values['only'].split(',').map(readPart) : parts;
  return { ...counts, only, json: values['json'] === true };
}

function readCount(name: string, text: string): number {
  const count = Number(text);
  if (Number.isSafeInteger(count) && count >= 1) return count;
  throw new Error(`--${name} must be a whole number from 1, got "${text}"`);
}

function readPart(text: string): Part {
  const part = parts.find((one) => one === text);
  if (part === undefined) throw new Error(`--only takes ${parts.join(', ')}, got "${text}"`);
  return part;
}
