// A sender of Standard Webhooks, written from the standard and not from our check.
import { createHmac } from 'node:crypto';

export interface Signed {
  id?: string;
  /** seconds since the epoch */
  at: number;
  body: string | Uint8Array;
  /** `whsec_…`; several sign with each, as in a rotation */
  secrets: readonly string[];
}

/** Makes a signing secret: `whsec_` and base64 of these 24 bytes or more. */
export function signingSecret(bytes: string): string {
  return `whsec_${Buffer.from(bytes.padEnd(24, '.')).toString('base64')}`;
}

/** The three headers of a delivery. */
export function signWebhook({ id = 'msg_1', at, body, secrets }: Signed): Record<string, string> {
  const content = Buffer.concat([Buffer.from(`${id}.${at}.`), Buffer.from(body)]);
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
    return `v1,${createHmac('sha256', key).update(content).digest('base64')}`;
  });
  return {
    'webhook-id': id,
    'webhook-timestamp': String(at),
    'webhook-signature': signatures.join(' '),
  };
}
