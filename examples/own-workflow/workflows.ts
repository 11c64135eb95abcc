// An ordinary Temporal workflow that asks people on its way. Names such as `refund` are positions: they stand in
// the idempotency keys, so each intended action has its own, and a deployed one keeps it.
import { effect, gate, gated } from 'countersign/workflow';

export interface ReturnedOrder {
  order: string;
  /** what was paid, a decimal string */
  amount: string;
}

export interface ReturnEnd {
  refund: 'paid' | 'rejected' | 'expired' | 'withdrawn' | 'responded' | 'cancelled';
  goodwill: boolean;
}

export async function returnOrder({ order, amount }: ReturnedOrder): Promise<ReturnEnd> {
  // an effect that nobody has to approve: once, over crashes and redeployments
  await effect('tell-warehouse', 'warehouse.expect', { order });

  // ask, look at the answer, then act
  const asked = await gate(
    'refund',
    { tool: 'payments.refund', arguments: { order, amount }, title: `Refund ${amount} for ${order}` },
    { ttl: '2d' },
  );
  if (asked.state !== 'approved') return { refund: asked.state, goodwill: false };
  await effect('refund', 'payments.refund', asked.arguments, asked.grant);

  // or both in one call
  const goodwill = await gated('goodwill', {
    tool: 'payments.refund',
    arguments: { order, amount: '5.00' },
    reasoning: 'The parcel was late as well.',
  });
  return { refund: 'paid', goodwill: goodwill.state === 'approved' };
}
