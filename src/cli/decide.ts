// One decision from the command line. What approves something is bound to the hash of what was shown, or to
// the hash that the caller names; there is no way to approve whatever is there.
import { caseText, type Approval } from './case-text.ts';
import type { ApiClient } from './api-client.ts';
import { CliProblem, exitCodes, usageProblem, type ExitCode } from './exit-codes.ts';
import { printJson, printTable } from './show.ts';
import type { Terminal } from './terminal.ts';

export type DecisionKind = 'approve' | 'reject' | 'edit' | 'respond' | 'amend' | 'withdraw' | 'comment';

export interface DecideOptions {
  json?: boolean;
  yes?: boolean;
  hash?: string;
  idempotencyKey?: string;
}

export interface Answer {
  key: string;
  decisionId: string;
  verdict: string;
  state: string;
  votes?: number;
  needed?: number;
}

/** Kinds after which something runs, or counts as having run: they name what they are about. */
export const bindingKinds: ReadonlySet<DecisionKind> = new Set(['approve', 'edit', 'respond']);

/** `body` is what the decision brings along; it is shown before the question. */
export async function decide(
  { terminal, api }: { terminal: Terminal; api: ApiClient },
  order: { kind: DecisionKind; key: string; body?: Record<string, unknown> },
  options: DecideOptions,
): Promise<ExitCode> {
  const hash = bindingKinds.has(order.kind) ? await agreedHash(terminal, api, order, options) : options.hash;
  if (hash === 'left') return exitCodes.pending;
  const { status, body } = await sendDecision(api, order, hash, options.idempotencyKey);
  const answer = body as Answer;
  if (options.json === true) printJson(terminal, answer);
  else printAnswer(terminal, answer);
  if (status !== 202) return exitCodes.ok;
  terminal.err('recorded; it is judged when a worker is back, and only then it is a yes or a no');
  return exitCodes.pending;
}

export function sendDecision(
  api: ApiClient,
  { kind, key, body = {} }: { kind: DecisionKind; key: string; body?: Record<string, unknown> },
  hash: string | undefined,
  idempotencyKey?: string,
) {
  return api.request({
    method: 'POST',
    path: `/approvals/${encodeURIComponent(key)}/${kind}`,
    body,
    ...(hash === undefined ? {} : { headers: { 'if-match': `"${hash}"` } }),
    idempotencyKey,
  });
}

export async function readApproval(api: ApiClient, key: string): Promise<Approval> {
  const { body } = await api.request({ path: `/approvals/${encodeURIComponent(key)}` });
  return body as Approval;
}

/** The hash that somebody stands for; `left` when they were asked and did not say yes. */
async function agreedHash(
  terminal: Terminal,
  api: ApiClient,
  { kind, key, body = {} }: { kind: DecisionKind; key: string; body?: Record<string, unknown> },
  { yes, hash }: DecideOptions,
): Promise<string> {
  if (hash !== undefined && !/^sha256:[0-9a-f]{64}$/.test(hash)) {
    throw usageProblem(`--hash must be "sha256:" and 64 hex digits, got "${hash.slice(0, 100)}"`);
  }
  const example = `countersign ${kind} ${key} --yes --hash sha256:…`;
  if (yes === true) {
    if (hash !== undefined) return hash;
    throw usageProblem(`--yes needs --hash, the payload hash that you stand for: ${example}`);
  }
  if (!terminal.canAsk) {
    throw usageProblem(`there is no terminal to show the case and ask on; without one: ${example}`);
  }
  const approval = await readApproval(api, key);
  showCase(terminal, approval);
  if (approval.state !== 'pending') {
    const exitCode = approval.state === 'expired' ? exitCodes.notFound : exitCodes.conflict;
    throw new CliProblem(exitCode, `it is ${approval.state} already; nothing was sent`, {
      code: 'already_resolved',
    });
  }
  const { payloadHash } = approval;
  if (hash !== undefined && hash !== payloadHash) {
    const message = `--hash is ${hash}, and the case has ${payloadHash} now; nothing was sent`;
    throw new CliProblem(exitCodes.conflict, message, { code: 'payload_changed', currentHash: payloadHash });
  }
  for (const [name, value] of Object.entries(body)) {
    terminal.err(`${kind} with ${name} ${JSON.stringify(value, undefined, 2)}`);
  }
  const said = await terminal.ask(`${kind} this? [y/N] `);
  if (/^\s*y(es)?\s*$/i.test(said ?? '')) return payloadHash;
  terminal.err('nothing was sent');
  return 'left';
}

/** Talk, and not data: it is there to be read before the question. */
export function showCase(terminal: Terminal, approval: Approval): void {
  terminal.err(caseText(approval));
  if (approval.phase === 'in-doubt') {
    terminal.err(
      'It may have happened, or not. approve = it did not: try again; respond = it did; reject = give up.',
    );
  }
}

function printAnswer(terminal: Terminal, answer: Answer): void {
  printTable(
    terminal,
    [answer],
    [
      { title: 'key', of: ({ key }) => key },
      { title: 'verdict', of: ({ verdict }) => verdict },
      { title: 'state', of: ({ state }) => state },
      {
        title: 'votes',
        of: ({ votes, needed }) => (votes === undefined ? undefined : `${votes}/${needed ?? '?'}`),
      },
      { title: 'decision', of: ({ decisionId }) => decisionId },
    ],
  );
}
