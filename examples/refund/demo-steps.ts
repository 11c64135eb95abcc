// The five things that the demo shows by itself. Each step is a run of its own, on an order of its own, and
// ends with counts: what the ledger really did, not what anybody says it did. Every wait is for a condition.
import type { Fact, Shown } from './api-client.ts';
import type { Demo } from './demo-parts.ts';
import { trailTable } from './trail-table.ts';
import { until } from './until.ts';

/** Says what happens, and holds what was counted against what it must be. */
export interface Show {
  title(text: string): void;
  say(text: string): void;
  check(what: string, actual: unknown, expected: unknown): void;
}

const once = '1 request, 1 key, 1 refund';
const never = '0 requests, 0 keys, 0 refunds';

export async function approveAndKillTheWorker(demo: Demo, show: Show): Promise<void> {
  show.title('(a) Approved; then the worker is killed in the middle of the refund');
  await demo.ledger.hold();
  const asked = await ask(demo, show, 'ord-1001', '25.00');
  show.say('the ledger is told to keep its answers to itself for now');

  const answer = await demo.anna.decide('approve', asked.key, { payloadHash: asked.payloadHash });
  show.say(`Anna approves exactly that: ${answer.status} ${String(answer.body['verdict'])}`);

  await until(
    'the refund to be carried out',
    async () => (await demo.ledger.counts('ord-1001')) === once || undefined,
  );
  const pid = demo.workerPid();
  const signal = await demo.killWorker();
  show.say(`the ledger has paid, and the worker (process ${pid}) does not know it yet: kill -9`);
  show.check('the worker was ended by', signal, 'SIGKILL');

  await demo.startWorker();
  await demo.ledger.release();
  show.say(`a new worker (process ${demo.workerPid()}) starts, and the ledger answers again`);
  show.say('the new worker cannot know whether the refund happened: it sends it again, under the same key');
  await checkEnd(demo, show, asked, 'completed', '2 requests, 1 key, 1 refund');

  show.say('the trail of this run, read from the history of its execution:');
  show.say('');
  const trail = await demo.anna.trail(asked.runId);
  for (const line of trailTable(trail)) show.say(line);
  show.say('');
  show.check('approvals in the trail', count(trail, 'approval_granted'), 1);
  show.check('results in the trail', count(trail, 'tool_result'), 1);
}

export async function reject(demo: Demo, show: Show): Promise<void> {
  show.title('(b) Rejected: nothing is sent');
  const asked = await ask(demo, show, 'ord-1002', '990.00');
  const reason = 'The order was for 99.00';
  const answer = await demo.ben.decide('reject', asked.key, { reason });
  show.say(`Ben rejects, because "${reason}": ${answer.status} ${String(answer.body['verdict'])}`);
  await checkEnd(demo, show, asked, 'rejected', never);
}

export async function decideTwice(demo: Demo, show: Show): Promise<void> {
  show.title('(c) A second approver, a moment later');
  const asked = await ask(demo, show, 'ord-1003', '12.50');
  const { payloadHash } = asked;
  const first = await demo.anna.decide('approve', asked.key, { payloadHash });
  const second = await demo.ben.decide('approve', asked.key, { payloadHash });
  show.say(`Anna approves: ${first.status} ${String(first.body['verdict'])}`);
  show.say(
    `Ben approves:  ${second.status} ${String(second.body['code'])}: ${String(second.body['detail'])}`,
  );
  const winner = second.body['winner'] as { by?: { id: string } } | undefined;
  show.check('Ben is answered', second.status, 409);
  show.check('and told who was first', winner?.by?.id, 'anna');
  await checkEnd(demo, show, asked, 'completed', once);
}

export async function approveSomethingElse(demo: Demo, show: Show): Promise<void> {
  show.title('(d) An approval of something else than what is asked');
  const other = await ask(demo, show, 'ord-1004', '8.00');
  const asked = await ask(demo, show, 'ord-1005', '8000.00');
  const answer = await demo.anna.decide('approve', asked.key, { payloadHash: other.payloadHash });
  show.say('Anna looks at the first one, and her approval goes to the second:');
  show.say(`${answer.status} ${String(answer.body['code'])}: ${String(answer.body['detail'])}`);
  show.check('Anna is answered', answer.status, 412);
  show.check('the second one is', (await demo.anna.approval(asked.key))?.state, 'pending');
  await demo.ben.decide('reject', asked.key, { reason: 'Not this one' });
  await checkEnd(demo, show, asked, 'rejected', never);
  await demo.anna.decide('approve', other.key, { payloadHash: other.payloadHash });
  await checkEnd(demo, show, other, 'completed', once);
}

export async function killTemporal(demo: Demo, show: Show): Promise<void> {
  show.title('(e) Temporal itself is killed while a run waits');
  const asked = await ask(demo, show, 'ord-1006', '40.00');
  await demo.killTemporal();
  show.say('kill -9 of the Temporal server');
  const meanwhile = await demo.anna.approval(asked.key);
  show.check('while it is down the API gives', meanwhile?.state ?? 'no answer', 'no answer');
  show.say('it starts again on its database file');
  await demo.restartTemporal();
  const later = await until('Temporal to answer', () => demo.anna.approval(asked.key));
  show.check('the approval is still', later.state, 'pending');
  show.check('for the same payload', later.payloadHash, asked.payloadHash);
  const answer = await demo.anna.decide('approve', asked.key, { payloadHash: asked.payloadHash });
  show.say(`Anna approves: ${answer.status} ${String(answer.body['verdict'])}`);
  await checkEnd(demo, show, asked, 'completed', once);
}

/** The shop starts a run, and it asks. */
export async function ask(demo: Demo, show: Show, order: string, amount: string): Promise<Shown> {
  const runId = await demo.shop.startRefund(order, amount);
  const shown = await demo.anna.shown(runId);
  show.say(`the run ${runId} asks: ${shown.title}`);
  show.say(`  what is shown  ${shown.tool} ${JSON.stringify(shown.arguments)}`);
  show.say(`  its hash       ${shown.payloadHash}`);
  return shown;
}

async function checkEnd(
  demo: Demo,
  show: Show,
  { runId, arguments: args }: Shown,
  ending: string,
  ledger: string,
): Promise<void> {
  show.check(`the run ${runId} is`, await until(`${runId} to end`, () => demo.anna.ending(runId)), ending);
  show.check('the ledger has', await demo.ledger.counts(String(args['order'])), ledger);
}

function count(trail: readonly Fact[], type: string): number {
  return trail.filter((fact) => fact.type === type).length;
}
