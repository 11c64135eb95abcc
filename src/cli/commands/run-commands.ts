// Runs: start one, look at them, cancel one, read a trail.
import type { Command } from 'commander';
import type { TrailFact } from '../../core/trail-fact.ts';
import { readJson } from '../read-json.ts';
import { labelled, printJson, printTable, printText, roughly } from '../show.ts';
import { visible } from '../talk.ts';
import { waitForRun, type Run } from '../wait-for-run.ts';
import {
  duration,
  online,
  readPages,
  withFilters,
  withIdempotencyKey,
  withJson,
  type CommandContext,
  type JsonOption,
  type PageOptions,
} from './parts.ts';

type RunOptions = JsonOption & {
  input?: string;
  id?: string;
  wait?: boolean;
  timeout?: number;
  idempotencyKey?: string;
};

export function addRunCommands(program: Command, context: CommandContext): void {
  const run = program
    .command('run')
    .argument('<spec>', 'name of a spec')
    .description('start a run; prints its id and nothing else')
    .option('--input <file>', 'its input as JSON; - for stdin; default: {}')
    .option('--id <id>', 'its id; the same id again gives the same run')
    .option('--wait', 'wait for its end, progress on stderr; on a terminal, show each case and ask')
    .option('--timeout <duration>', 'with --wait: give up waiting after this (exit code 75)', duration);
  withIdempotencyKey(withJson(run)).action(
    online(context, async (on, spec: string, options: RunOptions) => {
      const { terminal, api } = on;
      const { input, id, json, idempotencyKey } = options;
      const body = {
        spec,
        ...(input === undefined ? {} : { input: await readJson(terminal, input) }),
        ...(id === undefined ? {} : { id }),
      };
      const answer = await api.request({ method: 'POST', path: '/runs', body, idempotencyKey });
      const started = answer.body as Run;
      if (answer.status === 200) terminal.err('an earlier, equal request started this run');
      // at once: whoever reads it need not wait for the end
      if (json !== true) printText(terminal, started.id);
      if (options.wait !== true) {
        if (json === true) printJson(terminal, started);
        return;
      }
      // a stdin that was the input cannot be asked
      const wish = { timeoutMs: options.timeout, mayAsk: input !== '-' };
      const waited = await waitForRun(on, started.id, wish);
      if (json === true) printJson(terminal, waited.run);
      return waited.exitCode;
    }),
  );

  const runs = program.command('runs').description('list, show and cancel runs');
  const list = runs
    .command('list')
    .description('runs: the open ones, newest first, then those that ended last')
    .option('--status <status>', 'only those with this status')
    .option('--spec <name>', 'only those of this spec')
    .option('--since <time>', 'only those started at or after this time (ISO 8601)');
  type ListOptions = JsonOption & PageOptions & { status?: string; spec?: string; since?: string };
  withJson(withFilters(list)).action(
    online(context, async (on, { json, status, spec, since, ...page }: ListOptions) => {
      const ask = { path: '/runs', member: 'runs', query: { status, spec, since } };
      const { rows, ...more } = await readPages(on, ask, page);
      if (json === true) return printJson(on.terminal, { runs: rows, ...more });
      printTable(on.terminal, rows as Run[], [
        { title: 'id', of: ({ id }) => id },
        { title: 'status', of: ({ status }) => status },
        { title: 'spec', of: ({ spec }) => spec },
        { title: 'started', of: ({ createdAt }) => createdAt },
        { title: 'pending', of: ({ pendingApprovals }) => pendingApprovals.map(({ key }) => key).join(' ') },
      ]);
    }),
  );

  withJson(runs.command('show').argument('<run>', 'run id').description('one run')).action(
    online(context, async ({ terminal, api }, id: string, { json }: JsonOption) => {
      const { body } = await api.request({ path: `/runs/${encodeURIComponent(id)}` });
      if (json === true) printJson(terminal, body);
      else printText(terminal, runText(body as Run, terminal.now()));
    }),
  );

  const cancel = runs.command('cancel').argument('<run>', 'run id').description('cancel a run');
  withIdempotencyKey(withJson(cancel)).action(
    online(context, async (on, id: string, options: JsonOption & { idempotencyKey?: string }) => {
      const { terminal, api } = on;
      const path = `/runs/${encodeURIComponent(id)}/cancel`;
      const { idempotencyKey } = options;
      const { body } = await api.request({ method: 'POST', path, body: {}, idempotencyKey });
      if (options.json === true) printJson(terminal, body);
      else printText(terminal, id);
      terminal.err('asked to cancel: open approvals end as cancelled, an effect in flight is awaited');
    }),
  );

  const trail = program
    .command('trail')
    .argument('<run>', 'run id')
    .description('what happened in a run, fact by fact')
    .option('--jsonl', 'one JSON object a line');
  withJson(trail).action(
    online(context, async (on, id: string, options: JsonOption & { jsonl?: boolean }) => {
      const { terminal, api } = on;
      const path = `/runs/${encodeURIComponent(id)}/trail`;
      if (options.jsonl === true) {
        const { text } = await api.request({ path, headers: { accept: 'application/jsonl' } });
        terminal.out(visible(text));
        return;
      }
      const { body } = await api.request({ path });
      if (options.json === true) printJson(terminal, body);
      else printTrail(context, (body as { trail: TrailFact[] }).trail);
    }),
  );
}

