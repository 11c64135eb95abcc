// A CountersignClient over runs in memory. It judges with the same pure functions as the workflow, refuses
// what Temporal and the worker would refuse, and can be told to fail as they do.
import { randomUUID } from 'node:crypto';
import { approvalKey } from '../../src/core/approval-key.ts';
import { pendingMemo } from '../../src/core/approval-memo.ts';
import { readDecision, type Decision } from '../../src/core/decision.ts';
import { judgeDelivery, stateAfter } from '../../src/core/gate-state.ts';
import type { FactBody } from '../../src/core/trail-fact.ts';
import type { DecidedBy, Receipt, RefusalCode, Settlement } from '../../src/core/verdict.ts';
import {
  NoWorkerError,
  TemporalUnavailableError,
  type CloseStatus,
  type CountersignClient,
} from '../../src/countersign-client.ts';
import { acceptedFact, admitLikeTheWorker, type Anew } from './fake-admit.ts';
import { fakeCase, type AskOptions, type OpenCase } from './fake-case.ts';
import { describeFake, fakePage } from './fake-rows.ts';
import { nextEventId, type FakeControl, type FakeGate, type FakeRun } from './fake-run.ts';

export function createFakeClient(now: () => number) {
  const runs = new Map<string, FakeRun>();
  const control: FakeControl = {
    workers: 'up',
    temporal: 'up',
    loseAnswers: false,
    pendingAnswers: 0,
    calls: {
      startRun: 0,
      startApproval: 0,
      cancelRun: 0,
      describeRun: 0,
      listRuns: 0,
      listAwaiting: 0,
      listChanged: 0,
      readFacts: 0,
      readTrail: 0,
      sendDecision: 0,
      queryReceipts: 0,
      findDecision: 0,
      checkHealth: 0,
    },
    queriesAtOnce: 0,
  };
  let queriesInFlight = 0;

  function reach(call: keyof CountersignClient): void {
    control.calls[call] += 1;
    if (control.temporal === 'down') throw new TemporalUnavailableError('the fake Temporal is down');
  }

  function addRun(runId: string, more: Partial<FakeRun> = {}): FakeRun {
    const run: FakeRun = {
      runId,
      root: randomUUID(),
      createdAt: now(),
      events: 0,
      gates: new Map(),
      facts: [],
      receipts: new Map(),
      signals: [],
      signalled: new Map(),
      unseen: [],
      ...more,
    };
    runs.set(runId, run);
    emit(run, {
      type: 'run_started',
      ...(run.spec === undefined ? {} : { spec: { name: run.spec, hash: 'sha256:00' } }),
    });
    return run;
  }

  function emit(run: FakeRun, body: FactBody, position?: string): void {
    const seq = run.facts.length + 1;
    const place = {
      seq,
      at: new Date(now()).toISOString(),
      temporalRunId: run.root,
      eventId: nextEventId(run),
    };
    run.facts.push({ ...place, ...(position === undefined ? {} : { position }), ...body });
  }

  /** Opens a gate; makes the run when there is none. */
  function ask(options: AskOptions) {
    const { runId } = options;
    const run = runs.get(runId) ?? addRun(runId, { spec: 'refund' });
    const asked = fakeCase(options, now());
    if (asked.phase !== 'in-doubt') emit(run, { type: 'step_started' }, asked.position);
    const key = open(run, asked);
    return { key, hash: asked.payloadHash, runId, root: run.root, run };
  }

  function open(run: FakeRun, asked: OpenCase): string {
    const { position, phase, title, tool = '', policy, payloadHash, expiresAt, requestedAt } = asked;
    const key = approvalKey({ workflowId: run.runId, position, root: run.root });
    const { arguments: args = null, requestedBy, reasoning } = asked;
    const who = requestedBy === undefined ? {} : { requestedBy };
    run.gates.set(key, {
      ...{ key, position, state: 'pending', phase, tool, arguments: args, ...who },
      ...{ memo: pendingMemo(asked), hash: payloadHash, expiresAt, inMemo: true },
    });
    const times = {
      requestedAt: new Date(requestedAt).toISOString(),
      expiresAt: new Date(expiresAt).toISOString(),
    };
    const words = reasoning === undefined ? {} : { reasoning };
    const unsure = asked.doubt === undefined ? {} : { doubt: asked.doubt };
    const about = { key, phase, title, tool, arguments: args, payloadHash, ...unsure, ...who, ...words };
    emit(run, { type: 'approval_requested', ...about, policy, ...times }, position);
    return key;
  }

  function settle(run: FakeRun, gate: FakeGate, settlement: Settlement, winner?: Decision): void {
    const { state, at, by, decisionId } = settlement;
    Object.assign(gate, { state, settlement, ...(winner === undefined ? {} : { winner }) });
    gate.memo = {
      state,
      at,
      ...(by === undefined ? {} : { by: by.id }),
      ...(decisionId === undefined ? {} : { decisionId }),
    };
    if (winner === undefined && (state === 'expired' || state === 'cancelled')) {
      emit(run, { type: `approval_${state}`, key: gate.key }, gate.position);
    }
  }

  function judge(run: FakeRun, decision: Decision): void {
    const gate = run.gates.get(decision.key);
    const by = { ...decision.by, verified: decision.proof !== undefined };
    const refuse = ({ code, message }: { code: RefusalCode; message: string }) => {
      keep(run, decision, gate, { verdict: 'refused', code, message });
      emit(run, { type: 'decision_refused', code, message, key: decision.key, decision, by }, gate?.position);
    };
    const delivery = judgeDelivery(decision, { workflowId: run.runId, root: run.root }, gate);
    if (delivery.action === 'refuse') return refuse(delivery);
    if (delivery.action === 'take' && gate !== undefined) {
      const code = control.refuseWith;
      if (code !== undefined) return refuse({ code, message: `refused: ${code}` });
      const admission = admitLikeTheWorker(gate, decision, now());
      if ('code' in admission) return refuse(admission);
      accept(run, gate, decision, by, admission.anew);
    }
    keep(run, decision, gate, { verdict: 'accepted' });
  }

  function accept(run: FakeRun, gate: FakeGate, decision: Decision, by: DecidedBy, anew: Anew | undefined) {
    const fact = { key: gate.key, decision, by };
    const payload = { arguments: anew?.arguments ?? null, payloadHash: anew?.hash ?? '' };
    emit(run, acceptedFact(fact, payload), gate.position);
    if (anew !== undefined) {
      Object.assign(gate, anew);
      gate.memo = { ...gate.memo, hash: anew.hash };
    }
    const state = stateAfter(decision.decision);
    if (state === undefined) gate.accepted = [...(gate.accepted ?? []), decision];
    else settle(run, gate, { state, by, decisionId: decision.decisionId, at: now() }, decision);
  }

  function keep(
    run: FakeRun,
    { decisionId, decision, payloadHash }: Decision,
    gate: FakeGate | undefined,
    answer: Pick<Receipt, 'verdict' | 'code' | 'message'>,
  ): void {
    run.receipts.set(decisionId, {
      decisionId,
      decision,
      ...(payloadHash === undefined ? {} : { payloadHash }),
      ...(gate === undefined ? {} : { position: gate.position }),
      ...answer,
    });
  }

  /** A worker is there and has seen all. */
  function work(): void {
    control.workers = 'up';
    for (const run of runs.values()) {
      for (const decision of run.unseen.splice(0)) judge(run, decision);
      if (run.cancelWish === true && run.closeStatus === undefined) cancel(run);
    }
  }

  function cancel(run: FakeRun): void {
    for (const gate of run.gates.values()) {
      if (gate.state === 'pending') settle(run, gate, { state: 'cancelled', at: now() });
    }
    close(run.runId, 'cancelled');
  }

  function close(runId: string, closeStatus: CloseStatus): void {
    const run = must(runId);
    run.closeStatus = closeStatus;
    if (closeStatus === 'terminated') return emit(run, { type: 'run_terminated' });
    if (closeStatus === 'cancelled') return emit(run, { type: 'run_cancelled' });
    const states = [...run.gates.values()].map(({ state }) => state);
    if (closeStatus === 'completed' && states.includes('withdrawn')) {
      run.status = 'cancelled';
      return emit(run, { type: 'run_cancelled' });
    }
    const rejected = states.some((state) => state !== 'approved' && state !== 'responded');
    if (closeStatus === 'completed') run.status = rejected ? 'rejected' : 'completed';
    const status = closeStatus !== 'completed' ? 'failed' : rejected ? 'rejected' : 'completed';
    emit(run, { type: 'run_finished', status });
  }

  function must(runId: string): FakeRun {
    const run = runs.get(runId);
    if (run === undefined) throw new Error(`the test names a run that is not there: ${runId}`);
    return run;
  }

  function gateOfKey(key: string): { run: FakeRun; gate: FakeGate } {
    for (const run of runs.values()) {
      const gate = run.gates.get(key);
      if (gate !== undefined) return { run, gate };
    }
    throw new Error(`the test names a gate that is not there: ${key}`);
  }

  const describe = (run: FakeRun) => describeFake(run, now());
  const page = (fitting: FakeRun[], pageSize: number, cursor: string | undefined) =>
    fakePage(fitting, pageSize, cursor, describe);

  const client: CountersignClient = {
    async startRun({ runId, spec, requestHash, trigger, startedBy, input, specRef }) {
      reach('startRun');
      await control.startPause?.();
      const existing = runs.get(runId);
      if (existing !== undefined) {
        const { requestHash: first } = existing;
        return { started: false, ...(first === undefined ? {} : { requestHash: first }) };
      }
      const run = addRun(runId, { spec: spec.name, requestHash });
      const ref = specRef === undefined ? {} : { spec: specRef };
      run.facts = [];
      emit(run, { type: 'run_started', input, trigger, startedBy, ...ref });
      if (control.loseAnswers) throw new TemporalUnavailableError('the answer of the fake is lost');
      return { started: true, root: run.root };
    },
    async startApproval({ runId, case: asked, requestHash, trigger, startedBy }) {
      reach('startApproval');
      await control.startPause?.();
      const existing = runs.get(runId);
      if (existing !== undefined) {
        const { requestHash: first } = existing;
        return { started: false, ...(first === undefined ? {} : { requestHash: first }) };
      }
      const run = addRun(runId, {
        requestHash,
        workflowType: 'requestApproval',
        status: 'awaiting_approval',
      });
      run.facts = [];
      emit(run, { type: 'run_started', trigger, startedBy });
      open(run, asked);
      if (control.loseAnswers) throw new TemporalUnavailableError('the answer of the fake is lost');
      return { started: true, root: run.root };
    },
    async cancelRun(runId) {
      reach('cancelRun');
      const run = runs.get(runId);
      if (run === undefined || run.closeStatus !== undefined) return false;
      run.cancelWish = true;
      nextEventId(run);
      if (control.workers === 'up') cancel(run);
      return true;
    },
    async describeRun(runId) {
      reach('describeRun');
      const run = runs.get(runId);
      const description = run === undefined ? undefined : describe(run);
      control.afterDescribe?.();
      return description;
    },
    async listRuns({ status, spec, since, pageSize, cursor }) {
      reach('listRuns');
      const fits = (run: FakeRun) =>
        (status === undefined || run.status === status) &&
        (spec === undefined || run.spec === spec) &&
        (since === undefined || run.createdAt >= since);
      return page([...runs.values()].filter(fits), pageSize, cursor);
    },
    async listAwaiting({ spec, tool, pageSize, cursor }) {
      reach('listAwaiting');
      const waits = ({ state, memo }: FakeGate) =>
        state === 'pending' && (tool === undefined || memo.tool === tool);
      const fits = (run: FakeRun) =>
        run.closeStatus === undefined &&
        (spec === undefined || run.spec === spec) &&
        [...run.gates.values()].some(waits);
      return page([...runs.values()].filter(fits), pageSize, cursor);
    },
    async listChanged({ pageSize, cursor }) {
      reach('listChanged');
      return page(
        [...runs.values()].filter(({ isListed }) => isListed !== false),
        Math.min(20, pageSize),
        cursor,
      );
    },
    async readFacts({ runId }, longerThan) {
      reach('readFacts');
      const run = runs.get(runId);
      if (run === undefined || run.events <= longerThan) return undefined;
      const facts = run.facts.map((fact) => ({ fact, knownAt: Date.parse(fact.at) }));
      return { historyLength: run.events, facts };
    },
    async readTrail(runId) {
      reach('readTrail');
      return [...(runs.get(runId)?.facts ?? [])];
    },
    async sendDecision(runId, decision) {
      reach('sendDecision');
      const text = JSON.stringify(decision);
      const reading = readDecision(JSON.parse(text), Buffer.byteLength(text));
      if (!reading.ok)
        throw new Error(`the fake refuses a decision that the workflow would: ${reading.problem}`);
      const run = runs.get(runId);
      if (run === undefined || run.closeStatus !== undefined) return false;
      run.signals.push(reading.decision);
      run.signalled.set(reading.decision, { eventId: nextEventId(run), at: new Date(now()).toISOString() });
      if (control.workers === 'up') judge(run, reading.decision);
      else run.unseen.push(reading.decision);
      if (control.loseAnswers) throw new TemporalUnavailableError('the answer of the fake is lost');
      return true;
    },
    async queryReceipts(runId, decisionIds) {
      reach('queryReceipts');
      queriesInFlight += 1;
      control.queriesAtOnce = Math.max(control.queriesAtOnce, queriesInFlight);
      try {
        const run = runs.get(runId);
        // what a query sees is what was in history when it was sent
        const seen = decisionIds.flatMap((id) => run?.receipts.get(id) ?? []);
        const gates = [...(run?.gates.values() ?? [])].map((gate) => ({ ...gate }));
        await control.queryPause?.();
        if (control.workers === 'down') throw new NoWorkerError('the fake has no worker');
        if (control.pendingAnswers > 0) {
          control.pendingAnswers -= 1;
          return seen.map(({ decisionId, decision, ...rest }) => {
            const hash = rest.payloadHash === undefined ? {} : { payloadHash: rest.payloadHash };
            return { decisionId, decision, verdict: 'pending' as const, ...hash };
          });
        }
        return seen.map((receipt) => {
          const gate = gates.find(({ position }) => position === receipt.position);
          if (gate === undefined) return receipt;
          const { state, settlement } = gate;
          return { ...receipt, gate: state, ...(settlement === undefined ? {} : { settlement }) };
        });
      } finally {
        queriesInFlight -= 1;
      }
    },
    async findDecision(runId, decisionId) {
      reach('findDecision');
      const decision = runs.get(runId)?.signals.findLast((signal) => signal.decisionId === decisionId);
      if (decision === undefined) return undefined;
      const { eventId, at } = must(runId).signalled.get(decision) ?? { eventId: 0, at: '' };
      return { decision, temporalRunId: must(runId).root, eventId, at };
    },
    async checkHealth() {
      reach('checkHealth');
    },
  };

  return {
    client,
    control,
    runs,
    addRun,
    ask,
    emit,
    work,
    close,
    expire: (key: string) => {
      const { run, gate } = gateOfKey(key);
      settle(run, gate, { state: 'expired', at: now() });
    },
    forgetInMemo: (key: string) => {
      gateOfKey(key).gate.inMemo = false;
    },
    /** retention is over */
    forget: (runId: string) => runs.delete(runId),
    must,
  };
}

export type FakeClient = ReturnType<typeof createFakeClient>;
