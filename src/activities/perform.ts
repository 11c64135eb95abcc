// The only activity that changes the world. It checks the grant, hashes what it was given, derives the
// idempotency key from (root, position) alone, and only then calls the tool.
import { ApplicationFailure, Context } from '@temporalio/activity';
import { freeze, ValueProblemError } from '../core/canonical.ts';
import type { EffectRecord, PerformInput } from '../core/case.ts';
import { grantProblem } from '../core/grant.ts';
import { hashPayload, shortHash, shortKey } from '../core/hash.ts';
import { idempotencyKey } from '../core/position.ts';
import type { Tool } from '../tool.ts';
import { callTool, inDoubt, refusal } from './call-tool.ts';
import type { ActivityDeps } from './deps.ts';

export function createPerform(deps: ActivityDeps) {
  return async function perform(input: PerformInput): Promise<EffectRecord> {
    const context = Context.current();
    const tool = deps.tools.find(({ name }) => name === input.tool);
    // Retryable: in a rolling deployment another worker may have the tool.
    if (tool === undefined)
      throw ApplicationFailure.retryable(`no tool "${input.tool}" here`, 'unknown_tool');
    checkFirst(context.info.attempt, () => {
      checkRight(deps, input, tool, context.info.workflowExecution?.workflowId ?? '');
    });

    const fullKey = idempotencyKey(input.root, input.position, input.prefix);
    const key = fullKey.length > (tool.keyMaxLength ?? Infinity) ? shortKey(fullKey) : fullKey;
    const { position, root, payloadHash } = input;
    deps.log('effect started', {
      tool: tool.name,
      position,
      idempotencyKey: key,
      attempt: context.info.attempt,
    });
    const output = await callTool({
      tool,
      position,
      args: input.arguments,
      key,
      context,
      ...(input.keysSince === undefined ? {} : { keysSince: input.keysSince }),
      log: (message, fields) => deps.log(message, { tool: tool.name, idempotencyKey: key, ...fields }),
    });
    return {
      v: 1,
      kind: 'effect',
      position,
      root,
      tool: tool.name,
      idempotencyKey: key,
      payloadHash,
      ...recordable(output),
    };
  };
}

/** A right that is refused on a later attempt says nothing of what an earlier one did: that is in doubt. */
function checkFirst(attempt: number, check: () => void): void {
  try {
    check();
  } catch (error) {
    if (attempt === 1 || !(error instanceof ApplicationFailure)) throw error;
    throw inDoubt(`attempt ${attempt} was refused (${error.message}), an earlier one was not`);
  }
}

/** @throws ApplicationFailure, never retried, when these arguments may not run here */
function checkRight(deps: ActivityDeps, input: PerformInput, tool: Tool, workflowId: string): void {
  const { grant } = input;
  if (grant === undefined && tool.requiresApproval === true) {
    throw refusal(
      'approval_required',
      `tool "${tool.name}" runs only with a grant, and none came with the call`,
    );
  }
  const { hash } = hashPayload({ tool: tool.name, arguments: input.arguments });
  if (hash !== input.payloadHash) throw changed(input.payloadHash, hash);
  if (grant === undefined) return;
  const problem = grantProblem(grant, { namespace: deps.namespace, workflowId }, deps.grantKeys());
  if (problem !== undefined) throw refusal('grant_invalid', `the grant is refused: ${problem}`);
  const ofThisCall =
    grant.tool === tool.name &&
    grant.position === input.position &&
    grant.root === input.root &&
    grant.prefix === input.prefix;
  if (!ofThisCall) {
    throw refusal('grant_invalid', `the grant is for tool "${grant.tool}" at "${grant.position}"`);
  }
  if (grant.payloadHash !== hash) throw changed(grant.payloadHash, hash);
}

/** The effect happened, so an output that cannot be recorded must not fail it, or it would be tried again. */
function recordable(output: unknown): Pick<EffectRecord, 'output' | 'outputProblem'> {
  if (output === undefined) return { output: null };
  try {
    return { output: freeze(output).value };
  } catch (error) {
    if (!(error instanceof ValueProblemError)) throw error;
    return { output: null, outputProblem: error.message };
  }
}

function changed(expected: string, got: string): ApplicationFailure {
  return refusal(
    'payload_changed',
    `the arguments hash to ${shortHash(got)}, approved was ${shortHash(expected)}`,
  );
}
