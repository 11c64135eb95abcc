// workflows.ts: a workflow of your own.
import { effect, gate, gated } from 'countersign/workflow';

export { runSpec } from 'countersign/workflow'; // only if the same worker also runs specs

export async function monthEnd(order: string): Promise<string> {
  const asked = await gate(
    'refund',
    { tool: 'payments.refund', arguments: { order, amount: '12.50' }, reasoning: 'It came back damaged.' },
    { ttl: '2d' },
  );
  if (asked.state !== 'approved') return asked.state; // 'rejected', 'expired', 'withdrawn'…: never thrown
  await effect('refund', 'payments.refund', asked.arguments, asked.grant);

  // the same in one call
  const bonus = await gated('bonus', { tool: 'payments.refund', arguments: { order, amount: '5.00' } });
  return bonus.state;
}
