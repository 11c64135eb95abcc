// `npm run bench` works, and what a gated run costs in events and tasks is counted there as it is here. No time is
// asserted: this machine may be busy with ten other things.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { skipWithoutCache as skip } from './support/project.ts';
import { descendantsOf, isRunning, startScript } from './support/script.ts';

const counts = { runs: 2, burst: 3, rounds: 1, few: 1, many: 2, kills: 1 };
const bench = 'bench/main.ts';

test(
  'the bench measures every part, and a gated run costs 23 events and 3 tasks beside 17 and 3',
  { skip },
  async () => {
    const args = Object.entries(counts).flatMap(([name, count]) => [`--${name}`, String(count)]);
    const run = startScript(bench, { args: ['--json', ...args] });
    await run.says(/memory and list/);
    const started = descendantsOf(run.pid);
    assert.notEqual(started.length, 0);
    assert.equal(await run.ended, 0, run.stderr());
    const result = JSON.parse(run.stdout()) as Record<string, Record<string, unknown>>;
    assert.deepEqual(result['cost'], {
      handWritten: { events: 17, workflowTasks: 3 },
      countersign: { events: 23, workflowTasks: 3 },
    });
    const { few, many } = result['list'] as Record<string, { pending: number; count: number }>;
    const goals = result['goals'] as unknown as { name: string; met: boolean }[];
    assert.deepEqual(
      goals.map(({ name }) => name),
      [
        'events of a gated run',
        'workflow tasks of a gated run',
        'signal → effect, p50 against hand-written',
        'decisions a second against hand-written',
        'memory of a pending run against hand-written',
        `a list page with ${many!.pending} pending, p50`,
        'a list page, many pending against few',
        'recovery, killed idle',
        'recovery, killed inside a recording',
        'recovery, killed inside the effect',
      ],
    );
    assert.equal(many!.pending - few!.pending, 1);
    assert.deepEqual([few!.count, many!.count], [60, 60]);
    const { http, latency } = result as Record<string, Record<string, Record<string, unknown>>>;
    assert.equal(http?.['approveTo200Ms']?.['count'], counts.runs);
    assert.deepEqual(
      Object.values(latency?.['signalToEffectMs'] ?? {}).map((one) => (one as { count: number }).count),
      [counts.runs, counts.runs],
    );
    assert.deepEqual(started.filter(isRunning), [], 'it leaves nobody behind');
  },
);

test('the bench says what it takes when it is asked for something else', async () => {
  for (const args of [['--runs', '0'], ['--only', 'speed'], ['--few', '5', '--many', '2'], ['--fast']]) {
    const run = startScript(bench, { args });
    assert.equal(await run.ended, 64, run.stderr());
    assert.match(run.stderr(), /npm run bench -- \[--quick\]/);
    assert.equal(run.stdout(), '');
  }
});
