// stdout is data, stderr is talk. A log line is `time level message name=value …`, for people and for grep;
// control characters are shown, never sent to a terminal.

export type Log = (message: string, fields?: Record<string, unknown>) => void;

export const log: Log = (message, fields = {}) => {
  const shown = Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => ` ${name}=${text(value)}`);
  say(`${new Date().toISOString()} ${message}${shown.join('')}`);
};

export function say(line: string): void {
  process.stderr.write(`${visible(line)}\n`);
}

/** One JSON line on stdout that says that a process is ready, for whoever started it. */
export function reportReady(fields: Record<string, unknown>): void {
  process.stdout.write(`${JSON.stringify({ ready: true, ...fields })}\n`);
}

/** Shows C0, C1, and the bidirectional controls of Unicode (UAX #9) as escapes; a line feed stays. */
export function visible(line: string): string {
  return line.replace(
    /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function text(value: unknown): string {
  if (typeof value === 'string') return /^[\w.:/@#-]+$/.test(value) ? value : JSON.stringify(value);
  if (value instanceof Error) return JSON.stringify(value.message);
  return JSON.stringify(value) ?? String(value);
}
