// Sandbox-safe. The words of a case beside its payload. They are recorded and shown with it, so they have
// limits too; the workflow asks before it sends them, the activity once the templates are resolved.
import type { FailureCode } from './failures.ts';
import { hasLoneSurrogate, utf8Length } from './json-value.ts';

/** Bytes in UTF-8. A title is what one reads first, in lists and messages: 4 KiB, as a reason. */
const titleLimitBytes = 4 * 1024;
/** An agent's own account of why; as long as a payload, so that a case stays far under Temporal's 2 MiB. */
const reasoningLimitBytes = 256 * 1024;

export interface CaseText {
  title?: unknown;
  reasoning?: unknown;
}

/** What keeps the words of a case from being recorded and shown, or undefined. */
export function caseTextProblem({ title, reasoning }: CaseText) {
  return (
    textProblem('title', title, titleLimitBytes) ?? textProblem('reasoning', reasoning, reasoningLimitBytes)
  );
}

function textProblem(
  name: string,
  text: unknown,
  limit: number,
): { code: FailureCode; message: string } | undefined {
  if (text === undefined) return undefined;
  if (typeof text !== 'string' || hasLoneSurrogate(text)) {
    return { code: 'invalid_value', message: `the ${name} must be text` };
  }
  const bytes = utf8Length(text);
  if (bytes <= limit) return undefined;
  const message = `the ${name} has ${bytes} bytes, the limit is ${limit}; shorten it`;
  return { code: 'payload_too_large', message };
}
