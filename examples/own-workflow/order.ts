// Starts the workflow, shows what waits, and decides on exactly that.
//   order.ts start ord-1001 25.00 · order.ts show ord-1001 · order.ts approve|reject ord-1001 <payload hash>
import { Client, Connection } from '@temporalio/client';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { createClient } from 'countersign';
import type { ReturnedOrder } from './workflows.ts';

const [command, order = '', detail = ''] = process.argv.slice(2);
const runId = `return-${order}`;
const taskQueue = 'orders';
const { connectionOptions, namespace = 'default' } = loadClientConnectConfig();
const connection = await Connection.connect(connectionOptions);
const temporal = new Client({ connection, namespace });
const countersign = createClient({ client: temporal, namespace, taskQueue });

/** The gate that waits now, from the memo: no worker has to be up for it. */
async function pending() {
  const run = await countersign.describeRun(runId);
  const gate = run?.approvals.find(({ memo }) => memo.state === 'pending');
  if (run === undefined || gate === undefined) throw new Error(`nothing waits in ${runId}`);
  return { root: run.root, ...gate };
}

async function decide(decision: 'approve' | 'reject', seenHash: string): Promise<void> {
  const { key, root, memo } = await pending();
  if (memo.hash !== seenHash) throw new Error(`another payload waits now: ${memo.title}, ${memo.hash}`);
  // sent by hand it is recorded as unverified; with the API's token, POST /approvals/<key>/approve is signed
  await temporal.workflow.getHandle(runId).signal('decide', {
    v: 1,
    key,
    root,
    decision,
    payloadHash: seenHash,
    by: { id: process.env['USER'] ?? 'somebody' },
  });
}

switch (command) {
  case 'start': {
    const args: [ReturnedOrder] = [{ order, amount: detail }];
    await temporal.workflow.start('returnOrder', { workflowId: runId, taskQueue, args });
    console.log(runId);
    break;
  }
  case 'show': {
    const { key, memo } = await pending();
    console.log(JSON.stringify({ key, title: memo.title, payloadHash: memo.hash }));
    break;
  }
  case 'approve':
  case 'reject':
    await decide(command, detail);
    break;
  case 'result':
    console.log(JSON.stringify(await temporal.workflow.getHandle(runId).result()));
    break;
  default:
    console.error(
      'usage: order.ts start <order> <amount> | show <order> | approve <order> <hash> | result <order>',
    );
    process.exitCode = 64;
}
await connection.close();
