// The one check that every door shares. It judges a decision that an open gate took from its queue: form,
// key, proof, deadline, hash, the current spec, and what the decision brings with it. Its recorded result
// is the verdict and, with an approval, the grant. It uses no network, and it may run more than once.
import { ApplicationFailure } from '@temporalio/activity';
import type { CaseRecord, Grant, VerdictRecord } from '../core/case.ts';
import { kindsAt, type DecisionKind } from '../core/decision.ts';
import { issueGrant } from '../core/grant.ts';
import { shortHash } from '../core/hash.ts';
import { verifyProof } from '../core/proof.ts';
import type { AdmitDecisionInput } from '../core/recording.ts';
import { JsonProblemError, parseStrictJson } from '../core/strict-json.ts';
import type { DecidedBy, RefusalCode } from '../core/verdict.ts';
import type { ActivityDeps } from './deps.ts';
import { FreezeProblem, freezeCall } from './freeze-call.ts';

interface Refusal {
  code: RefusalCode;
  message: string;
}

interface Proof {
  by: DecidedBy;
  /** milliseconds since the epoch; undefined for an unsigned decision */
  signedAt?: number;
}

interface Where {
  namespace: string;
  workflowId: string;
}

/** Less than the 2 s of policies.ts, so that a check that hangs still fails by its own word. */
const checkTimeoutMs = 1_500;

/** Sent on behalf of one person and for no other: never without a valid proof. */
const amendedMark = '(amended) ';
const alwaysProven: readonly DecisionKind[] = ['amend', 'withdraw', 'delegate'];

/** They let something run or go on, so they hold only under the spec that was shown. */
const needSpec: readonly DecisionKind[] = ['approve', 'edit', 'respond'];

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

