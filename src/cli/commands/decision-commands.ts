// Decisions on one approval. Those that make something run name the hash of what was seen: the case is
// shown and asked about on a terminal, and elsewhere --yes comes with --hash.
import type { Command } from 'commander';
import { bindingKinds, decide, type DecideOptions, type DecisionKind } from '../decide.ts';
import { usageProblem } from '../exit-codes.ts';
import { readJson } from '../read-json.ts';
import { online, withIdempotencyKey, withJson, type CommandContext } from './parts.ts';

type Options = DecideOptions & { reason?: string; arguments?: string; result?: string };

const asks = 'the case is shown and asked about; without a terminal, --yes and --hash';

export function addDecisionCommands(program: Command, context: CommandContext): void {
  const approve = decision(program, 'approve', `say yes to a case; ${asks}`);
  withConsent(approve);
  act(approve, 'approve', ({ reason }) => reasonOf(reason));

  const reject = decision(program, 'reject', 'say no; the run learns the reason word for word');
  act(withHash(reject), 'reject', ({ reason }) => reasonOf(reason));

  const edit = decision(program, 'edit', `approve with other arguments; ${asks}`).requiredOption(
    '--arguments <file>',
    'all arguments as JSON; - for stdin',
  );
  withConsent(edit);
  act(edit, 'edit', async ({ reason, arguments: file = '' }) => ({
    arguments: await readJson(context.terminal, file),
    ...reasonOf(reason),
  }));

  const respond = decision(program, 'respond', `answer in the tool's place; ${asks}`).requiredOption(
    '--result <file>',
    'the result as JSON; - for stdin',
  );
  withConsent(respond);
  act(respond, 'respond', async ({ reason, result: file = '' }) => ({
    result: await readJson(context.terminal, file),
    ...reasonOf(reason),
  }));

  const amend = decision(program, 'amend', 'replace the arguments as the requester; it stays pending');
  amend.requiredOption('--arguments <file>', 'all arguments as JSON; - for stdin');
  act(withHash(amend), 'amend', async ({ reason, arguments: file = '' }) => ({
    arguments: await readJson(context.terminal, file),
    ...reasonOf(reason),
  }));

  const withdraw = decision(program, 'withdraw', 'take the request back, as the requester');
  act(withHash(withdraw), 'withdraw', ({ reason }) => reasonOf(reason));

  const comment = withIdempotencyKey(
    withJson(
      program
        .command('comment')
        .argument('<key>', 'approval key')
        .argument('<text>', 'what to say')
        .description('say something about a case; it stays pending'),
    ),
  );
  comment.action(
    online(context, async (on, key: string, text: string, options: DecideOptions) =>
      decide(on, { kind: 'comment', key, body: { reason: text } }, options),
    ),
  );

  function act(
    command: Command,
    kind: DecisionKind,
    bodyOf: (options: Options) => Record<string, unknown> | Promise<Record<string, unknown>>,
  ): void {
    command.action(
      online(context, async (on, key: string, options: Options) => {
        const { yes, arguments: args, result } = options;
        if (bindingKinds.has(kind) && yes !== true && (args === '-' || result === '-')) {
          throw usageProblem(
            'a stdin that is read as JSON cannot be asked: name a file, or --yes and --hash',
          );
        }
        return decide(on, { kind, key, body: await bodyOf(options) }, options);
      }),
    );
  }
}

function decision(program: Command, name: DecisionKind, description: string): Command {
  const command = program
    .command(name)
    .argument('<key>', 'approval key')
    .description(description)
    .option('--reason <text>', 'why; for the run, the trail and whoever asked');
  return withIdempotencyKey(withJson(command));
}

function withHash(command: Command): Command {
  return command.option('--hash <hash>', 'only if the payload still has this hash');
}

function withConsent(command: Command): Command {
  return withHash(command).option('--yes', 'do not ask; needs --hash');
}

function reasonOf(reason: string | undefined): Record<string, unknown> {
  return reason === undefined ? {} : { reason };
}
