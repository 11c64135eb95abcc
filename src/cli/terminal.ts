// What a command sees of the process: its streams, its environment, its clock. Injected, so that a test is
// a terminal or a pipe as it likes.
import { createInterface } from 'node:readline/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { say } from './talk.ts';

export interface Terminal {
  env: NodeJS.ProcessEnv;
  /** stdout, as it is: what comes from outside goes through `visible` first */
  out(text: string): void;
  /** one line on stderr, made visible */
  err(line: string): void;
  /** stdout is a terminal: tables for people */
  outIsTty: boolean;
  /** somebody sits there who reads stderr and answers on stdin */
  canAsk: boolean;
  /** The answer without its line end; undefined at the end of stdin. */
  ask(question: string): Promise<string | undefined>;
  readStdin(): Promise<Uint8Array>;
  sleep(ms: number): Promise<void>;
  /** milliseconds since the epoch */
  now(): number;
}

export function processTerminal(): Terminal {
  const { stdin, stdout, stderr } = process;
  // `countersign runs list | head`: whoever read has enough, and that is no failure of ours
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0);
    throw error;
  });
  return {
    env: process.env,
    out: (text) => void stdout.write(text),
    err: say,
    outIsTty: stdout.isTTY,
    canAsk: stdin.isTTY && stderr.isTTY,
    async ask(question) {
      const reader = createInterface({ input: stdin, output: stderr });
      const closed = new Promise<undefined>((resolve) => reader.once('close', () => resolve(undefined)));
      try {
        return await Promise.race([reader.question(question), closed]);
      } finally {
        reader.close();
      }
    },
    async readStdin() {
      const chunks: Uint8Array[] = [];
      for await (const chunk of stdin) chunks.push(chunk as Uint8Array);
      return Buffer.concat(chunks);
    },
    sleep: (ms) => delay(ms),
    now: () => Date.now(),
  };
}
