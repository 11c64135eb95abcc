// Freezes what a person is to judge. Its recorded result is the case: what is shown, hashed and executed
// later is only this. Read-only: it may run more than once.
import { caseTextProblem, type CaseText } from '../core/case-text.ts';
import type { CaseRecord, ProblemRecord, Question } from '../core/case.ts';
import { durationRule, maxDurationMs, parseDuration } from '../core/duration.ts';
import type { FreezeCaseInput } from '../core/recording.ts';
import type { ActivityDeps } from './deps.ts';
import { FreezeProblem, freezeCall, frozenHash, resolveIn } from './freeze-call.ts';
import { recordProblem } from './prepare-step.ts';

/** Seven days: over a weekend and a holiday, and still an end. */
const defaultTtlMs = 7 * 24 * 60 * 60 * 1_000;

/** The API freezes with less than a worker has. */
type FreezeDeps = Pick<ActivityDeps, 'tools' | 'approvalTtlMs' | 'baseUrl'>;

export function createFreezeCase(deps: FreezeDeps) {
  return async function freezeCase(input: FreezeCaseInput): Promise<CaseRecord | ProblemRecord> {
    const { position, key, root, now, reasoning, spec, requestedBy } = input;
    try {
      const policy = { ttlMs: ttlOf(input, deps.approvalTtlMs ?? defaultTtlMs) };
      const subject = await freezeSubject(deps, input);
      checkText(position, { title: subject.title, reasoning });
      return {
        v: 1,
        kind: 'case',
        position,
        key,
        root,
        ...subject,
        ...(reasoning === undefined ? {} : { reasoning }),
        policy,
        requestedAt: now,
        expiresAt: now + policy.ttlMs,
        ...(spec === undefined ? {} : { spec }),
        ...(requestedBy === undefined ? {} : { requestedBy }),
        ...(deps.baseUrl === undefined ? {} : { url: `${deps.baseUrl}/approvals/${key}` }),
      };
    } catch (error) {
      return recordProblem(error, position, root);
    }
  };
}

function freezeSubject(deps: FreezeDeps, input: FreezeCaseInput) {
  switch (input.phase) {
    case 'before':
      return freezeBefore(deps, input);
    case 'step':
      return freezeQuestion(input);
    case 'in-doubt':
      return freezeDoubt(input);
  }
}

async function freezeBefore(deps: FreezeDeps, input: FreezeCaseInput) {
  const tool = input.tool ?? '';
  const call = { tool, arguments: input.arguments ?? {} };
  const frozen = await freezeCall(deps.tools, input.position, call, input.scope);
  return { phase: 'before' as const, title: titleOf(input) ?? tool, tool, ...frozen };
}

/** The arguments were frozen with the effect's own gate; here they are hashed with the key that went downstream. */
function freezeDoubt({ position, tool = '', arguments: args = null, doubt, effect }: FreezeCaseInput) {
  if (doubt === undefined || effect === undefined) throw new TypeError('a case in doubt names its effect');
  const { hash } = frozenHash(position, { tool, arguments: args, idempotencyKey: doubt.idempotencyKey });
  const title = `Did ${tool} happen?`;
  return { phase: 'in-doubt' as const, title, tool, arguments: args, payloadHash: hash, doubt, effect };
}

function freezeQuestion(input: FreezeCaseInput) {
  const step = input.step ?? input.position;
  const question: Question = { title: titleOf(input) ?? step };
  const { hash } = frozenHash(input.position, { step, question });
  return { phase: 'step' as const, title: question.title, step, question, payloadHash: hash };
}

function titleOf(input: FreezeCaseInput): string | undefined {
  if (input.title === undefined) return undefined;
  const title = resolveIn(input.position, input.title, input.scope);
  if (typeof title === 'string') return title;
  if (typeof title === 'number' || typeof title === 'boolean') return String(title);
  throw new FreezeProblem('invalid_value', `step "${input.position}": the title must be text`);
}

function checkText(position: string, text: CaseText): void {
  const problem = caseTextProblem(text);
  if (problem !== undefined) throw new FreezeProblem(problem.code, `step "${position}": ${problem.message}`);
}

function ttlOf(input: FreezeCaseInput, fallback: number): number {
  const { ttl } = input;
  if (ttl === undefined) return fallback;
  const ms = typeof ttl === 'number' ? ttl : parseDuration(ttl);
  if (ms === undefined || !Number.isSafeInteger(ms) || ms <= 0 || ms > maxDurationMs) {
    throw new FreezeProblem(
      'invalid_value',
      `step "${input.position}": ttl must be ${durationRule}, or as many milliseconds, got ${JSON.stringify(ttl)}`,
    );
  }
  return ms;
}
