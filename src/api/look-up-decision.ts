// GET …/decisions/:decisionId: what became of a decision, from the trail alone, so that it is answered while
// every worker is down. A decision that is in history without a verdict is still 202.
import { setTimeout as sleep } from 'node:timers/promises';
import type { TrailFact } from '../core/trail-fact.ts';
import type { Principal } from './auth.ts';
import { lost, recorded, type Answered } from './decision-answer.ts';
import { defaultReceiptBudgetMs, type ApiDeps } from './deps.ts';
import { findGate, type GatePlace } from './find-gate.ts';
import { acceptedOf, gateOf, refusalOf } from './gate-record.ts';
import { answerRefused, placeOf, remembered, repeated, winnerOf } from './late-decision.ts';
import { ApiProblem, approvalNotFound } from './problem.ts';
import { iso } from './run-view.ts';

type LookUpDeps = Pick<ApiDeps, 'client' | 'baseUrl' | 'now' | 'receiptBudgetMs'>;

/** Between two looks at a running workflow task, milliseconds; one takes tens. */
const pauseMs = 50;

/** @throws ApiProblem */
export async function lookUpDecision(
  deps: LookUpDeps,
  principal: Principal,
  key: string,
  decisionId: string,
): Promise<Answered> {
  const gate = await findIdleGate(deps, principal, key);
  const { runId, closeStatus } = gate.run;
  const signal = await deps.client.findDecision(runId, decisionId);
  // read after the signal, so that a verdict in between is seen
  const trail = await deps.client.readTrail(runId);
  const record = gateOf(trail, key);
  const place = placeOf(deps, gate, record);
  const outcome = record?.outcome;
  if (outcome?.decision?.decisionId === decisionId) return repeated(place, outcome, gate);

  const taken = acceptedOf(trail, key, decisionId);
  if (taken !== undefined) return remembered(place, taken, outcome?.state ?? 'pending');

  const refusal = refusalOf(trail, key, decisionId);
  // sent again after a refusal, it is judged again
  const unjudged = refusal === undefined || (signal !== undefined && isLater(trail, signal, refusal));
  if (!unjudged) return answerRefused(deps, gate, record, refusal);
  if (signal === undefined || signal.decision.key !== key) {
    // a run that ended without having asked there has no such approval
    if (record === undefined && closeStatus !== undefined) throw approvalNotFound(key);
    if (gate.run.taskRunning) {
      const detail = 'the run is busy, and what was sent to it last cannot be read yet; ask again';
      throw new ApiProblem('temporal_unavailable', detail);
    }
    throw new ApiProblem('decision_not_found', `No decision ${decisionId.slice(0, 128)} on approval ${key}`);
  }
  if (closeStatus === undefined) return recorded(place, signal.decision, signal.at);
  throw lost(
    place,
    outcome === undefined ? { state: 'cancelled', at: iso(deps.now()) } : winnerOf(outcome, gate),
  );
}

interface Place {
  temporalRunId: string;
  eventId: number;
}

/** Executions stand in a trail in their order; one that has no fact yet is the newest. */
function isLater(trail: readonly TrailFact[], signal: Place, refusal: Place): boolean {
  if (signal.temporalRunId === refusal.temporalRunId) return signal.eventId > refusal.eventId;
  const first = ({ temporalRunId }: Place) => trail.findIndex((fact) => fact.temporalRunId === temporalRunId);
  const signalled = first(signal);
  return signalled === -1 || signalled > first(refusal);
}

/** A signal that came while a workflow task runs is in the history only after it, so that is waited for. */
async function findIdleGate(deps: LookUpDeps, principal: Principal, key: string): Promise<GatePlace> {
  const deadline = performance.now() + (deps.receiptBudgetMs ?? defaultReceiptBudgetMs);
  for (;;) {
    const gate = await findGate(deps.client, principal, key);
    if (!gate.run.taskRunning || performance.now() > deadline) return gate;
    await sleep(pauseMs);
  }
}
