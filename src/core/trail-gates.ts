// The gates of one execution as a trail sees them: which decisions were queued, refused at once, judged,
// or overtaken. It repeats what src/workflows/run.ts and gate.ts do, on events instead of live signals.
import { gatesToCarry, type Carried } from './carried.ts';
import type { ApprovalMemo, CaseRecord, VerdictRecord } from './case.ts';
import { readDecisionText, sameDecision, type Decision } from './decision.ts';
import { acceptedKept, judgeDelivery, stateAfter, type GateView, type RunPlace } from './gate-state.ts';
import type { FailureInfo, HistoryEvent } from './history-event.ts';
import type { Json } from './json.ts';
import { utf8Length } from './json-value.ts';
import { memoFields } from './names.ts';
import { gatesIn, isTime } from './record-shape.ts';
import { readSignal } from './signal.ts';
import type { DecisionFact, FactBody } from './trail-fact.ts';
import type { Emit } from './trail.ts';
import type { RefusalCode } from './verdict.ts';

type SignalEvent = Extract<HistoryEvent, { type: 'signaled' }>;

interface Queued {
  /** of the signal; absent where the execution that had it is not kept any more */
  identity?: string;
  decision: Decision;
  /** its signal, unless that came in an earlier execution */
  signal?: SignalEvent;
}

export interface TrailGate extends GateView {
  /** absent of one that was settled in an execution that is not kept any more */
  frozen?: CaseRecord;
  queue: Queued[];
}

export type TrailGates = ReturnType<typeof createTrailGates>;

