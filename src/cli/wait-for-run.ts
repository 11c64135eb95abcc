// Waits until a run has ended, and says on stderr what it is doing. On a terminal it shows each case that
// the run asks about, and asks.
import type { z } from '@hono/zod-openapi';
import type { runView } from '../api/schemas.ts';
import type { ApiClient } from './api-client.ts';
import { CliProblem, exitCodes, type ExitCode } from './exit-codes.ts';
import { readApproval, sendDecision, showCase } from './decide.ts';
import { roughly } from './show.ts';
import type { Terminal } from './terminal.ts';

export type Run = z.infer<typeof runView>;

// Soon enough for a person; a run that nobody decides costs the API one read a second.
const pollMs = 1000;
/** How long the API may be away, with the client's own tries on top. */
const awayBoundMs = 60_000;
/** A sign of life for whoever looks at the terminal or the log of a job. */
const lifeMs = 30_000;

export interface Waited {
  run: Run;
  exitCode: ExitCode;
}

/** `timeoutMs` absent: as long as it takes. Gives exit code 75 when the run has not ended by then. */
export async function waitForRun(
  { terminal, api }: { terminal: Terminal; api: ApiClient },
  runId: string,
  { timeoutMs, mayAsk }: { timeoutMs?: number | undefined; mayAsk: boolean },
): Promise<Waited> {
  const began = terminal.now();
  const offered = new Set<string>();
  let said = '';
  let lastLine = began;
  for (;;) {
    const run = await readRun(terminal, api, runId);
    const exitCode = exitCodeOfRun(run.status);
    const line = progress(run);
    const now = terminal.now();
    if (line !== said || now - lastLine >= lifeMs) {
      terminal.err(`${roughly(now - began)} ${line}`);
      said = line;
      lastLine = now;
    }
    if (exitCode !== undefined) return { run, exitCode };
    if (timeoutMs !== undefined && now - began >= timeoutMs) {
      terminal.err(`not ended in ${roughly(timeoutMs)}; it goes on without this command`);
      return { run, exitCode: exitCodes.pending };
    }
    const next = run.pendingApprovals.find(({ key }) => !offered.has(key));
    if (mayAsk && terminal.canAsk && next !== undefined) {
      offered.add(next.key);
      await offer(terminal, api, next.key);
      continue;
    }
    const left = timeoutMs === undefined ? pollMs : began + timeoutMs - now;
    await terminal.sleep(Math.max(1, Math.min(pollMs, left)));
  }
}

/** Undefined while it runs. */
function exitCodeOfRun(status: Run['status']): ExitCode | undefined {
  switch (status) {
    case 'completed':
      return exitCodes.ok;
    case 'rejected':
    case 'failed':
    case 'cancelled':
      return exitCodes.runFailed;
    default:
      return undefined;
  }
}

function progress({ status, steps, pendingApprovals, error }: Run): string {
  const running = steps.filter((step) => step.status === 'running').map(({ position }) => position);
  const keys = pendingApprovals.map(({ key }) => key);
  return [
    status,
    ...(running.length === 0 ? [] : [`at ${running.join(', ')}`]),
    ...(keys.length === 0 ? [] : [`waiting for ${keys.join(', ')}`]),
    ...(error === undefined ? [] : [JSON.stringify(error)]),
  ].join(' ');
}

async function offer(terminal: Terminal, api: ApiClient, key: string): Promise<void> {
  try {
    const approval = await readApproval(api, key);
    if (approval.state !== 'pending') return;
    showCase(terminal, approval);
    const said = ((await terminal.ask('approve, reject, or leave it to others? [a/r/L] ')) ?? '').trim();
    if (/^a(pprove)?$/i.test(said)) await sendDecision(api, { kind: 'approve', key }, approval.payloadHash);
    else if (/^r(eject)?$/i.test(said)) {
      const reason = (await terminal.ask('reason: ')) ?? '';
      const body = reason === '' ? {} : { reason };
      await sendDecision(api, { kind: 'reject', key, body }, approval.payloadHash);
    } else terminal.err('left to others');
  } catch (error) {
    // somebody else was first, or one may not: the run goes on, and so does the wait
    if (!(error instanceof CliProblem)) throw error;
    terminal.err(error.message);
  }
}

/** Bears with an API that restarts. */
async function readRun(terminal: Terminal, api: ApiClient, runId: string): Promise<Run> {
  const began = terminal.now();
  for (;;) {
    try {
      const { body } = await api.request({ path: `/runs/${encodeURIComponent(runId)}` });
      return body as Run;
    } catch (error) {
      const away = error instanceof CliProblem && error.exitCode === exitCodes.unavailable;
      if (!away || terminal.now() - began >= awayBoundMs) throw error;
      terminal.err(`${error.message}\n  trying again`);
      await terminal.sleep(pollMs);
    }
  }
}
