// Sandbox. Continue-as-new without a second round: what the run knows (how often names were used, open gates with
// their cases and waiting decisions, receipts, approvals not used yet) goes into the input of the next execution.
// Positions count on there, so its keys are new ones, and an open gate stays the gate that it was.
import { CancellationScope, makeContinueAsNewFunc, workflowInfo, type Workflow } from '@temporalio/workflow';
import { gatesToCarry, receiptsToCarry, type Carried, type CarriedGate } from '../core/carried.ts';
import { readDecisionText } from '../core/decision.ts';
import { utf8Length } from '../core/json-value.ts';
import { shownSettled, takeOver } from './board.ts';
import { waitForEnd } from './gate.ts';
import { restoreRights, rightsToCarry } from './rights.ts';
import { currentRun, failure, hasBegun, type OpenGate, type Run } from './run.ts';
import { goOn, standStill } from './standstill.ts';

/**
 * Half of what Temporal takes as one payload (2 MiB), so that the rest of the input has the other half. A gate
 * with its largest case (256 KiB) fits three times, an ordinary one (2 KiB) five hundred times.
 */
const carriedLimitBytes = 1024 * 1024;

/**
 * Comes to a standstill and gives what the next execution needs, to be put into its input. It waits for effects
 * and child runs that are underway, not for gates. After it gates take no decisions and nothing starts, so
 * continue as new at once: what arrives after an `await` in between would be lost.
 * @throws ApplicationFailure `carry_too_large`: the run goes on in this execution; CancelledFailure
 */
export async function carry(): Promise<Carried> {
  const run = currentRun();
  await standStill();
  const carried = snapshot(run);
  const problem = sizeProblem(carried);
  if (problem === undefined) return carried;
  goOn();
  throw failure('carry_too_large', problem);
}

/**
 * Takes what `carry()` gave, before any other use of countersign; without it a continued run is refused. A gate
 * that was open is asked for again by its name: the same case, key and deadline, and nobody is asked twice.
 * In the first execution there is nothing to take: call it with undefined.
 * @throws ApplicationFailure `invalid_start`
 */
export function restore(carried: Carried | undefined): void {
  if (carried === undefined || carried === null) {
    currentRun();
    return;
  }
  if (hasBegun()) throw failure('invalid_start', 'restore() comes before any other use of countersign');
  const run = currentRun((fresh) => load(fresh, carried), carried);
  restoreRights(carried.rights);
  showAgain(run, carried);
  for (const gate of run.gates.values()) {
    const { name, frozen, end } = gate;
    const scope = new CancellationScope();
    if (end !== undefined) run.resumed.set(name, { gate, scope, end: Promise.resolve(end) });
    if (frozen === undefined) continue;
    // before anything is recorded: after a local activity the clock of a replay is another
    const ttlMs = Math.max(1, frozen.expiresAt - Date.now());
    run.resumed.set(name, { gate, scope, end: scope.run(() => waitForEnd(run, gate, frozen, ttlMs)) });
  }
}

/**
 * `carry()` and continue-as-new in one: `next` makes the arguments of the next execution, with what is carried in
 * them. Also hands on the memo, which Temporal's own `continueAsNew` sets back to that of the start.
 * @throws as carry()
 */
export async function continueRun<F extends Workflow>(
  next: (carried: Carried) => Parameters<F>,
): Promise<never> {
  return continueWith<F>(next(await carry()));
}

export function continueWith<F extends Workflow>(args: Parameters<F>): Promise<never> {
  const { memo } = workflowInfo();
  return makeContinueAsNewFunc<F>(memo === undefined ? {} : { memo })(...args);
}

function snapshot(run: Run): Carried {
  const gates = gatesToCarry(run.gates.values()).map(({ gate, view }): CarriedGate => {
    const { name, frozen, end, queue } = gate;
    if (end !== undefined) return { view, name, end };
    return frozen === undefined ? { view } : { view, name, frozen, queue: queue.map(({ text }) => text) };
  });
  const children = [...run.names].flatMap(([name, { isChild }]) => (isChild === true ? [name] : []));
  return {
    v: 1,
    kind: 'carried',
    root: run.root,
    runId: workflowInfo().runId,
    names: Object.fromEntries([...run.names].map(([name, { uses }]) => [name, uses])),
    ...(children.length === 0 ? {} : { children }),
    gates,
    receipts: receiptsToCarry([...run.receipts.values()]),
    rights: rightsToCarry(),
    shown: shownSettled(),
    ...(run.keysSince === undefined ? {} : { keysSince: run.keysSince }),
  };
}

function sizeProblem(carried: Carried): string | undefined {
  const bytes = utf8Length(JSON.stringify(carried));
  if (bytes <= carriedLimitBytes) return undefined;
  const gates = carried.gates
    .filter(({ name }) => name !== undefined)
    .map((gate) => ({ position: gate.view.position, bytes: utf8Length(JSON.stringify(gate)) }))
    .sort((a, b) => b.bytes - a.bytes)
    .slice(0, 3)
    .map(({ position, bytes: size }) => `"${position}" with ${size}`);
  const names = Object.keys(carried.names).length;
  const largest = gates.length === 0 ? '' : `, the largest of its open gates ${gates.join(', ')}`;
  return (
    `what the run would carry has ${bytes} bytes (${names} names${largest}), the limit is ${carriedLimitBytes}; ` +
    'continue when fewer gates are open, propose references in place of large payloads, and use one name again'
  );
}

function load(run: Run, carried: Carried): void {
  const children = new Set(carried.children);
  for (const [name, uses] of Object.entries(carried.names)) {
    run.names.set(name, { uses, open: false, ...(children.has(name) ? { isChild: true } : {}) });
  }
  for (const receipt of carried.receipts) run.receipts.set(receipt.decisionId, receipt);
  for (const { view, name, frozen, end, queue = [] } of carried.gates) {
    const gate: OpenGate = { ...view, name: name ?? '', queue: queue.flatMap(readAgain) };
    if (frozen !== undefined) gate.frozen = frozen;
    if (end !== undefined) gate.end = end;
    run.gates.set(view.key, gate);
    const use = name === undefined ? undefined : run.names.get(name);
    if (use !== undefined) use.open = true;
  }
}

/** What waited was read before, and the reading is the same in every version. */
function readAgain(text: string): OpenGate['queue'] {
  const reading = readDecisionText(text, utf8Length(text));
  return reading.ok ? [{ decision: reading.decision, text }] : [];
}

function showAgain(run: Run, { shown }: Carried): void {
  const gates = [...run.gates.values()];
  const open = gates.flatMap(({ frozen }) => (frozen === undefined ? [] : [frozen]));
  const ended = shown.flatMap((position) => {
    const settlement = gates.find((gate) => gate.position === position)?.settlement;
    return settlement === undefined ? [] : [{ position, settlement }];
  });
  takeOver(open, ended);
}
