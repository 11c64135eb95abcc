// `npm run dev`: `countersign dev` on this example, and the ledger that its tool pays through, unless
// LEDGER_URL names another payments target.
import { fileURLToPath } from 'node:url';
import { startPart, type Part } from '../../src/cli/part.ts';
import { stopWish } from '../../src/cli/stop.ts';
import { say } from '../../src/cli/talk.ts';

/** `countersign dev` ends its own parts first, each in its own time; killed, it could not. */
const devStopBoundMs = 60_000;

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

async function startLedger(): Promise<Part> {
  return startPart({
    name: 'ledger',
    args: ['--import', 'tsx', here('./ledger.ts'), '--end-with-stdin'],
    env: process.env,
    say: (line) => say(`[ledger] ${line}`),
  });
}

async function run(parts: { ledger?: Part; dev?: Part }): Promise<string> {
  let url = process.env['LEDGER_URL'];
  if (!url) {
    parts.ledger = await startLedger();
    url = String((await parts.ledger.ready)['url']);
  }
  parts.dev = startPart({
    name: 'countersign dev',
    args: [here('../../dist/cli/main.js'), 'dev', '--config', here('./countersign.config.ts')],
    env: { ...process.env, LEDGER_URL: url },
    say,
  });
  const { url: api } = await parts.dev.ready;
  say(`Ledger       ${url}/ledger`);
  say('');
  say('Start a refund:');
  say(
    `  curl ${String(api)}/runs -H "Authorization: Bearer <API token>" -H 'Content-Type: application/json' \\`,
  );
  say(`    -d '{"spec": "refund", "input": {"orderId": "ord-1001", "amount": "25.00"}}'`);
  say('');
  return Promise.race([
    parts.dev.ended,
    ...(parts.ledger === undefined ? [] : [parts.ledger.ended.then((how) => `the ledger ended: ${how}`)]),
  ]);
}

const stop = stopWish();
const parts: { ledger?: Part; dev?: Part } = {};
let exitCode = 0;
try {
  const ended = run(parts).then((how) => {
    throw new Error(how);
  });
  await Promise.race([stop, ended]);
} catch (error) {
  say(`npm run dev: ${error instanceof Error ? error.message : String(error)}`);
  exitCode = 1;
}
await parts.dev?.stop(devStopBoundMs);
await parts.ledger?.stop();
process.exit(exitCode);
