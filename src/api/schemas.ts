// The shapes of what is answered, once: the types of the code and the OpenAPI document are derived from here.
import { z } from '@hono/zod-openapi';
import { orderKinds } from './decision-order.ts';

/** Any JSON value; what it is, is said by a tool's or a spec's own schema. */
const json = z.unknown().openapi({ description: 'any JSON value' });
const time = z.string().openapi({ format: 'date-time' });
const payloadHash = z.string().openapi({ example: `sha256:${'0'.repeat(64)}` });

const actor = z.object({
  id: z.string(),
  name: z.string().optional(),
  roles: z.array(z.string()).optional(),
  /** false: an unsigned signal that was sent by hand said so */
  verified: z.boolean().optional(),
});

export const gateStates = [
  'pending',
  'approved',
  'rejected',
  'expired',
  'withdrawn',
  'responded',
  'cancelled',
] as const;
export const gateState = z.enum(gateStates);

export const runStatuses = [
  'running',
  'awaiting_approval',
  'in_doubt',
  'completed',
  'rejected',
  'failed',
  'cancelled',
] as const;
export const runStatus = z.enum(runStatuses);
export type RunStatus = z.infer<typeof runStatus>;

const links = z.object({
  run: z.string(),
  events: z.string(),
  approval: z.string().optional(),
  decision: z.string().optional(),
  ...Object.fromEntries(orderKinds.map((kind) => [kind, z.string().optional()])),
});

const pendingApproval = z.object({
  key: z.string(),
  position: z.string(),
  step: z.string(),
  phase: z.string().optional(),
  tool: z.string().optional(),
  title: z.string().optional(),
  payloadHash: payloadHash.optional(),
  requestedAt: time.optional(),
  expiresAt: time.optional(),
});
export type PendingApproval = z.infer<typeof pendingApproval>;

const step = z.object({
  position: z.string(),
  status: z.enum([
    'running',
    'awaiting_approval',
    'in_doubt',
    'completed',
    'rejected',
    'failed',
    'cancelled',
  ]),
  startedAt: time,
  endedAt: time.optional(),
  approval: z.string().optional().openapi({ description: 'its approval key' }),
  output: json.optional(),
  attempt: z
    .int()
    .optional()
    .openapi({ description: 'of an effect that is tried again: the attempt that runs or comes next' }),
  lastError: z.string().optional().openapi({ description: 'of the attempt before' }),
  nextAttemptAt: time.optional().openapi({ description: 'absent while the attempt runs' }),
});
export type StepView = z.infer<typeof step>;

export const runRow = z.object({
  id: z.string(),
  status: runStatus,
  spec: z.string().optional(),
  createdAt: time,
  closedAt: time.optional(),
  pendingApprovals: z.array(pendingApproval),
  links,
});
export type RunRow = z.infer<typeof runRow>;

export const runView = runRow.extend({
  specHash: z.string().optional(),
  trigger: json.optional(),
  startedBy: actor.optional(),
  input: json.optional(),
  steps: z.array(step),
  output: json.optional(),
  error: json.optional(),
});
export type RunView = z.infer<typeof runView>;

/** The same for each delivery of an event: nothing in it is of the delivery. */
export const hookStarted = z.object({
  id: z.string().openapi({ description: 'the run' }),
  trigger: z.object({
    kind: z.string(),
    name: z.string().optional(),
    id: z.string().optional(),
    source: z.string().optional(),
  }),
  links,
});

export const runPage = z.object({ runs: z.array(runRow), cursor: z.string().optional() });

export const trailView = z.object({
  runId: z.string(),
  trail: z.array(z.record(z.string(), z.unknown())),
});

const outcome = z.object({
  decisionId: z.string().optional(),
  decision: z.string().optional(),
  by: actor.optional(),
  via: z.string().optional(),
  reason: z.string().optional(),
  at: time,
});
export type OutcomeView = z.infer<typeof outcome>;

const approvalRow = pendingApproval.extend({
  runId: z.string(),
  root: z.string().openapi({ description: 'identity of the run; a decision sent by signal names it' }),
  spec: z.string().optional(),
  state: gateState,
  timeLeftMs: z.number().int().optional(),
  outcome: outcome.optional(),
  links,
});
export type ApprovalRow = z.infer<typeof approvalRow>;

export const approvalPage = z.object({
  approvals: z.array(approvalRow),
  cursor: z.string().optional(),
});

export const approvalView = approvalRow.extend({
  payloadHash,
  arguments: json.optional(),
  question: json.optional(),
  reasoning: z.string().optional(),
  policy: json,
  requestedBy: actor.optional(),
  doubt: json.optional().openapi({ description: 'phase in-doubt: what is not known of the effect' }),
  earlier: z
    .array(z.object({ arguments: json.optional(), payloadHash }))
    .optional()
    .openapi({ description: 'payloads that an amendment or an edit replaced, the oldest first' }),
});
export type ApprovalView = z.infer<typeof approvalView>;

export const decisionAnswer = z.object({
  key: z.string(),
  decisionId: z.string(),
  /** `pending`: recorded, not judged yet */
  verdict: z.enum(['accepted', 'pending']),
  state: gateState,
  runId: z.string(),
  payloadHash: payloadHash.optional(),
  by: actor,
  at: time,
  links,
});
export type DecisionAnswer = z.infer<typeof decisionAnswer>;

export const decisionRow = z.object({
  key: z.string(),
  decisionId: z.string(),
  /** how the gate ended by it */
  verdict: gateState,
  decision: z.string(),
  reason: z.string().optional(),
  result: json.optional().openapi({ description: 'of a respond' }),
  by: actor,
  via: z.string(),
  at: time,
  case: approvalView.omit({ key: true, state: true, timeLeftMs: true, outcome: true }),
});
export type DecisionRow = z.infer<typeof decisionRow>;
export const decisionPage = z.object({ decisions: z.array(decisionRow), cursor: z.string().optional() });

export const problemSchema = z.looseObject({
  type: z.string(),
  title: z.string(),
  status: z.number().int(),
  code: z.string(),
  detail: z.string(),
  remedy: z.string(),
  instance: z.string().optional(),
});

export const healthView = z.object({ status: z.string() });
