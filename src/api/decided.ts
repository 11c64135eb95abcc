// GET /decisions: the cases that people decided, with their verdicts, for reading and for evaluation sets. They
// are read from the trails of a page of runs: newest run first, and in a page the newest decision first.
import type { RunDescription } from '../countersign-client.ts';
import type { TrailFact } from '../core/trail-fact.ts';
import { caseView } from './approval-view.ts';
import type { ApiDeps } from './deps.ts';
import { gateOf, type GateRecord } from './gate-record.ts';
import type { SkipOdd } from './odd-runs.ts';
import { isPending } from './run-view.ts';
import type { DecisionRow } from './schemas.ts';

/** Trails read at a time: each is a whole history. */
const trailsAtOnce = 4;

export async function decidedIn(
  { client, baseUrl }: Pick<ApiDeps, 'client' | 'baseUrl'>,
  skipOdd: SkipOdd,
  runs: readonly RunDescription[],
): Promise<DecisionRow[]> {
  const rows: DecisionRow[] = [];
  const queue = runs.filter(({ approvals }) => approvals.some((entry) => !isPending(entry)));
  const read = async () => {
    for (let run = queue.shift(); run !== undefined; run = queue.shift()) {
      const one = run;
      const decided = async () => decidedInTrail(one, await client.readTrail(one.runId), baseUrl);
      rows.push(...((await skipOdd(one, decided)) ?? []));
    }
  };
  await Promise.all(Array.from({ length: trailsAtOnce }, read));
  return rows.sort((a, b) => (a.at < b.at ? 1 : a.at > b.at ? -1 : a.key < b.key ? -1 : 1));
}

function decidedInTrail(
  run: RunDescription,
  trail: readonly TrailFact[],
  baseUrl: string | undefined,
): DecisionRow[] {
  const keys = new Set(trail.flatMap((fact) => (fact.type === 'approval_requested' ? [fact.key] : [])));
  return [...keys].flatMap((key) => {
    const record = gateOf(trail, key);
    return record === undefined ? [] : decisionRow(run, record, baseUrl);
  });
}

function decisionRow(
  run: RunDescription,
  { requested, earlier, outcome }: GateRecord,
  baseUrl: string | undefined,
): DecisionRow[] {
  if (outcome?.decision === undefined || outcome.by === undefined) return [];
  const { decisionId, decision, reason, result, via } = outcome.decision;
  const { key, ...rest } = caseView(run, requested, baseUrl);
  return [
    {
      key,
      decisionId,
      verdict: outcome.state,
      decision,
      ...(reason === undefined ? {} : { reason }),
      ...(result === undefined ? {} : { result }),
      by: outcome.by,
      via,
      at: outcome.at,
      case: { ...rest, ...(earlier.length === 0 ? {} : { earlier }) },
    },
  ];
}
