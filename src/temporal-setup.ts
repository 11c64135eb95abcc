// What countersign needs of a namespace before it starts: that it answers, and that the search attributes
// are there. A run that sets an attribute which is not registered gets stuck for good, so this is asked first.
import { setTimeout as delay } from 'node:timers/promises';
import { isGrpcServiceError, type Connection } from '@temporalio/client';
import { searchAttributeKinds } from './core/names.ts';
import { grpc } from './grpc-status.ts';

/** Temporal is there, but not as countersign needs it; the message says what to run. */
export class TemporalSetupError extends Error {
  override readonly name = 'TemporalSetupError';
}

/** The part of a connection that is used here: both `Connection` and `NativeConnection` have it. */
export type SetupConnection = Pick<Connection, 'workflowService' | 'operatorService' | 'withDeadline'>;

type AttributeName = keyof typeof searchAttributeKinds;
type AttributeKind = (typeof searchAttributeKinds)[AttributeName];

// temporal.api.enums.v1.IndexedValueType, and the CLI's word for it
const kinds: Record<AttributeKind, { value: number; word: string }> = {
  KEYWORD: { value: 2, word: 'Keyword' },
  DATETIME: { value: 6, word: 'Datetime' },
  KEYWORD_LIST: { value: 7, word: 'KeywordList' },
};

// One call: a server that is up answers in milliseconds; one that is starting is asked again.
const callMs = 2000;
const askAgainMs = 50;

// Namespaces, with their attributes, are read anew by each server process every few seconds.
const attributesKnownMs = 30_000;

/** `Name=Kind` of every search attribute, as the Temporal CLI takes them. */
export function searchAttributeArguments(): string[] {
  return attributeNames().map((name) => `${name}=${kindOf(name).word}`);
}

/**
 * Resolves when the namespace answers. Waits `timeoutMs` (default 10 s), and 2 s at most for a last answer,
 * for a server or a namespace that is not there yet.
 * @throws TemporalSetupError
 */
export async function ensureNamespaceReady(
  connection: SetupConnection,
  namespace: string,
  options: { timeoutMs?: number; signal?: AbortSignal } = {},
): Promise<void> {
  const giveUpAt = Date.now() + (options.timeoutMs ?? 10_000);
  for (;;) {
    try {
      // the last call too gets its whole time: cut short, it would hide why the ones before failed
      await within(connection, () => connection.workflowService.describeNamespace({ namespace }));
      return;
    } catch (error) {
      options.signal?.throwIfAborted();
      const denied = hasCode(error, grpc.permissionDenied) || hasCode(error, grpc.unauthenticated);
      if (denied || Date.now() + askAgainMs >= giveUpAt) throw namespaceProblem(error, namespace);
    }
    await delay(askAgainMs, undefined, options.signal === undefined ? {} : { signal: options.signal });
  }
}

/**
 * Registers the search attributes that are missing.
 * @throws TemporalSetupError with the commands to run where it may not, or where one has another kind
 */
export async function ensureSearchAttributes(connection: SetupConnection, namespace: string): Promise<void> {
  const present = await listAttributes(connection, namespace);
  if (present === undefined) return probeAttributes(connection, namespace);
  const missing = attributeNames().filter((name) => present[name] === undefined);
  for (const name of attributeNames()) {
    const kind = present[name];
    if (kind !== undefined && kind !== kindOf(name).value) throw wrongKind(name, namespace);
  }
  if (missing.length === 0) return;
  const searchAttributes = Object.fromEntries(missing.map((name) => [name, kindOf(name).value]));
  try {
    await within(connection, () =>
      connection.operatorService.addSearchAttributes({ namespace, searchAttributes }),
    );
  } catch (error) {
    // another worker that starts at the same time has registered them
    if (!hasCode(error, grpc.alreadyExists)) throw notRegistered(missing, namespace, error);
  }
  await untilKnown(connection, namespace);
}

// The server's own caches learn of a new attribute some seconds later; a run that sets it before fails its task.
async function untilKnown(connection: SetupConnection, namespace: string): Promise<void> {
  const giveUpAt = Date.now() + attributesKnownMs;
  for (;;) {
    try {
      return await probeAttributes(connection, namespace);
    } catch (error) {
      if (Date.now() >= giveUpAt) throw error;
    }
    await delay(askAgainMs);
  }
}

