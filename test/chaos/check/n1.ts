// N1: every 2xx is in a history, and every accepted decision is the recorded winner (or, of a comment or an
// amendment, recorded as accepted). What counts is what stands in the history, whoever told it.
import type { Evidence, Violation } from '../evidence.ts';
import { fieldsOf, textOf } from './raw-event.ts';
import { isDecision, repliesOf, type Reply } from './replies.ts';
import { stateBy, type Story } from './story.ts';

/**
 * By how much a signal's event may be later than its answer: the clocks of server and harness are one machine's,
 * read in two ways.
 */
const clockSlackMs = 100;

export function checkN1({ calls, runs }: Evidence, stories: readonly Story[]): Violation[] {
  const problems = calls.flatMap((call) =>
    repliesOf(call).flatMap((reply) =>
      reply.status >= 200 && reply.status < 300 ? problemsOf(reply, stories, runs) : [],
    ),
  );
  return [...problems, ...stories.flatMap(recordsWithoutSender)];
}

function problemsOf(reply: Reply, stories: readonly Story[], runs: Evidence['runs']): Violation[] {
  const { call, status, body } = reply;
  const { run } = call;
  const said = `${call.op} of ${call.person} by ${call.door} (call ${call.id}) was answered ${status}`;
  const violation = (what: string): Violation[] => [{ invariant: 'N1', run, what: `${said}, ${what}` }];
  const ofRun = stories.filter((story) => story.run === run);

  if (call.op === 'start') {
    const started = [run, textOf(body['id']), textOf(body['runId'])];
    const isKept = runs.some((one) => started.includes(one.run) && one.histories.length > 0);
    return isKept ? [] : violation('and there is no history of the run');
  }
  if (call.op === 'cancel') {
    const isAsked = ofRun.some(({ lineage }) =>
      lineage.steps.some(({ type }) => type === 'cancel_requested'),
    );
    return isAsked ? [] : violation('and no history has the request to cancel');
  }
  if (!isDecision(call)) return [];
  if (call.door === 'raw-malformed') return [];

  const id = call.door === 'http' ? textOf(body['decisionId']) : (call.decisionId ?? '');
  if (id === '') return call.door === 'http' ? violation('and the answer names no decision') : [];
  const times = ofRun.flatMap((story) => signalTimes(story, id, call.key));
  if (times.length === 0) return violation(`and no history has a signal with decision ${id}`);
  const first = Math.min(...times);
  if (first > reply.ended + clockSlackMs) {
    return violation(`${Math.round(first - reply.ended)} ms before Temporal had its signal (decision ${id})`);
  }
  if (call.door !== 'http' || body['verdict'] !== 'accepted') return [];
  return isRecorded(reply, id, ofRun)
    ? []
    : violation(`as accepted, and no history says so of decision ${id}`);
}

function isRecorded({ call, body }: Reply, id: string, stories: readonly Story[]): boolean {
  const gates = stories.flatMap((story) => story.gates).filter(({ key }) => key === call.key);
  if (stateBy(call.op) === undefined) {
    return gates.some(({ verdicts }) =>
      verdicts.some(({ record }) => record.verdict === 'accepted' && record.decision.decisionId === id),
    );
  }
  return gates.some(({ outcome }) => outcome?.decisionId === id && outcome.state === body['state']);
}

function signalTimes({ lineage }: Story, decisionId: string, key: string | undefined): number[] {
  return lineage.steps.flatMap((step) => {
    if (step.type !== 'decide') return [];
    const { decisionId: sentId, key: sentKey } = fieldsOf(step.sent.fields);
    return sentId === decisionId && (key === undefined || sentKey === key) ? [step.at] : [];
  });
}

/** A verdict on what nobody sent, or on a gate that nobody asked. */
function recordsWithoutSender({ run, gates, strayVerdicts, lineage }: Story): Violation[] {
  const what = strayVerdicts.map(({ key }) => `a verdict is recorded on ${key}, which was never asked`);
  for (const { key, verdicts } of gates) {
    for (const { index, record } of verdicts) {
      const { decisionId } = record.decision;
      const isSent = lineage.steps
        .slice(0, index)
        .some((step) => step.type === 'decide' && isOf(step.sent.fields, key, record.decision));
      if (!isSent)
        what.push(`a verdict is recorded on decision ${decisionId} at ${key}, which no signal brought`);
    }
  }
  return what.map((text) => ({ invariant: 'N1', run, what: text }));
}

/** A hand-sent one may leave out its id: then it is known by what it says. */
function isOf(
  fields: Record<string, unknown> | undefined,
  key: string,
  decision: { decisionId: string; decision: string; payloadHash?: string },
): boolean {
  if (fields === undefined || fields['key'] !== key || fields['decision'] !== decision.decision) return false;
  if (fields['payloadHash'] !== decision.payloadHash) return false;
  return fields['decisionId'] === undefined || fields['decisionId'] === decision.decisionId;
}