async function judge(deps: ActivityDeps, input: AdmitDecisionInput, where: Where): Promise<VerdictRecord> {
  const { position, key, root, decision, takenUpAt } = input;
  const claimed: DecidedBy = { ...decision.by, verified: false };
  const record = { v: 1, kind: 'verdict', position, key, root, decision, takenUpAt } as const;

  const proof = formProblem(input) ?? (await proofOf(deps, input, where));
  if ('code' in proof) return { ...record, by: claimed, verdict: 'refused', ...proof };
  const refused = (refusal: Refusal): VerdictRecord => ({
    ...record,
    by: proof.by,
    verdict: 'refused',
    ...refusal,
  });
  const refusal =
    personProblem(input) ??
    deadlineProblem(input, proof) ??
    contentProblem(input) ??
    specProblem(deps, input);
  if (refusal !== undefined) return refused(refusal);

  const anew = await freezeAnew(deps, input);
  if (anew !== undefined && 'code' in anew) return refused(anew);
  const payloadHash = anew?.payloadHash ?? input.case.payloadHash;
  const grant = grantFor(deps, input, where, payloadHash);
  return {
    ...record,
    by: proof.by,
    verdict: 'accepted',
    ...(grant === undefined ? {} : { grant }),
    ...(anew === undefined ? {} : { case: anew }),
  };
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
function formProblem({ text, decision, key, root, case: frozen }: AdmitDecisionInput): Refusal | undefined {
  try {
    parseStrictJson(text);
  } catch (error) {
    if (!(error instanceof JsonProblemError)) throw error;
    return { code: 'malformed', message: error.message };
  }
  if (decision.key !== key || decision.root !== root) {
    return { code: 'unknown_key', message: 'the decision names another approval' };
  }
  const kinds = kindsAt[frozen.phase];
  if (!kinds.includes(decision.decision)) {
    return { code: 'not_allowed', message: `this gate takes ${kinds.join(', ')}, not ${decision.decision}` };
  }
  if (decision.output !== undefined)
    return { code: 'malformed', message: 'output is for an after gate only' };
  const needs = { edit: 'arguments', amend: 'arguments', respond: 'result' } as const;
  const missing = needs[decision.decision as keyof typeof needs];
  if (missing !== undefined && decision[missing] === undefined) {
    return { code: 'malformed', message: `a decision "${decision.decision}" needs ${missing}` };
  }
  return undefined;
}

async function proofOf(
  deps: ActivityDeps,
  { decision, takenUpAt }: AdmitDecisionInput,
  where: Where,
): Promise<Proof | Refusal> {
  if (decision.proof === undefined) {
    if (alwaysProven.includes(decision.decision)) {
      return { code: 'unproven', message: `${decision.decision} always needs a proof; send it by the API` };
    }
    if (deps.unsigned !== 'refuse') return { by: { ...decision.by, verified: false } };
    return { code: 'unproven', message: 'this deployment takes signed decisions only (unsigned: refuse)' };
  }
  const verified = await verifyProof(decision, where, deps.proofKeys(), takenUpAt);
  if (!verified.ok) return { code: 'unproven', message: `the proof does not hold: ${verified.reason}` };
  return { by: { ...decision.by, verified: true }, signedAt: verified.signedAt };
}

/** Only the requester changes a request; they, or an admin, take it back. */
function personProblem({ case: { requestedBy }, decision }: AdmitDecisionInput): Refusal | undefined {
  const isRequester = requestedBy !== undefined && requestedBy.id === decision.by.id;
  const isAdmin = decision.by.roles?.includes('admin') === true;
  if (decision.decision === 'amend' && !isRequester) {
    return {
      code: 'not_allowed',
      message: `only ${requestedBy?.id ?? 'the requester'} may amend this request`,
    };
  }
  if (decision.decision === 'withdraw' && !isRequester && !isAdmin) {
    const who = requestedBy === undefined ? 'an admin' : `${requestedBy.id} or an admin`;
    return { code: 'not_allowed', message: `only ${who} may withdraw this request` };
  }
  return undefined;
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

function contentProblem({ case: frozen, decision }: AdmitDecisionInput): Refusal | undefined {
  if (decision.payloadHash === undefined || decision.payloadHash === frozen.payloadHash) return undefined;
  return {
    code: 'payload_changed',
    message: `decided on ${shortHash(decision.payloadHash)}, the payload is ${shortHash(frozen.payloadHash)}`,
  };
}

function specProblem(
  deps: ActivityDeps,
  { case: frozen, decision }: AdmitDecisionInput,
): Refusal | undefined {
  if (!needSpec.includes(decision.decision) || frozen.spec === undefined) return undefined;
  const current = deps.currentSpecHash(frozen.spec.name);
  if (current === frozen.spec.hash) return undefined;
  const now = current === undefined ? 'it is gone' : `it is ${shortHash(current)} now`;
  return {
    code: 'spec_changed',
    message: `spec "${frozen.spec.name}" was ${shortHash(frozen.spec.hash)} when the run started, ${now}; restore it, or reject`,
  };
}

/** The case of an edit or an amendment, frozen and hashed as the first one was. */
async function freezeAnew(
  deps: ActivityDeps,
  { decision, whole, position }: AdmitDecisionInput,
): Promise<CaseRecord | Refusal | undefined> {
  if (decision.decision !== 'edit' && decision.decision !== 'amend') return undefined;
  if (whole?.tool === undefined) throw new TypeError('an edit is judged on the whole case');
  try {
    const call = { tool: whole.tool, arguments: decision.arguments ?? null };
    const frozen = await freezeCall(deps.tools, position, call, undefined);
    return { ...whole, ...frozen, title: titleOf(whole, decision.decision) };
  } catch (error) {
    if (!(error instanceof FreezeProblem)) throw error;
    const code = error.code === 'payload_too_large' ? 'too_large' : 'invalid_edit';
    return { code, message: error.message };
  }
}

/** The title was made of the first arguments, and lists show nothing else: in front, where no list cuts it. */
function titleOf({ title }: CaseRecord, kind: 'edit' | 'amend'): string {
  return kind === 'edit' || title.startsWith(amendedMark) ? title : amendedMark + title;
}

function grantFor(
  deps: ActivityDeps,
  { case: frozen, decision, position, key, root, prefix }: AdmitDecisionInput,
  where: Where,
  payloadHash: string,
): Grant | undefined {
  const { decisionId, decision: kind } = decision;
  const { tool, doubt } = frozen;
  if ((kind !== 'approve' && kind !== 'edit') || tool === undefined) return undefined;
  const right =
    doubt === undefined
      ? { position, payloadHash }
      : { position: doubt.retryPosition, payloadHash: doubt.effectHash };
  const chain = prefix === undefined ? {} : { prefix };
  return issueGrant({ v: 1, ...where, key, root, ...chain, ...right, tool, decisionId }, deps.grantKeys());
}