// Undefined where this caller may not ask for them: Temporal Cloud has no operator service.
async function listAttributes(
  connection: SetupConnection,
  namespace: string,
): Promise<Record<string, number> | undefined> {
  try {
    const answer = await within(connection, () =>
      connection.operatorService.listSearchAttributes({ namespace }),
    );
    return answer.customAttributes;
  } catch {
    return undefined;
  }
}

/** Changes nothing. @throws TemporalSetupError with the commands to run where an attribute is missing */
export async function checkSearchAttributes(connection: SetupConnection, namespace: string): Promise<void> {
  await probeAttributes(connection, namespace);
}

// Whoever may start runs may also count them, and a query that names an unknown attribute, or compares it
// with a value of another kind, is an invalid argument.
async function probeAttributes(connection: SetupConnection, namespace: string): Promise<void> {
  const missing: AttributeName[] = [];
  for (const name of attributeNames()) {
    const value = searchAttributeKinds[name] === 'DATETIME' ? '2000-01-01T00:00:00Z' : 'none';
    try {
      await within(connection, () =>
        connection.workflowService.countWorkflowExecutions({ namespace, query: `${name} = "${value}"` }),
      );
    } catch (error) {
      if (!hasCode(error, grpc.invalidArgument)) throw namespaceProblem(error, namespace);
      missing.push(name);
    }
  }
  if (missing.length > 0) throw notRegistered(missing, namespace);
}

function notRegistered(missing: AttributeName[], namespace: string, cause?: unknown): TemporalSetupError {
  const commands = missing.map((name) => `  ${createCommand(name, namespace)}`).join('\n');
  const why = cause === undefined ? '' : `, and they cannot be registered from here (${textOf(cause)})`;
  return new TemporalSetupError(
    `Temporal namespace "${namespace}" lacks ${missing.join(', ')}${why}. Run, as someone who may:\n${commands}`,
    { cause },
  );
}

function wrongKind(name: AttributeName, namespace: string): TemporalSetupError {
  return new TemporalSetupError(
    `search attribute ${name} of Temporal namespace "${namespace}" must be a ${kindOf(name).word}, and is not. Run:\n` +
      `  temporal operator search-attribute remove --namespace ${namespace} --name ${name} --yes\n` +
      `  ${createCommand(name, namespace)}`,
  );
}

function createCommand(name: AttributeName, namespace: string): string {
  return `temporal operator search-attribute create --namespace ${namespace} --name ${name} --type ${kindOf(name).word}`;
}

function namespaceProblem(error: unknown, namespace: string): TemporalSetupError {
  if (hasCode(error, grpc.notFound)) {
    return new TemporalSetupError(
      `Temporal has no namespace "${namespace}": set TEMPORAL_NAMESPACE to one that it has, or run:\n` +
        `  temporal operator namespace create --namespace ${namespace} --retention 720h`,
      { cause: error },
    );
  }
  if (hasCode(error, grpc.permissionDenied) || hasCode(error, grpc.unauthenticated)) {
    return new TemporalSetupError(
      `Temporal refuses this client for namespace "${namespace}" (${textOf(error)}): check TEMPORAL_API_KEY or the TLS certificate`,
      { cause: error },
    );
  }
  return new TemporalSetupError(
    `Temporal does not answer for namespace "${namespace}" (${textOf(error)}): check TEMPORAL_ADDRESS, and that the server runs`,
    { cause: error },
  );
}

function attributeNames(): AttributeName[] {
  return Object.keys(searchAttributeKinds) as AttributeName[];
}

function kindOf(name: AttributeName): { value: number; word: string } {
  return kinds[searchAttributeKinds[name]];
}

function within<Result>(connection: SetupConnection, call: () => Promise<Result>): Promise<Result> {
  return connection.withDeadline(Date.now() + callMs, call);
}

function hasCode(error: unknown, code: number): boolean {
  return isGrpcServiceError(error) && Number(error.code) === code;
}

function textOf(error: unknown): string {
  if (hasCode(error, grpc.deadlineExceeded)) return `nothing within ${callMs / 1_000} s`;
  return isGrpcServiceError(error) ? error.details || error.message : String(error);
}
