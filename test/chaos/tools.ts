// The tools of chaos runs: each one is the shipped http tool on one path of ./target.ts, so that what is said of
// answers (409, 422, 429, a cut body) is the product's. Times are short, so that a run is.
import { z } from 'zod';
import { defineTool, type Tool, type ToolContext } from '../../src/tool.ts';
import { httpTool } from '../../src/tools/http-tool.ts';
import type { HttpOutput } from '../../src/tools/http-answer.ts';

/** An attempt that takes longer has timed out; the target hangs longer, and is slow for less. */
const timeoutMs = 5_000;
const attempts = 8;

const payment = z.strictObject({
  order: z.string().min(1),
  amount: z.string().regex(/^[0-9]+\.[0-9]{2}$/, 'must be a decimal string such as "12.50"'),
  currency: z.string().length(3).default('EUR'),
});

/** `targetUrl`: http://127.0.0.1:<port> */
export function chaosTools(targetUrl: string): Tool[] {
  const { host } = new URL(targetUrl);
  const reach = { allowHosts: [host], allowPrivate: ['127.0.0.1'], env: {}, timeoutMs };
  const keyed = httpTool({ ...reach, name: 'keyed', targetTakesKey: true });
  const plain = httpTool({ ...reach, name: 'plain' });
  const post = (via: Tool, path: string, tool: string) => async (context: ToolContext, args: unknown) => {
    const call = { method: 'POST', url: targetUrl + path, headers: { 'x-tool': tool }, body: args };
    return ((await via.run(context, call)) as HttpOutput).body;
  };
  const pays = { arguments: payment, requiresApproval: true, timeoutMs, attempts } as const;
  return [
    defineTool({ ...pays, name: 'pay.keyed', idempotency: 'key', run: post(keyed, '/keyed', 'pay.keyed') }),
    defineTool({ ...pays, name: 'pay.none', idempotency: 'none', run: post(plain, '/plain', 'pay.none') }),
    defineTool({
      ...pays,
      name: 'pay.short',
      idempotency: 'key',
      keyTtl: 2_000,
      run: post(keyed, '/keyed', 'pay.short'),
    }),
    defineTool({
      ...pays,
      name: 'pay.lookup',
      idempotency: 'lookup',
      async find({ idempotencyKey, signal }) {
        const url = `${targetUrl}/lookup?key=${encodeURIComponent(idempotencyKey)}`;
        const found = (await (await fetch(url, { signal })).json()) as {
          found: boolean | 'unknown';
          output?: unknown;
        };
        if (found.found === true) return { found: true, output: found.output };
        return { found: found.found };
      },
      // what the http tool says is unclear, this one asks for
      run: post(keyed, '/lookup', 'pay.lookup'),
    }),
    defineTool({
      name: 'note.send',
      arguments: z.looseObject({}),
      idempotency: 'key',
      timeoutMs,
      attempts,
      run: post(keyed, '/keyed', 'note.send'),
    }),
  ];
}
