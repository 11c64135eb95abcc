// The least that can be checked, until the checker proper is there.
import type { Evidence, Violation } from './evidence.ts';

export function checkSimply(evidence: Evidence): Violation[] {
  const violations: Violation[] = [];
  for (const { name, planned, fired } of evidence.faults) {
    if (fired < planned) violations.push({ invariant: 'N7', what: `the fault ${name} did not strike` });
  }
  for (const { run, failed } of evidence.replay) {
    if (failed !== undefined) violations.push({ invariant: 'N6', run, what: failed });
  }
  const done = new Map<string, number>();
  for (const { outcome, body } of evidence.ledger) {
    const { order } = body as { order: string };
    if (outcome === 'done') done.set(order, (done.get(order) ?? 0) + 1);
  }
  for (const [order, count] of done) {
    if (count > 1) violations.push({ invariant: 'N3', what: `${order} was carried out ${count} times` });
  }
  for (const { run, status, pendingTaskFailures } of evidence.runs) {
    if (pendingTaskFailures > 0) violations.push({ invariant: 'N5', run, what: 'its workflow task fails' });
    if (status === 'unknown') violations.push({ invariant: 'N5', run, what: 'the API does not show it' });
  }
  if (evidence.settledAt - evidence.lastFaultAt > 60_000) {
    violations.push({ invariant: 'N5', what: 'not every run was settled after 60 s' });
  }
  const meant = evidence.calls.filter(({ shouldSucceed }) => shouldSucceed);
  const failed = meant.filter(({ answer, final }) => {
    const status = (final ?? answer)?.status ?? 0;
    return !(status < 300 && status >= 200) && status !== 409;
  });
  if (failed.length > meant.length * 0.2) {
    const told = failed.map(
      ({ id, op, door, answer, final }) => `${id} ${op} ${door} ${(final ?? answer)?.status}`,
    );
    violations.push({
      invariant: 'N7',
      what: `${failed.length} of ${meant.length} did not succeed: ${told.join(', ')}`,
    });
  }
  return violations;
}
