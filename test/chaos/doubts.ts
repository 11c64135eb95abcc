// What is in doubt goes to a person, and a person looks into the target's books before they answer. Some doubts
// are left as they are: waiting for an answer is a legal end too.
import { decideByHttp } from './operations.ts';
import { approvalBy } from './plan-operations.ts';
import { createRandom } from './random.ts';
import { orderOf } from './specs.ts';
import { clock, describe, type Stage } from './stage.ts';

const asked = new WeakMap<Stage, Set<string>>();

/** What a thawed worker or a proxy still held is out by then, so that nobody looks into the books too early. */
const graceMs = 1_000;

/** Answers each question once. False: there is one that is to be answered later. */
export async function settleDoubts(stage: Stage, runs: readonly { id: string }[]): Promise<boolean> {
  const isEarly = clock() < (stage.healedAt ?? Infinity) + graceMs && stage.plan.faults.length > 0;
  const seen = asked.get(stage) ?? new Set<string>();
  asked.set(stage, seen);
  for (const { id } of runs) {
    const run = await describe(stage, id);
    if (run === undefined || run.closeStatus !== undefined) continue;
    for (const { position, key, memo } of run.approvals) {
      // a question can be asked again after a reset or a second doubt: by its hash and time it is another one
      const question = `${key} ${memo.hash} ${memo.requestedAt}`;
      if (memo.state !== 'pending' || !/\/in-doubt(?:#\d+)?$/.test(position) || seen.has(question)) continue;
      if (isEarly) return false;
      const isAnswered = await answer(stage, id, { key, position, hash: memo.hash ?? '', root: run.root });
      if (!isAnswered) return false;
      seen.add(question);
    }
  }
  return true;
}

/** False: the target has not closed its books yet. */
async function answer(
  stage: Stage,
  runId: string,
  gate: { key: string; position: string; hash: string; root: string },
): Promise<boolean> {
  const random = createRandom(stage.plan.seed + gate.position.length);
  if (random.chance(0.3)) return true;
  const run =
    [...stage.runs.values()].find(({ label }) => runId.startsWith(label)) ?? (await byStart(stage, runId));
  const name = gate.position.replace(/(?:#retry-\d+)?\/in-doubt.*$/, '').replace(/#\d+$/, '');
  const planned = run?.start.gates.find((one) => one.name === name);
  const order = planned === undefined || run === undefined ? `${runId}:${name}` : orderOf(run.label, planned);
  const { lines, underway } = await stage.world.target.state(order);
  if (underway > 0) return false;
  const isDone = lines.some(
    ({ outcome, body }) => outcome === 'done' && (body as { order: string }).order === order,
  );
  const operation = approvalBy('bookkeeper', '', { op: isDone ? 'respond' : 'approve', person: 'cat' });
  const seen = { ...gate, runId, state: 'pending' };
  // the gate of an effect without one (a note) has no plan; only its arguments would be needed, and are not here
  const of = planned ?? { name, child: '', tool: 'pay.keyed', amount: '0.00', ttlMs: 0, expires: false };
  await decideByHttp(stage, operation, seen, of, `books-${gate.key}-${Math.round(clock())}`);
  return true;
}

async function byStart(stage: Stage, runId: string) {
  for (const run of stage.runs.values()) if ((await run.started) === runId) return run;
  return undefined;
}
