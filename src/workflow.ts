// The sandbox-safe door of the package: import it in your own Temporal workflows.
export type { Carried } from './core/carried.ts';
export { carry, continueRun, restore } from './workflows/carry.ts';
export { childRun, type ChildRunOptions } from './workflows/child-run.ts';
export { effect, gate, gated } from './workflows/primitives.ts';
export type {
  ApprovedGate,
  GateOptions,
  GateProposal,
  GateResult,
  RefusedGate,
} from './workflows/primitives.ts';
export type { RunSpecInput } from './core/recording.ts';
export { runSpec, type RunSpecResult } from './workflows/run-spec.ts';
