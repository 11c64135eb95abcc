// The API of a shop with one trigger, over the fake of Temporal, and what its tests ask of an answer.
import assert from 'node:assert/strict';
import { openTriggers, type TriggerConfig } from '../../src/triggers.ts';
import { createApiHarness, type Answer } from './api-harness.ts';
import { signingSecret, signWebhook } from './webhook.ts';

export const secret = signingSecret('of the shop');
const input = { order: 'data.order.id', amount: 'data.order["total-amount"]', note: 'data.note?' };
export const order = (id: string, more: object = {}) => ({
  type: 'order.returned',
  data: { order: { id, 'total-amount': '12.50', lines: [{ sku: 'a' }] }, ...more },
});

export interface Delivery {
  id?: string;
  trigger?: string;
  headers?: Record<string, string>;
  /** seconds from the API's clock */
  skew?: number;
  secrets?: readonly string[];
}

/** An API with the trigger "shop", and a sender that signs for it. */
export function shop(
  config: Partial<TriggerConfig> = {},
  more: { dropHeaders?: string[]; specs?: Parameters<typeof createApiHarness>[0] } = {},
) {
  const trigger = { spec: 'refund', secrets: ['${SHOP}'], input, ...config };
  const harness = createApiHarness({
    triggers: openTriggers({ shop: trigger }, { SHOP: secret }, () => undefined),
    ...(more.dropHeaders === undefined ? {} : { dropHeaders: more.dropHeaders }),
    ...more.specs,
  });
  const deliver = (content: unknown, delivery: Delivery = {}): Promise<Answer> => {
    const { id = 'msg_1', trigger: name = 'shop', headers = {}, skew = 0, secrets = [secret] } = delivery;
    const body = typeof content === 'string' ? content : JSON.stringify(content);
    const at = Math.floor(harness.clock.now / 1000) + skew;
    return harness.call('POST', `/hooks/${name}`, {
      as: 'nobody',
      body,
      headers: { ...signWebhook({ id, at, body, secrets }), ...headers },
    });
  };
  const started = (answer: Answer) => {
    assert.equal(answer.status, 200, answer.text);
    const [fact] = harness.fake.must(String(answer.body['id'])).facts;
    assert.ok(fact?.type === 'run_started');
    return fact;
  };
  return { ...harness, deliver, started };
}

/** Its detail. */
export function refused(answer: Answer, status: number, code: string): string {
  assert.deepEqual([answer.status, answer.body['code']], [status, code], answer.text);
  return String(answer.body['detail']);
}
