// Sandbox-safe types. A spec as written: the parsed YAML, no defaults applied. `load.ts` checks it;
// the run keeps it in its start input, so a field can be added but never change its meaning.
import type { Json, JsonObject } from '../json.ts';

/** What a step asks for before it acts: `before: {approve: …}`. `ttl` as written, such as `2h`. */
export interface ApproveSpec {
  title?: string;
  ttl?: string;
}

interface StepBase {
  /** the step's position in the run */
  id: string;
}

/** Runs a tool once on `with`, after the gate where there is one. */
export interface ToolStep extends StepBase {
  tool: string;
  with?: JsonObject;
  before?: { approve: ApproveSpec };
}

/** A pure human step; its output is `{approved: true}`. */
export interface ApprovalStep extends StepBase {
  approval: ApproveSpec & { title: string };
}

export type Step = ToolStep | ApprovalStep;

export interface Spec {
  version: 1;
  name: string;
  description?: string;
  /** JSON Schema of the run's input */
  input?: JsonObject;
  steps: Step[];
  output?: Json;
}
