// Sandbox. What a run shows to those who ask Temporal and no worker: one memo field a gate, the search
// attributes, and the readable page in the Temporal Web UI.
import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common';
import { setCurrentDetails, upsertMemo, upsertSearchAttributes, workflowInfo } from '@temporalio/workflow';
import { oneLine, pendingMemo } from '../core/approval-memo.ts';
import type { ApprovalMemo, CaseRecord, Doubt } from '../core/case.ts';
import { approvalMemoField, searchAttributes } from '../core/names.ts';
import type { Settlement } from '../core/verdict.ts';

/** A list row must stay small, since describe and list return the whole memo. */
const settledKept = 20;
/** The Web UI's page is for reading; the API has the whole case. */
const shownGates = 10;
const shownArguments = 4_000;

const keys = {
  status: defineSearchAttributeKey(searchAttributes.status, SearchAttributeType.KEYWORD),
  tools: defineSearchAttributeKey(searchAttributes.tools, SearchAttributeType.KEYWORD_LIST),
  expiresAt: defineSearchAttributeKey(searchAttributes.expiresAt, SearchAttributeType.DATETIME),
};

const pending = new Map<string, CaseRecord>();
const settled: string[] = [];

/** Shows a gate that opens: one memo upsert, one of search attributes. */
export function showPending(frozen: CaseRecord): void {
  pending.set(frozen.position, frozen);
  upsertAttributes(waitingStatus());
  upsertMemo({ [approvalMemoField(frozen.position)]: pendingMemo(frozen) });
  showDetails();
}

/** Shows a changed payload: one memo upsert. */
export function showAmended(frozen: CaseRecord): void {
  pending.set(frozen.position, frozen);
  upsertMemo({ [approvalMemoField(frozen.position)]: pendingMemo(frozen) });
  showDetails();
}

/** A gate that was open from the run's first event is in its start call already; this takes it over. */
export function takeOverPending(frozen: CaseRecord): void {
  pending.set(frozen.position, frozen);
  showDetails();
}

/** Positions of the settled gates that the memo shows, the oldest first. */
export function shownSettled(): string[] {
  return [...settled];
}

/**
 * Takes over what the execution before showed. Search attributes are kept by Temporal; the memo is kept by
 * `continueRun()`, and of a plain continueAsNew it is as it was at the start, so what is missing is put back.
 */
export function takeOver(open: readonly CaseRecord[], ended: readonly ShownEnd[]): void {
  for (const frozen of open) pending.set(frozen.position, frozen);
  settled.push(...ended.map(({ position }) => position));
  const fields: Record<string, ApprovalMemo> = {};
  for (const frozen of open) fields[approvalMemoField(frozen.position)] = pendingMemo(frozen);
  for (const { position, settlement } of ended) fields[approvalMemoField(position)] = settledMemo(settlement);
  const memo = workflowInfo().memo ?? {};
  const isMissing = Object.entries(fields).some(
    ([field, { state }]) => (memo[field] as ApprovalMemo | undefined)?.state !== state,
  );
  if (isMissing) upsertMemo({ ...fields });
  showDetails();
}

export interface ShownEnd {
  position: string;
  settlement: Settlement;
}

/** Shows a gate's end: one memo upsert. The caller says how the run goes on, with `showStatus`. */
export function showSettled(position: string, settlement: Settlement): void {
  pending.delete(position);
  settled.push(position);
  const fields: Record<string, ApprovalMemo | null> = {
    [approvalMemoField(position)]: settledMemo(settlement),
  };
  while (settled.length > settledKept) {
    const oldest = settled.shift();
    if (oldest !== undefined) fields[approvalMemoField(oldest)] = null;
  }
  upsertMemo(fields);
  showDetails();
}

function settledMemo({ state, by, decisionId, at }: Settlement): ApprovalMemo {
  return {
    state,
    at,
    ...(by === undefined ? {} : { by: by.id }),
    ...(decisionId === undefined ? {} : { decisionId }),
  };
}

/** The status after a settlement; `running` is told as waiting while other gates are open. */
export function showStatus(status: 'running' | 'rejected' | 'cancelled' | 'failed'): void {
  upsertAttributes(status === 'running' && pending.size > 0 ? waitingStatus() : status);
}

function waitingStatus(): 'awaiting_approval' | 'in_doubt' {
  return [...pending.values()].some(({ phase }) => phase === 'in-doubt') ? 'in_doubt' : 'awaiting_approval';
}

function upsertAttributes(status: string): void {
  const cases = [...pending.values()];
  const tools = [...new Set(cases.flatMap(({ tool }) => (tool === undefined ? [] : [tool])))].sort();
  const earliest = cases.reduce((least, { expiresAt }) => Math.min(least, expiresAt), Infinity);
  upsertSearchAttributes([
    { key: keys.status, value: status },
    { key: keys.tools, value: tools.length === 0 ? null : tools },
    { key: keys.expiresAt, value: Number.isFinite(earliest) ? new Date(earliest) : null },
  ]);
}

function showDetails(): void {
  const cases = [...pending.values()];
  const more = cases.length > shownGates ? [`… and ${cases.length - shownGates} more`] : [];
  setCurrentDetails([...cases.slice(0, shownGates).map(caseDetails), ...more].join('\n\n---\n\n'));
}

function caseDetails(frozen: CaseRecord): string {
  const subject = frozen.question ?? frozen.arguments ?? null;
  const decision = {
    v: 1,
    key: frozen.key,
    root: frozen.root,
    decision: 'approve',
    payloadHash: frozen.payloadHash,
    reason: '',
  };
  return [
    `### Waiting for approval: ${oneLine(frozen.title)}`,
    ...(frozen.doubt === undefined ? [] : [doubtText(frozen.doubt)]),
    ...(frozen.tool === undefined ? [] : [`Tool: \`${frozen.tool}\``]),
    ...(frozen.reasoning === undefined
      ? []
      : [`Reasoning: ${oneLine(frozen.reasoning).slice(0, shownArguments)}`]),
    fenced(shownJson(subject)),
    `Payload hash: \`${frozen.payloadHash}\`, expires ${new Date(frozen.expiresAt).toISOString()}`,
    ...(frozen.url === undefined ? [] : [`Decide at ${frozen.url}`]),
    'Or send this as the JSON input of the signal `decide` (`reject` needs no hash):',
    fenced(JSON.stringify(decision)),
  ].join('\n\n');
}

/** A fence longer than any run of backticks inside, so that no payload can write outside of it. */
function doubtText({ idempotencyKey, why }: Doubt): string {
  const answers =
    '`respond` with its result: it happened; `approve`: it did not, try again; `reject`: give up';
  return `The last attempt ended unclear: ${oneLine(why)}\n\nKey sent: \`${idempotencyKey}\`. Ask the target, then ${answers}.`;
}

function fenced(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}json\n${text}\n${fence}`;
}

function shownJson(value: unknown): string {
  const text = JSON.stringify(value, undefined, 2);
  return text.length <= shownArguments
    ? text
    : `${text.slice(0, shownArguments)}\n… cut: the API has all of it`;
}
