// examples/own-workflow as an engineer runs it: its worker as a process, its script for starting and deciding.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { eventually } from './support/eventually.ts';
import { clientOf, factsOf } from './support/gates.ts';
import { startLedger } from './support/ledger.ts';
import { skipWithoutCache as skip } from './support/project.ts';
import { startScript, type Script } from './support/script.ts';
import { bundleFromSource } from './support/source-bundle.ts';
import { ownServer } from './support/temporal.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

const example = 'examples/own-workflow';

test(
  'examples/own-workflow: told, asked, paid, and the goodwill rejected, over a killed worker',
  { skip },
  async () => {
    const temporal = await ownServer({ keepHistories: false }); // its types are in no bundle of the tests
    const countersign = clientOf(temporal);
    const ledger = await startLedger();
    const bundle = await bundleFromSource(
      fileURLToPath(new URL(`../${example}/workflows.ts`, import.meta.url)),
    );
    const env = {
      TEMPORAL_ADDRESS: temporal.address,
      COUNTERSIGN_SECRETS_FILE: join(temporaryFolder(), 'secrets', 'secrets.json'),
      LEDGER_URL: ledger.url,
      WORKFLOW_BUNDLE: bundle,
      USER: 'ann',
    };
    const order = async (...args: string[]): Promise<string> => {
      const script = startScript(`${example}/order.ts`, { args, env });
      assert.equal(await script.ended, 0, script.stderr());
      return script.stdout().trim();
    };
    const startWorker = async (): Promise<Script> => {
      const worker = startScript(`${example}/worker.ts`, { env });
      await worker.says(/worker polls/);
      return worker;
    };

    const worker = await startWorker();
    assert.equal(await order('start', 'ord-1', '25.00'), 'return-ord-1');
    const shown = async (title: string) =>
      eventually(async () => {
        const gates = (await countersign.describeRun('return-ord-1'))?.approvals ?? [];
        return gates.some(({ memo }) => memo.state === 'pending' && memo.title === title);
      });
    await shown('Refund 25.00 for ord-1');
    const { payloadHash } = JSON.parse(await order('show', 'ord-1')) as { payloadHash: string };
    worker.signal('SIGKILL');
    assert.equal(await worker.ended, 'SIGKILL');

    await order('approve', 'ord-1', payloadHash); // taken while no worker is there
    const next = await startWorker();
    await shown('payments.refund');
    const goodwill = JSON.parse(await order('show', 'ord-1')) as { payloadHash: string };
    assert.notEqual(goodwill.payloadHash, payloadHash);
    await order('reject', 'ord-1', goodwill.payloadHash);
    assert.deepEqual(JSON.parse(await order('result', 'ord-1')), { refund: 'paid', goodwill: false });

    const { root } = (await countersign.describeRun('return-ord-1'))!;
    assert.deepEqual(
      (await ledger.lines()).map(({ key, body, outcome }) => ({ key, body, outcome })),
      [
        { key: `${root}:tell-warehouse`, body: { order: 'ord-1' }, outcome: 'refunded' },
        {
          key: `${root}:refund`,
          body: { order: 'ord-1', amount: '25.00', currency: 'EUR' },
          outcome: 'refunded',
        },
      ],
    );
    const [granted] = await factsOf(countersign, 'return-ord-1', 'approval_granted');
    assert.deepEqual([granted?.decision?.via, granted?.by], ['signal', { id: 'ann', verified: false }]);
    next.signal('SIGTERM');
    assert.equal(await next.ended, 0, next.stderr());
  },
);
