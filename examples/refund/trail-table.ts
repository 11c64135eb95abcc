// A trail as a table: when, what, where in the run, and what a person wants to know of it.
import { visible } from '../../src/cli/talk.ts';
import type { Fact } from './api-client.ts';

/** `refund-ord-1001` and its like fit; what is longer is cut. */
const widest = 90;

export function trailTable(trail: readonly Fact[]): string[] {
  const rows = trail.map((fact) => [
    String(fact.seq),
    fact.at.slice(11, 23),
    fact.type,
    fact.position ?? '',
    visible(detailOf(fact)),
  ]);
  const all = [['#', 'time (UTC)', 'fact', 'position', 'what of it'], ...rows];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...all.map((row) => row[column]!.length)));
  return all.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

function detailOf(fact: Fact): string {
  const { decision, by, startedBy, output } = fact as Fact & {
    decision?: { via?: string; reason?: string };
    by?: { name?: string; id: string };
    startedBy?: { name?: string; id: string };
  };
  const who = by === undefined ? '' : `${by.name ?? ''} (${by.id}) by ${decision?.via ?? '?'}`;
  switch (fact.type) {
    case 'run_started':
      return `${cut(fact['input'])} by ${startedBy?.name ?? 'nobody known'}`;
    case 'approval_requested':
      return `${String(fact['payloadHash']).slice(0, 19)}…  ${cut(fact['arguments'])}`;
    case 'approval_granted':
    case 'approval_rejected':
      return `${who}${decision?.reason === undefined ? '' : `: ${decision.reason}`}`;
    case 'decision_refused':
      return `${String(fact['code'])} ${who}`;
    case 'effect_started':
      return `key ${String(fact['idempotencyKey'])}`;
    case 'tool_result':
      return `attempt ${String(fact['attempts'])}: ${cut(output)}`;
    case 'run_finished':
      return String(fact['status']);
    default:
      return output === undefined ? '' : cut(output);
  }
}

function cut(value: unknown): string {
  const text = JSON.stringify(value) ?? '';
  return text.length > widest ? `${text.slice(0, widest)}…` : text;
}
