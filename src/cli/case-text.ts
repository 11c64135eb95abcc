// A case as one reads it before deciding: what will run, word for word, its hash, and how long there is.
import type { z } from '@hono/zod-openapi';
import type { approvalView } from '../api/schemas.ts';
import { labelled, roughly } from './show.ts';

export type Approval = z.infer<typeof approvalView>;

export function caseText(approval: Approval): string {
  const { key, title, state, timeLeftMs, expiresAt, runId, spec, step, tool, phase, outcome } = approval;
  const { requestedBy, earlier = [] } = approval;
  const left = timeLeftMs === undefined ? '' : `, ${roughly(timeLeftMs)} left`;
  const until = expiresAt === undefined || state !== 'pending' ? '' : ` (until ${expiresAt})`;
  return labelled([
    ['Approval', key],
    ['Title', title],
    ['State', `${state}${left}${until}`],
    ['Decided', outcome === undefined ? undefined : outcomeText(outcome)],
    ['Run', `${runId}${spec === undefined ? '' : ` (spec ${spec})`}`],
    ['Asked by', requestedBy === undefined ? undefined : (requestedBy.name ?? requestedBy.id)],
    ['Step', `${step}${phase === undefined ? '' : ` (${phase})`}`],
    ['Tool', tool],
    ['Arguments', pretty(approval.arguments)],
    ...earlier.map((payload) => ['Replaced', pretty(payload.arguments)] as const),
    ['Question', pretty(approval.question)],
    ['In doubt', pretty(approval.doubt)],
    ['Reasoning', approval.reasoning],
    ['Policy', approval.policy === undefined ? undefined : JSON.stringify(approval.policy)],
    ['Hash', approval.payloadHash],
  ]);
}

export function outcomeText({ by, at, via, reason }: NonNullable<Approval['outcome']>): string {
  const who =
    by === undefined ? 'nobody' : `${by.name ?? by.id}${by.verified === false ? ' (unverified)' : ''}`;
  return `by ${who} at ${at}${via === undefined ? '' : ` via ${via}`}${reason === undefined ? '' : `: ${reason}`}`;
}

function pretty(value: unknown): string | undefined {
  return value === undefined ? undefined : JSON.stringify(value, undefined, 2);
}
