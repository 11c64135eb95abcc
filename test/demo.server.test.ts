// The demo, as `npm run demo -- --auto` runs it: its counts, its exit code, and that nothing of it stays.
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { describe, test } from 'node:test';
import { keepHistories } from './support/kept-histories.ts';
import { skipWithoutCache as skip } from './support/project.ts';
import { descendantsOf, isRunning, startScript } from './support/script.ts';

const demo = 'examples/refund/demo.ts';
/** The lines of one step with a mark before them. */
function checksOf(output: string, step: string): string[] {
  const [, text = ''] = output.split(`\n(${step}) `);
  const [own = ''] = text.split(/\n\([a-z]\) |\nEnding/);
  return own.split('\n').flatMap((line) => /^ +([✓✗] .*)$/.exec(line)?.[1] ?? []);
}

// Two at a time: that also shows that two demos on one machine do not meet.
describe('the demo', { concurrency: true, skip }, () => {
  test('P4, P2, P3: every count is right, and the demo exits 0', async () => {
    const run = startScript(demo, { args: ['--keep'] });
    await run.says(/\n\(e\) /);
    const started = descendantsOf(run.pid);
    assert.ok(started.length >= 4, `Temporal, ledger, API and worker run, and these do: ${started.join()}`);

    assert.equal(await run.ended, 0, run.stdout() + run.stderr());
    const out = run.stdout();
    assert.deepEqual(checksOf(out, 'a'), [
      '✓ the worker was ended by SIGKILL',
      '✓ the run refund-ord-1001 is completed',
      '✓ the ledger has 2 requests, 1 key, 1 refund',
      '✓ approvals in the trail 1',
      '✓ results in the trail 1',
    ]);
    assert.match(out, /\n +6 .* tool_result +refund +attempt 2: \{"refund":"re_1"\}\n/);
    assert.deepEqual(checksOf(out, 'b'), [
      '✓ the run refund-ord-1002 is rejected',
      '✓ the ledger has 0 requests, 0 keys, 0 refunds',
    ]);
    assert.deepEqual(checksOf(out, 'c'), [
      '✓ Ben is answered 409',
      '✓ and told who was first anna',
      '✓ the run refund-ord-1003 is completed',
      '✓ the ledger has 1 request, 1 key, 1 refund',
    ]);
    assert.deepEqual(checksOf(out, 'd'), [
      '✓ Anna is answered 412',
      '✓ the second one is pending',
      '✓ the run refund-ord-1005 is rejected',
      '✓ the ledger has 0 requests, 0 keys, 0 refunds',
      '✓ the run refund-ord-1004 is completed',
      '✓ the ledger has 1 request, 1 key, 1 refund',
    ]);
    assert.deepEqual(
      checksOf(out, 'e').map((line) => line.replace(/sha256:\S+/, '<hash>')),
      [
        '✓ while it is down the API gives no answer',
        '✓ the approval is still pending',
        '✓ for the same payload <hash>',
        '✓ the run refund-ord-1006 is completed',
        '✓ the ledger has 1 request, 1 key, 1 refund',
      ],
    );
    assert.deepEqual(started.filter(isRunning), []);

    const [, folder = ''] = await run.says(/stay in (\/.*\/\.countersign\/demo\/at-.*)\n/);
    await keepHistories(folder);
    rmSync(folder, { recursive: true });
  });

  test('one count that is wrong makes it exit 1', async () => {
    const run = startScript(demo);
    const [, ledger] = await run.says(/ledger +(http:\S+)\/ledger/);
    // somebody pays the order that the demo will reject
    const response = await fetch(`${ledger}/refunds`, {
      method: 'POST',
      headers: { 'idempotency-key': 'from-elsewhere' },
      body: JSON.stringify({ order: 'ord-1002' }),
    });
    assert.equal(response.status, 201);

    assert.equal(await run.ended, 1, run.stdout() + run.stderr());
    const wrong = run
      .stdout()
      .split('\n')
      .filter((line) => line.includes('✗'));
    assert.deepEqual(wrong, [
      '  ✗ the ledger has 1 request, 1 key, 1 refund, and it must be 0 requests, 0 keys, 0 refunds',
    ]);
    assert.match(run.stdout(), /\n1 count\(s\) are wrong\.\n$/);
    const [, folder = ''] = await run.says(/stay in (\/.*\/\.countersign\/demo\/at-.*)\n/);
    await keepHistories(folder);
    rmSync(folder, { recursive: true });
  });
});

test('a demo that is interrupted ends all that it started', { skip }, async () => {
  const run = startScript(demo);
  await run.says(/refund-ord-1001 asks/);
  const started = descendantsOf(run.pid);
  assert.ok(started.length >= 4, `Temporal, ledger, API and worker run, and these do: ${started.join()}`);
  run.signal('SIGINT');
  assert.equal(await run.ended, 130, run.stderr());
  assert.deepEqual(started.filter(isRunning), []);
  assert.doesNotMatch(run.stdout(), /✗|stay in/);
});