/** @param carried what `carry()` of the execution gave that this one continues */
export function createTrailGates(place: RunPlace, emit: Emit, carried: readonly TrailGate[] = []) {
  const gates = new Map(carried.map((gate) => [gate.key, { ...gate, queue: [...gate.queue] }]));
  const inbox: SignalEvent[] = [];

  const refuse = (
    at: HistoryEvent,
    queued: Queued,
    code: RefusalCode,
    message: string,
    gate?: TrailGate,
  ): void => {
    const { decision, identity, signal } = queued;
    const body = { code, message, key: decision.key, decision, by: { ...decision.by, verified: false } };
    const sender = identity === undefined ? {} : { identity };
    // what overtook it may stand before it: results of activities are seen after the signals of their task
    const seen = signal !== undefined && signal.eventId > at.eventId ? signal : at;
    emit(seen, { type: 'decision_refused', ...body, ...sender }, gate?.position);
  };

  const judge = (at: HistoryEvent, queued: Queued): void => {
    const { key, root } = queued.decision;
    const gate = root === place.root ? gates.get(key) : undefined;
    const delivery = judgeDelivery(queued.decision, place, gate);
    if (delivery.action === 'refuse') refuse(at, queued, delivery.code, delivery.message, gate);
    else if (delivery.action === 'take') gate?.queue.push(queued);
  };

  const settle = (event: HistoryEvent, gate: TrailGate): void => {
    for (const queued of gate.queue.splice(0)) judge(event, queued);
  };

  return {
    /** The gates as the execution that continues this one begins with them, by the rules of the workflow. */
    carry(): TrailGate[] {
      return gatesToCarry(gates.values()).map(({ gate: { frozen, queue }, view }) => ({
        ...view,
        ...(frozen === undefined ? {} : { frozen }),
        queue: queue.map(({ signal: _, ...queued }) => queued),
      }));
    },

    /** The execution before is not kept any more: what it carried is all there is of its gates. */
    takeOver(event: HistoryEvent, carried: Carried): void {
      for (const { view, frozen, end, queue = [] } of gatesIn(carried)) {
        const asked = frozen ?? end?.case;
        if (asked !== undefined) this.open(event, asked, view);
        else gates.set(view.key, { ...view, queue: [] });
        for (const text of queue) {
          const reading = readDecisionText(text, utf8Length(text));
          const isNew = reading.ok && !isRepeated(view, reading.decision);
          if (isNew) gates.get(view.key)?.queue.push({ decision: reading.decision });
        }
      }
    },

    /** A signal is in the history; the workflow sees it with its next task. */
    receive(event: SignalEvent): void {
      inbox.push(event);
    },

    /** A workflow task is done: it saw the signals that came before it. */
    deliver(): void {
      for (const event of inbox.splice(0)) {
        const { reading } = readSignal(event.input);
        if (reading.ok) {
          judge(event, { identity: event.identity, decision: reading.decision, signal: event });
        } else {
          const { code, problem } = reading;
          emit(event, { type: 'decision_refused', code, message: problem, identity: event.identity });
        }
      }
    },

    open(event: HistoryEvent, frozen: CaseRecord, view?: GateView): void {
      const { key, position, phase, title, tool, question, reasoning, payloadHash, policy } = frozen;
      gates.set(key, { ...(view ?? { key, position, state: 'pending' }), frozen, queue: [] });
      const times = {
        requestedAt: new Date(frozen.requestedAt).toISOString(),
        expiresAt: new Date(frozen.expiresAt).toISOString(),
      };
      const subject = {
        ...(tool === undefined ? {} : { tool }),
        ...(frozen.arguments === undefined ? {} : { arguments: frozen.arguments }),
        ...(question === undefined ? {} : { question }),
        ...(frozen.doubt === undefined ? {} : { doubt: frozen.doubt }),
        ...(frozen.requestedBy === undefined ? {} : { requestedBy: frozen.requestedBy }),
        ...(reasoning === undefined ? {} : { reasoning }),
      };
      const body = { key, phase, title, ...subject, payloadHash, policy, ...times };
      emit(event, { type: 'approval_requested', ...body }, position);
    },

    /** A recorded verdict. Returns how the gate ended, if this ended it. */
    verdict(event: HistoryEvent, { key, decision, by, verdict, code, message, case: anew }: VerdictRecord) {
      const gate = gates.get(key);
      if (gate?.state !== 'pending') return undefined;
      const index = gate.queue.findIndex(
        (queued) =>
          queued.decision.decisionId === decision.decisionId && sameDecision(queued.decision, decision),
      );
      // decisions are judged in their order: one that was passed over is one whose check failed
      const passed = gate.queue.splice(0, Math.max(0, index));
      for (const queued of passed) refuse(event, queued, 'check_failed', 'the check itself failed', gate);
      const identity = gate.queue.shift()?.identity ?? '';
      const fact = { key, decision, by, identity };
      if (verdict === 'refused') {
        const why = { code: code ?? 'check_failed', ...(message === undefined ? {} : { message }) };
        emit(event, { type: 'decision_refused', ...fact, ...why }, gate.position);
        return undefined;
      }
      emit(event, acceptedFact(fact, anew), gate.position);
      if (anew !== undefined) gate.frozen = anew;
      const state = stateAfter(decision.decision);
      if (state === undefined) {
        gate.accepted = [...(gate.accepted ?? []), decision].slice(-acceptedKept);
        // sent twice before it was judged: the second has its answer without a verdict, and is no new fact
        gate.queue = gate.queue.filter((queued) => !isRepeated(gate, queued.decision));
        return undefined;
      }
      gate.state = state;
      gate.winner = decision;
      gate.settlement = { state, by, decisionId: decision.decisionId, at: event.at };
      settle(event, gate);
      return { state, phase: gate.frozen?.phase };
    },

    /**
     * The admitting activity used up its attempts; its failure names the decision, unless Temporal's own
     * timeout ended it. Then it is the first that waits: a gate judges them in their order.
     */
    checkFailed(event: HistoryEvent, failure: FailureInfo, key: string | undefined): void {
      const [details] = failure.details as ({ key?: string; decisionId?: string } | null | undefined)[];
      const gate = gates.get(details?.key ?? key ?? '');
      const named =
        gate?.queue.findIndex(({ decision }) => decision.decisionId === details?.decisionId) ?? -1;
      const index = details?.decisionId === undefined ? 0 : named;
      const [queued] = index < 0 ? [] : (gate?.queue.splice(index, 1) ?? []);
      if (queued !== undefined) refuse(event, queued, 'check_failed', failure.message, gate);
    },

    /** The run is over: what it had not seen or judged came too late, and what still asked asks no more. */
    close(event: HistoryEvent): void {
      this.deliver();
      for (const gate of gates.values()) {
        if (gate.state !== 'pending') continue;
        gate.state = 'cancelled';
        gate.settlement = { state: 'cancelled', at: event.at };
        emit(event, { type: 'approval_cancelled', key: gate.key }, gate.position);
        settle(event, gate);
      }
    },

    /** The memo says how a gate ended that no decision ended. */
    memo(event: HistoryEvent, field: string, value: Json): void {
      const memo = value as ApprovalMemo | null;
      if (memo?.state !== 'expired' && memo?.state !== 'cancelled') return;
      const position = field.slice(memoFields.approvalPrefix.length);
      const gate = [...gates.values()].find((one) => one.position === position && one.state === 'pending');
      if (gate === undefined) return;
      gate.state = memo.state;
      gate.settlement = { state: memo.state, at: isTime(memo.at) ? memo.at : event.at };
      const type = memo.state === 'expired' ? 'approval_expired' : 'approval_cancelled';
      emit(event, { type, key: gate.key }, position);
      settle(event, gate);
    },
  };
}

function isRepeated({ accepted = [] }: GateView, decision: Decision): boolean {
  return accepted.some((earlier) => sameDecision(earlier, decision));
}

/** The fact that an accepted decision is. */
function acceptedFact(fact: DecisionFact, anew: CaseRecord | undefined): FactBody {
  const payload = { arguments: anew?.arguments ?? null, payloadHash: anew?.payloadHash ?? '' };
  switch (fact.decision.decision) {
    case 'approve':
      return { type: 'approval_granted', ...fact };
    case 'edit':
      return { type: 'approval_edited', ...fact, ...payload };
    case 'amend':
      return { type: 'approval_amended', ...fact, ...payload };
    case 'withdraw':
      return { type: 'approval_withdrawn', ...fact };
    case 'respond':
      return { type: 'approval_responded', ...fact };
    case 'comment':
      return { type: 'approval_commented', ...fact };
    default:
      return { type: 'approval_rejected', ...fact };
  }
}
