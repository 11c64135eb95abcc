// The one check that every door shares. It judges a decision that an open gate took from its queue: form,
// key, proof, deadline, hash, and the current spec. Its recorded result is the verdict and, with an
// approval, the grant. It uses no network, and it may run more than once.
import { ApplicationFailure } from '@temporalio/activity';
import type { Grant, VerdictRecord } from '../core/case.ts';
import { issueGrant } from '../core/grant.ts';
import { shortHash } from '../core/hash.ts';
import { verifyProof } from '../core/proof.ts';
import type { AdmitDecisionInput } from '../core/recording.ts';
import { JsonProblemError, parseStrictJson } from '../core/strict-json.ts';
import type { DecidedBy, RefusalCode } from '../core/verdict.ts';
import type { ActivityDeps } from './deps.ts';

interface Refusal {
  code: RefusalCode;
  message: string;
}

interface Proof {
  by: DecidedBy;
  /** milliseconds since the epoch; undefined for an unsigned decision */
  signedAt?: number;
}

/** Less than the 2 s of policies.ts, so that a check that hangs still fails by its own word. */
const checkTimeoutMs = 1_500;

export function createAdmitDecision(deps: ActivityDeps, place: () => { workflowId: string }) {
  return async function admitDecision(input: AdmitDecisionInput): Promise<VerdictRecord> {
    const where = { namespace: deps.namespace, workflowId: place().workflowId };
    try {
      return await withTimeout(judge(deps, input, where), checkTimeoutMs);
    } catch (error) {
      // The trail has nothing but this failure to tell which decision was not checked.
      const { key, decision } = input;
      const message = `the check itself failed: ${error instanceof Error ? error.message : String(error)}`;
      throw ApplicationFailure.retryable(message, 'check_failed', { key, decisionId: decision.decisionId });
    }
  };
}

interface Where {
  namespace: string;
  workflowId: string;
}

async function judge(deps: ActivityDeps, input: AdmitDecisionInput, where: Where): Promise<VerdictRecord> {
  const { position, key, root, decision, takenUpAt } = input;
  const claimed: DecidedBy = { ...decision.by, verified: false };
  const record = { v: 1, kind: 'verdict', position, key, root, decision, takenUpAt } as const;

  const proof = formProblem(input) ?? (await proofOf(deps, input, where));
  if ('code' in proof) return { ...record, by: claimed, verdict: 'refused', ...proof };
  const refusal = deadlineProblem(input, proof) ?? contentProblem(deps, input);
  if (refusal !== undefined) return { ...record, by: proof.by, verdict: 'refused', ...refusal };
  const grant = grantFor(deps, input, where);
  return { ...record, by: proof.by, verdict: 'accepted', ...(grant === undefined ? {} : { grant }) };
}

async function withTimeout<T>(work: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** The workflow read the text with JSON.parse; duplicate keys and inexact numbers are seen only here. */
function formProblem({ text, decision, key, root }: AdmitDecisionInput): Refusal | undefined {
  try {
    parseStrictJson(text);
  } catch (error) {
    if (!(error instanceof JsonProblemError)) throw error;
    return { code: 'malformed', message: error.message };
  }
  if (decision.key !== key || decision.root !== root) {
    return { code: 'unknown_key', message: 'the decision names another approval' };
  }
  if (decision.decision !== 'approve' && decision.decision !== 'reject') {
    return { code: 'not_allowed', message: `this gate takes approve and reject, not ${decision.decision}` };
  }
  return undefined;
}

async function proofOf(
  deps: ActivityDeps,
  { decision, takenUpAt }: AdmitDecisionInput,
  where: Where,
): Promise<Proof | Refusal> {
  if (decision.proof === undefined) {
    if (deps.unsigned !== 'refuse') return { by: { ...decision.by, verified: false } };
    return { code: 'unproven', message: 'this deployment takes signed decisions only (unsigned: refuse)' };
  }
  const verified = await verifyProof(decision, where, deps.proofKeys(), takenUpAt);
  if (!verified.ok) return { code: 'unproven', message: `the proof does not hold: ${verified.reason}` };
  return { by: { ...decision.by, verified: true }, signedAt: verified.signedAt };
}

/**
 * Temporal hands a workflow the signals of a task before its timers, so a decision can be taken up long
 * after the deadline. Then only a door's proof that was signed before it counts: a door sends within
 * seconds of signing, a proof made for pasting (via `signal`) may have been kept back.
 */
function deadlineProblem({ case: frozen, decision, takenUpAt }: AdmitDecisionInput, proof: Proof) {
  if (takenUpAt < frozen.expiresAt) return undefined;
  const inTime = proof.signedAt !== undefined && proof.signedAt < frozen.expiresAt;
  if (inTime && decision.via !== 'signal') return undefined;
  const deadline = new Date(frozen.expiresAt).toISOString();
  return { code: 'expired' as const, message: `the approval expired at ${deadline}` };
}

function contentProblem(deps: ActivityDeps, { case: frozen, decision }: AdmitDecisionInput) {
  if (decision.payloadHash !== undefined && decision.payloadHash !== frozen.payloadHash) {
    return {
      code: 'payload_changed' as const,
      message: `decided on ${shortHash(decision.payloadHash)}, the payload is ${shortHash(frozen.payloadHash)}`,
    };
  }
  if (decision.decision === 'reject' || frozen.spec === undefined) return undefined;
  const current = deps.currentSpecHash(frozen.spec.name);
  if (current === frozen.spec.hash) return undefined;
  const now = current === undefined ? 'it is gone' : `it is ${shortHash(current)} now`;
  return {
    code: 'spec_changed' as const,
    message: `spec "${frozen.spec.name}" was ${shortHash(frozen.spec.hash)} when the run started, ${now}; restore it, or reject`,
  };
}

function grantFor(
  deps: ActivityDeps,
  { case: frozen, decision, position, key, root }: AdmitDecisionInput,
  where: Where,
): Grant | undefined {
  if (decision.decision !== 'approve' || frozen.phase !== 'before' || frozen.tool === undefined)
    return undefined;
  const { tool, payloadHash } = frozen;
  const { decisionId } = decision;
  return issueGrant({ v: 1, ...where, key, root, position, tool, payloadHash, decisionId }, deps.grantKeys());
}
