// Sandbox-safe, pure. What a run hands to the execution that continues it, and which of its gates that one still
// knows. The workflow carries by these rules; the trail decoder, which finds no carried state (it is somewhere in
// the user's own input), repeats them on its own gates. So a change of a rule changes what old histories mean.
import type { CaseRecord, EffectOptions, Grant } from './case.ts';
import type { Decision } from './decision.ts';
import type { GateView } from './gate-state.ts';
import { utf8Length } from './json-value.ts';
import type { DecidedBy, Receipt, Settlement } from './verdict.ts';

/** How a gate ended. `grant` is there when it was approved in a phase that runs something. */
export interface GateEnd {
  /** as it was decided on; after an edit, the edited one */
  case: CaseRecord;
  settlement: Settlement;
  decision?: Decision;
  by?: DecidedBy;
  grant?: Grant;
}

/** What `effect()` needs beside the grant of an approved gate. */
export interface UnusedRight {
  position: string;
  root: string;
  effect: EffectOptions;
  ttlMs: number;
}

export interface CarriedGate {
  view: GateView;
  /** the name it was opened by; with a gate that is open, or whose end its caller has not got yet */
  name?: string;
  /** while it is open: the case as it is now, and the decisions that wait, as JSON text */
  frozen?: CaseRecord;
  queue?: string[];
  /** settled, and not yet handed to who asked */
  end?: GateEnd;
}

/** Plain JSON, made by `carry()` and read by `restore()`; nothing in it is for anybody else. */
export interface Carried {
  v: 1;
  kind: 'carried';
  root: string;
  /** the execution that made it: only the one that continues it may take it */
  runId: string;
  /** how often each name was used */
  names: Record<string, number>;
  /** those of them that are child runs */
  children?: string[];
  /** in the order in which they were opened */
  gates: CarriedGate[];
  receipts: Receipt[];
  rights: UnusedRight[];
  /** positions of the settled gates that the memo shows, the oldest first */
  shown: string[];
  /** since when keys of this run may have been used by an execution that a reset cut off */
  keysSince?: number;
}

/** Settled gates that late decisions are still answered by; the memo shows 20, a trail has all. */
const settledKept = 200;
/** Of their JSON text, in UTF-8: a sixth of what may be carried; an ordinary gate has about 750. */
const settledKeptBytes = 160 * 1024;
/** Of one decision, in UTF-8. Longer ones hold a payload; sent again after a continuation they are told of the outcome. */
const decisionKeptBytes = 8 * 1024;
/** Levels of an input that are searched; people put it at the first, `runSpec` at the second. */
const searchDepth = 4;
/** Of a gate's accepted comments and amendments together. */
const acceptedKeptBytes = 16 * 1024;
/** The newest 1,000 receipts of ordinary decisions (300 bytes) fit; of long messages fewer do. */
const receiptsKeptBytes = 384 * 1024;

/** The gates that are carried, in their order, each as the next execution sees it. */
export function gatesToCarry<Gate extends GateView>(gates: Iterable<Gate>): { gate: Gate; view: GateView }[] {
  const kept: { gate: Gate; view: GateView }[] = [];
  let count = 0;
  let bytes = 0;
  for (const gate of [...gates].reverse()) {
    const view = viewOf(gate);
    if (gate.state !== 'pending') {
      count += 1;
      bytes += bytesOf(view);
      if (count > settledKept || bytes > settledKeptBytes) continue;
    }
    kept.push({ gate, view });
  }
  return kept.reverse();
}

function viewOf({ key, position, state, settlement, winner, accepted }: GateView): GateView {
  const remembered = newestWithin(accepted ?? []);
  return {
    key,
    position,
    state,
    ...(settlement === undefined ? {} : { settlement }),
    ...(winner === undefined || isLong(winner) ? {} : { winner }),
    ...(remembered.length === 0 ? {} : { accepted: remembered }),
  };
}

function newestWithin(decisions: readonly Decision[]): Decision[] {
  let bytes = 0;
  return decisions
    .toReversed()
    .filter((decision) => {
      if (isLong(decision)) return false;
      bytes += bytesOf(decision);
      return bytes <= acceptedKeptBytes;
    })
    .reverse();
}

function isLong(decision: Decision): boolean {
  return bytesOf(decision) > decisionKeptBytes;
}

export function receiptsToCarry(receipts: readonly Receipt[]): Receipt[] {
  let bytes = 0;
  const kept: Receipt[] = [];
  for (const receipt of receipts.toReversed()) {
    bytes += bytesOf(receipt);
    if (bytes > receiptsKeptBytes) break;
    kept.push(receipt);
  }
  return kept.reverse();
}

/** As what is carried is limited; with its comma. */
function bytesOf(value: object): number {
  return utf8Length(JSON.stringify(value)) + 1;
}

/** What an execution was handed, wherever it stands in its input; undefined when nothing of this run is there. */
export function findCarried(input: unknown, root: string, depth = 0): Carried | undefined {
  if (typeof input !== 'object' || input === null || depth > searchDepth) return undefined;
  const { v, kind, root: ofRun } = input as Partial<Carried>;
  if (v === 1 && kind === 'carried') return ofRun === root ? (input as Carried) : undefined;
  for (const member of Object.values(input)) {
    const found = findCarried(member, root, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Why this execution may not take it; undefined when it may. */
export function carriedProblem(
  carried: unknown,
  place: { root: string; continuedFrom: string | undefined },
): string | undefined {
  const { v, kind, root, runId } = (carried ?? {}) as Partial<Carried>;
  if (v !== 1 || kind !== 'carried') return 'what was handed to restore() was not made by carry()';
  if (root !== place.root) return `what was handed to restore() is of another run (root "${root}")`;
  if (runId === place.continuedFrom) return undefined;
  // an older one would count names from where they were then, and so use keys a second time
  return `what was handed to restore() was carried by "${runId}", this execution continues "${place.continuedFrom}"`;
}
