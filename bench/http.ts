// POST /approvals/:key/approve → 200, paced, through an API process.
import { setTimeout as sleep } from 'node:timers/promises';
import { startApiProcess } from './api-process.ts';
import { monotonicMs, summary, type Summary } from './numbers.ts';
import type { Side } from './sides.ts';
import type { Stage } from './stage.ts';
import type { Decision } from '../src/core/decision.ts';

export interface HttpResult {
  /** of those that were judged in time */
  approveTo200Ms: Summary;
  /** answered 202: recorded, not judged within the API's 3 s */
  answered202: number;
}

const paceMs = 100;
const warmUp = 20;

export async function measureHttp(stage: Stage, side: Side, runs: number): Promise<HttpResult> {
  const worker = await side.startWorker();
  const api = await startApiProcess(stage, side.taskQueue);
  const taken: number[] = [];
  let answered202 = 0;
  for (let index = -Math.min(warmUp, runs); index < runs; index += 1) {
    const runId = stage.unique(side.name);
    await side.start(runId);
    const { key, payloadHash } = (await side.untilWaiting(runId)) as Decision;
    await sleep(paceMs);
    const sentAt = monotonicMs();
    const answer = await api.call('POST', `/approvals/${key}/approve`, {
      headers: { 'if-match': `"${payloadHash}"` },
      body: { reason: 'it came back' },
    });
    const ms = monotonicMs() - sentAt;
    const isJudged = (answer as { verdict: string }).verdict === 'accepted';
    if (index >= 0 && isJudged) taken.push(ms);
    if (index >= 0 && !isJudged) answered202 += 1;
    await stage.client.workflow.getHandle(runId).result();
  }
  await api.stop();
  await worker.stop();
  return { approveTo200Ms: summary(taken), answered202 };
}
