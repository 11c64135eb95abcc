// What tests of gates do over and over: start a run, wait for its gates, decide on them, read its trail.
import { randomUUID } from 'node:crypto';
import { createClient } from '../../src/client.ts';
import type { CountersignClient } from '../../src/countersign-client.ts';
import type { Decision } from '../../src/core/decision.ts';
import type { Json } from '../../src/core/json.ts';
import { signProof } from '../../src/core/proof.ts';
import type { Spec } from '../../src/core/spec/spec.ts';
import type { TrailFact } from '../../src/core/trail-fact.ts';
import type { Receipt } from '../../src/core/verdict.ts';
import type { Secrets } from '../../src/secrets.ts';
import { eventually } from './eventually.ts';
import type { TestTemporal } from './temporal.ts';

/** An open gate as its approver needs it. */
export interface SeenGate {
  runId: string;
  root: string;
  key: string;
  position: string;
  hash: string;
}

/** How long a task in flight is waited for; where no worker is, a trail is read after that all the same. */
const taskTimeoutMs = 20_000;

/**
 * The product's client, except that a trail is read between workflow tasks: a query is answered from the
 * events of a task that has begun, and the trail tells of it when the task is completed.
 */
export function clientOf(temporal: TestTemporal): CountersignClient {
  const { client, namespace, taskQueue } = temporal;
  const countersign = createClient({ client, namespace, taskQueue });
  const noTask = async (runId: string): Promise<boolean> => {
    const described = await client.workflow
      .getHandle(runId)
      .describe()
      .catch(() => undefined); // no such run: the trail says so
    return described?.raw.pendingWorkflowTask == null;
  };
  return {
    ...countersign,
    async readTrail(runId) {
      await eventually(() => noTask(runId), { timeoutMs: taskTimeoutMs }).catch(() => undefined);
      return countersign.readTrail(runId);
    },
  };
}

/** Starts a run of an inline spec, or of a named one when `hash` is given. */
export async function startSpec(
  client: CountersignClient,
  runId: string,
  spec: Spec,
  input: Json,
  hash?: string,
): Promise<void> {
  const { started } = await client.startRun({
    runId,
    spec,
    ...(hash === undefined ? {} : { specRef: { name: spec.name, hash } }),
    input,
    trigger: { kind: 'test' },
    startedBy: { id: 'starter' },
    requestHash: runId,
  });
  if (!started) throw new Error(`run "${runId}" exists already`);
}

/** The pending gates of a run, once there are `count` of them, ordered by position. */
export async function openGates(client: CountersignClient, runId: string, count = 1): Promise<SeenGate[]> {
  return eventually(
    async () => {
      const run = await client.describeRun(runId);
      const pending = run?.approvals.filter(({ memo }) => memo.state === 'pending') ?? [];
      if (run === undefined || pending.length < count) return undefined;
      return pending
        .map(({ key, position, memo }) => ({ runId, root: run.root, key, position, hash: memo.hash ?? '' }))
        .sort((a, b) => (a.position < b.position ? -1 : 1));
    },
    { message: `${count} pending gates in run "${runId}"` },
  );
}

export async function openGate(client: CountersignClient, runId: string): Promise<SeenGate> {
  const [gate] = await openGates(client, runId);
  if (gate === undefined) throw new Error(`run "${runId}" has no gate`);
  return gate;
}

/** A decision as somebody sends it by hand: unsigned, with an id of its own. */
export function decisionOn(
  gate: SeenGate,
  kind: Decision['decision'],
  more: Partial<Decision> = {},
): Decision {
  return {
    v: 1,
    key: gate.key,
    root: gate.root,
    decision: kind,
    ...(kind === 'reject' ? {} : { payloadHash: gate.hash }),
    decisionId: randomUUID(),
    by: { id: 'ann' },
    via: 'signal',
    ...more,
  };
}

/** A decision as the API sends it, signed now or at `signedAt` (milliseconds). */
export async function signedDecision(
  temporal: Pick<TestTemporal, 'namespace'>,
  secrets: Secrets,
  gate: SeenGate,
  kind: Decision['decision'],
  more: Partial<Decision> & { signedAt?: number } = {},
): Promise<Decision> {
  const { signedAt, ...fields } = more;
  const decision = decisionOn(gate, kind, { via: 'api', ...fields });
  const place = { namespace: temporal.namespace, workflowId: gate.runId };
  const options = signedAt === undefined ? {} : { now: signedAt };
  return { ...decision, proof: await signProof(decision, place, secrets.signingKey(), options) };
}

/** The answer to a decision, once it is judged. Needs a worker. */
export async function receiptOf(
  client: CountersignClient,
  decision: Decision,
  runId: string,
): Promise<Receipt> {
  return eventually(
    async () => {
      const [receipt] = await client.queryReceipts(runId, [decision.decisionId], 10_000);
      return receipt?.verdict === 'pending' ? undefined : receipt;
    },
    { message: `the verdict on decision ${decision.decisionId}` },
  );
}

/** Facts of one type in a run's trail, in order. */
export async function factsOf<Type extends TrailFact['type']>(
  client: CountersignClient,
  runId: string,
  type: Type,
): Promise<Extract<TrailFact, { type: Type }>[]> {
  const trail = await client.readTrail(runId);
  return trail.filter((fact): fact is Extract<TrailFact, { type: Type }> => fact.type === type);
}