function runText(run: Run, now: number): string {
  const { id, status, spec, specHash, createdAt, closedAt, startedBy, input, output, error } = run;
  const age = roughly(Math.max(0, now - Date.parse(createdAt)));
  return labelled([
    ['Run', id],
    ['Status', status],
    ['Spec', spec === undefined ? undefined : `${spec}${specHash === undefined ? '' : ` ${specHash}`}`],
    ['Started', `${createdAt} (${age} ago)${startedBy === undefined ? '' : ` by ${startedBy.id}`}`],
    ['Ended', closedAt],
    ...run.steps.map((step) => ['Step', stepText(step)] as const),
    ...run.pendingApprovals.map(({ key }) => ['Pending', key] as const),
    ['Input', pretty(input)],
    ['Output', pretty(output)],
    ['Error', pretty(error)],
  ]);
}

function stepText({ position, status, attempt, lastError, nextAttemptAt }: Run['steps'][number]): string {
  if (attempt === undefined) return `${position} ${status}`;
  const when = nextAttemptAt === undefined ? 'runs' : `at ${nextAttemptAt}`;
  return `${position} ${status}, attempt ${attempt} ${when}; the one before: ${lastError ?? ''}`;
}

function pretty(value: unknown): string | undefined {
  return value === undefined ? undefined : JSON.stringify(value, undefined, 2);
}

function printTrail({ terminal }: CommandContext, facts: readonly TrailFact[]): void {
  printTable(terminal, facts, [
    { title: 'seq', of: ({ seq }) => String(seq) },
    { title: 'at', of: ({ at }) => at },
    { title: 'position', of: ({ position }) => position },
    { title: 'fact', of: ({ type, superseded }) => `${type}${superseded === true ? ' (superseded)' : ''}` },
    { title: 'about', of: aboutFact },
  ]);
}

/** Who and why, or what came out; the whole of it is in --json. */
function aboutFact(fact: TrailFact): string | undefined {
  const { by, decision, code, message, status, tool } = fact as TrailFact & {
    by?: { id: string; verified?: boolean };
    decision?: { reason?: string };
    code?: string;
    message?: string;
    status?: string;
    tool?: string;
  };
  const who = by === undefined ? undefined : `by ${by.id}${by.verified === false ? ' (unverified)' : ''}`;
  const parts = [tool, code, status, who, decision?.reason, message];
  return parts.filter((part) => part !== undefined).join(' ');
}
