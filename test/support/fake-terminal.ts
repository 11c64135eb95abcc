// A terminal or a pipe for the command line, in memory: what is printed is kept, questions are answered from
// a script, and sleeping moves its clock instead of taking time.
import { runCommandLine } from '../../src/cli/program.ts';
import { visible } from '../../src/cli/talk.ts';
import type { Terminal } from '../../src/cli/terminal.ts';

export interface FakeTerminalOptions {
  env?: NodeJS.ProcessEnv;
  /** somebody sits there; the answers in order, a function is called first. More questions than answers fail */
  answers?: (string | (() => Promise<string>))[];
  /** stdout is a terminal. Default: when there are answers */
  tty?: boolean;
  stdin?: string;
  /** called with each sleep, and with how many there were before */
  onSleep?: (count: number, ms: number) => void | Promise<void>;
}

export interface CommandOutcome {
  exitCode: number;
  stdout: string;
  stderr: string;
  /** in milliseconds, in order */
  sleeps: number[];
  questions: string[];
}

/** Runs one command line to its end. */
export async function runCommand(
  args: readonly string[],
  { env = {}, answers, tty = answers !== undefined, stdin, onSleep }: FakeTerminalOptions = {},
): Promise<CommandOutcome> {
  const outcome: CommandOutcome = { exitCode: -1, stdout: '', stderr: '', sleeps: [], questions: [] };
  const script = [...(answers ?? [])];
  let now = Date.parse('2026-11-02T10:00:00.000Z');
  const terminal: Terminal = {
    env,
    out: (text) => void (outcome.stdout += text),
    err: (line) => void (outcome.stderr += `${visible(line)}\n`),
    outIsTty: tty,
    canAsk: answers !== undefined,
    async ask(question) {
      if (answers === undefined) throw new Error(`asked without a terminal: ${question}`);
      outcome.questions.push(question);
      const answer = script.shift();
      if (answer === undefined) throw new Error(`asked more often than scripted: ${question}`);
      return typeof answer === 'string' ? answer : answer();
    },
    async readStdin() {
      if (stdin === undefined) throw new Error('stdin is read, and the test has none');
      return Buffer.from(stdin);
    },
    async sleep(ms) {
      if (outcome.sleeps.length > 1000) throw new Error('it sleeps for ever');
      now += ms;
      outcome.sleeps.push(ms);
      await onSleep?.(outcome.sleeps.length - 1, ms);
    },
    now: () => now,
  };
  outcome.exitCode = await runCommandLine(args, terminal);
  return outcome;
}
