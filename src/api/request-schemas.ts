// The shapes of what comes in, once: validation, the types of the code and the OpenAPI document are derived
// from here.
import { z } from '@hono/zod-openapi';
import type { Json, JsonObject } from '../core/json.ts';
import type { OrderKind } from './decision-order.ts';
import { gateState, runStatus } from './schemas.ts';

/** Any JSON value, present; what it is, is said by a tool's own schema. */
const json = z
  .custom<Json>((value) => value !== undefined, { message: 'is required' })
  .openapi({ type: ['object', 'array', 'string', 'number', 'boolean', 'null'] });

// taken as it is: `checkInlineSpec` judges it, and no copy may lose a key on the way
const inlineSpec = z
  .custom<JsonObject>((value) => typeof value === 'object' && value !== null && !Array.isArray(value), {
    message: 'must be the name of a spec, or a spec as an object',
  })
  .openapi({ type: 'object' });

export const runStartBody = z.strictObject({
  spec: z.union([z.string().min(1), inlineSpec]).openapi({
    description: 'the name of a spec, or a spec itself',
  }),
  input: json.optional(),
  id: z.string().optional().openapi({
    description:
      'the run id, 1 to 255 bytes of UTF-8; not hook-… or run- and 26 hex digits, which are made here',
  }),
});

const decision = {
  payloadHash: z
    .string()
    .regex(/^sha256:[0-9a-f]{64}$/, 'must be "sha256:" and 64 hex digits')
    .optional(),
  reason: z.string().optional(),
};
export const decisionBody = z.strictObject(decision);
const payloadBody = z.strictObject({ ...decision, arguments: json });
const respondBody = z.strictObject({ ...decision, result: json });
const commentBody = z.strictObject({ ...decision, reason: z.string().min(1) });

export const nothingBody = z.strictObject({});

export interface DecisionFields {
  payloadHash?: string | undefined;
  reason?: string | undefined;
  arguments?: Json;
  result?: Json;
}

export const decisionBodies: Record<OrderKind, z.ZodType<DecisionFields>> = {
  approve: decisionBody,
  reject: decisionBody,
  edit: payloadBody,
  respond: respondBody,
  amend: payloadBody,
  withdraw: decisionBody,
  comment: commentBody,
};

/** What a tool is to be run with, once somebody has approved it. */
export const approvalRequestBody = z.strictObject({
  tool: z.string().min(1),
  arguments: json,
  title: z.string().min(1).optional(),
  reasoning: z.string().optional().openapi({ description: 'why it is asked, for who approves' }),
  policy: z
    .strictObject({
      ttl: z
        .union([z.string(), z.number()])
        .optional()
        .openapi({ description: 'such as `2h`, or milliseconds' }),
    })
    .optional(),
});
export type ApprovalRequest = z.infer<typeof approvalRequestBody>;

/** 20 rows: describe and list carry whole memos, and a page has to stay under Temporal's message limit. */
export const maxPageSize = 20;
const page = {
  limit: z
    .string()
    .regex(/^([1-9]|1[0-9]|20)$/, `must be a whole number from 1 to ${maxPageSize}`)
    .optional(),
  cursor: z
    .string()
    .regex(/^[A-Za-z0-9+/=_.-]{1,4096}$/, 'must be the cursor of an earlier answer')
    .optional(),
};

export const runsQuery = z.strictObject({
  status: runStatus.optional(),
  spec: z.string().optional(),
  since: z.iso.datetime({ offset: true }).optional().openapi({ description: 'started at or after' }),
  ...page,
});

export const approvalsQuery = z.strictObject({
  state: gateState.optional().openapi({ description: 'default `pending`' }),
  tool: z.string().optional(),
  spec: z.string().optional(),
  run: z.string().optional(),
  ...page,
});

export const decisionsQuery = z.strictObject({
  spec: z.string().optional(),
  since: z.iso.datetime({ offset: true }).optional().openapi({ description: 'of runs started at or after' }),
  ...page,
});
