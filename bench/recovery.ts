// A worker is killed while another one stands by: how long until the work goes on there. The run is in the cache
// of the killed one, as it is in practice, so the server first has to notice that nobody answers.
import { monotonicMs, summary, type Summary } from './numbers.ts';
import type { Side } from './sides.ts';
import type { Stage } from './stage.ts';
import type { WorkerProcess, WorkerSettings } from './worker-process.ts';

export const kills = ['idle', 'insideRecording', 'insideEffect'] as const;
export type Kill = (typeof kills)[number];

interface Recovery {
  /** from the kill (idle: from the decision after it) until the effect starts in the other worker */
  untilEffectMs: number;
  untilClosedMs: number;
}

export type RecoveryResult = Record<Kill, { untilEffectMs: Summary; untilClosedMs: Summary }>;

const stickIn: Record<Kill, WorkerSettings['stickIn']> = {
  idle: undefined,
  insideRecording: 'recording',
  insideEffect: 'effect',
};

export async function measureRecovery(
  stage: Stage,
  side: Side,
  count: number,
): Promise<Partial<RecoveryResult>> {
  const result: Partial<RecoveryResult> = {};
  for (const kill of kills) {
    // a hand-written workflow records nothing
    if (kill === 'insideRecording' && side.name === 'handWritten') continue;
    const found: Recovery[] = [];
    for (let index = 0; index < count; index += 1) found.push(await killOnce(stage, side, kill));
    result[kill] = {
      untilEffectMs: summary(found.map(({ untilEffectMs }) => untilEffectMs)),
      untilClosedMs: summary(found.map(({ untilClosedMs }) => untilClosedMs)),
    };
  }
  return result;
}

async function killOnce(stage: Stage, side: Side, kill: Kill): Promise<Recovery> {
  const stick = stickIn[kill];
  const first = await side.startWorker(stick === undefined ? {} : { stickIn: stick });
  const runId = stage.unique(side.name);
  await side.start(runId);
  const decision = await side.untilWaiting(runId); // by the first: no other one is there yet
  const second = await side.startWorker();
  let from: number;
  if (kill === 'idle') {
    await first.kill();
    from = monotonicMs();
    await side.send(runId, decision);
  } else {
    await side.send(runId, decision);
    await untilStuck(first, runId, kill);
    from = monotonicMs();
    await first.kill();
  }
  const { at } = await second.effectOf(runId);
  await stage.client.workflow.getHandle(runId).result();
  const closedAt = monotonicMs();
  await second.stop();
  return { untilEffectMs: at - from, untilClosedMs: closedAt - from };
}

async function untilStuck(first: WorkerProcess, runId: string, kill: Kill): Promise<void> {
  if (kill === 'insideRecording') await first.stuck;
  else await first.effectOf(runId);
}
