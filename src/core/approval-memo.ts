// Sandbox-safe. The memo record of a pending gate, at most 400 bytes of JSON: the run writes it, and the API
// where it freezes before the run begins.
import type { ApprovalMemo, CaseRecord } from './case.ts';
import { utf8Length } from './json-value.ts';

const titleLimitBytes = 120;

export function pendingMemo(
  frozen: Pick<CaseRecord, 'phase' | 'tool' | 'title' | 'payloadHash' | 'requestedAt' | 'expiresAt'>,
): ApprovalMemo {
  const { phase, tool, title, payloadHash, requestedAt, expiresAt } = frozen;
  return {
    state: 'pending',
    phase,
    ...(tool === undefined ? {} : { tool }),
    title: cutTitle(title, titleLimitBytes),
    hash: payloadHash,
    requestedAt,
    expiresAt,
  };
}

/** Control characters as one space: a title is one line wherever it is shown. */
export function oneLine(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ');
}

/** Cuts at a character so that the JSON text (escapes counted) is at most `limit` bytes. */
function cutTitle(text: string, limit: number): string {
  let bytes = 0;
  let cut = '';
  for (const char of oneLine(text)) {
    bytes += utf8Length(JSON.stringify(char)) - 2;
    if (bytes > limit) return `${cut}…`;
    cut += char;
  }
  return cut;
}
