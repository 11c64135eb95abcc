// The two that are compared: a hand-written workflow, and a gated step of a spec. Both wait with a timer, both
// take one signal, both run one activity that does the same.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '../src/client.ts';
import type { Decision } from '../src/core/decision.ts';
import { workflowTypes } from '../src/core/names.ts';
import { signProof } from '../src/core/proof.ts';
import type { Spec } from '../src/core/spec/spec.ts';
import { specHash, type Stage } from './stage.ts';
import type { SideName, WorkerProcess, WorkerSettings } from './worker-process.ts';

export interface Side {
  name: SideName;
  taskQueue: string;
  start(runId: string): Promise<void>;
  /** Waits until the run waits for a decision; gives what `send` sends. */
  untilWaiting(runId: string): Promise<unknown>;
  send(runId: string, decision: unknown): Promise<void>;
  startWorker(more?: Partial<WorkerSettings>): Promise<WorkerProcess>;
}

const ttlMs = 3_600_000;
const workflowType = { handWritten: 'handWritten', countersign: workflowTypes.runSpec };

export const benchSpec: Spec = {
  version: 1,
  name: 'bench',
  steps: [
    {
      id: 'refund',
      tool: 'payments.refund',
      with: { order: '${{ input.order }}', amount: '10.00' },
      before: { approve: { title: 'Refund ${{ input.order }}', ttl: '1h' } },
    },
  ],
};

/** Both, each on a task queue of its own that nothing else uses. */
export function openSides(stage: Stage): [handWritten: Side, countersign: Side] {
  return [handWrittenSide(stage), countersignSide(stage)];
}

function handWrittenSide(stage: Stage): Side {
  const { client } = stage;
  const taskQueue = stage.unique('hand-written');
  return {
    name: 'handWritten',
    taskQueue,
    async start(runId) {
      const args = [{ order: runId, ttlMs }];
      await client.workflow.start(workflowType.handWritten, { workflowId: runId, taskQueue, args });
    },
    async untilWaiting(runId) {
      await firstTaskEnded(stage, runId);
      return { approve: true, by: { id: 'ann' }, reason: 'it came back' };
    },
    send: (runId, decision) => client.workflow.getHandle(runId).signal('decide', decision),
    startWorker: (more) => stage.startWorker('handWritten', taskQueue, more),
  };
}

function countersignSide(stage: Stage): Side {
  const { client, namespace, secrets } = stage;
  const taskQueue = stage.unique('countersign');
  const countersign = createClient({ client, namespace, taskQueue });
  return {
    name: 'countersign',
    taskQueue,
    async start(runId) {
      const { started } = await countersign.startRun({
        runId,
        spec: benchSpec,
        specRef: { name: benchSpec.name, hash: specHash },
        input: { order: runId },
        trigger: { kind: 'bench' },
        startedBy: { id: 'bench' },
        requestHash: runId,
      });
      if (!started) throw new Error(`run "${runId}" exists already`);
    },
    async untilWaiting(runId) {
      await firstTaskEnded(stage, runId);
      const run = await countersign.describeRun(runId);
      const [gate] = run?.approvals ?? [];
      if (run === undefined || gate === undefined) throw new Error(`run "${runId}" has no open gate`);
      // signed as the API signs: the verification is part of what a decision costs
      const decision: Decision = {
        v: 1,
        key: gate.key,
        root: run.root,
        decision: 'approve',
        ...(gate.memo.hash === undefined ? {} : { payloadHash: gate.memo.hash }),
        decisionId: randomUUID(),
        by: { id: 'ann' },
        via: 'api',
        reason: 'it came back',
      };
      const proof = await signProof(decision, { namespace, workflowId: runId }, secrets.signingKey());
      return { ...decision, proof };
    },
    send: (runId, decision) => client.workflow.getHandle(runId).signal('decide', decision),
    startWorker: (more) => stage.startWorker('countersign', taskQueue, more),
  };
}

/** Started, task scheduled, task started, task completed, and what it asked for. */
const eventsOfFirstTask = 5;

async function firstTaskEnded({ client }: Stage, runId: string): Promise<void> {
  for (;;) {
    const { raw, historyLength } = await client.workflow.getHandle(runId).describe();
    if (raw.pendingWorkflowTask == null && historyLength >= eventsOfFirstTask) return;
    await sleep(10);
  }
}
