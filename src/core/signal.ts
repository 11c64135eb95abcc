// Sandbox-safe. Reads the raw payloads of a `decide` signal: the workflow when it is delivered, the trail
// decoder when it explains what was answered. Both must say the same for ever. Never throws.
import { longDecisionLimitBytes, readDecisionText, type DecisionReading } from './decision.ts';

/** A Temporal payload, as far as a signal needs it. */
export interface RawPayload {
  metadata?: Record<string, Uint8Array> | null;
  data?: Uint8Array | null;
}

/** The reading, and the JSON text it was read from (empty when there was none). */
export interface SignalReading {
  reading: DecisionReading;
  text: string;
}

export function readSignal(payloads: readonly RawPayload[]): SignalReading {
  const [payload, ...others] = payloads;
  if (payload === undefined) return malformed('the signal has no argument; it takes one JSON object');
  if (others.length > 0) return malformed(`the signal has ${payloads.length} arguments; it takes one`);
  const data = payload.data ?? new Uint8Array();
  if (data.length > longDecisionLimitBytes) {
    const problem = `a decision is at most ${longDecisionLimitBytes} bytes, got ${data.length}`;
    return { text: '', reading: { ok: false, code: 'too_large', problem } };
  }
  try {
    const encoding = payload.metadata?.['encoding'];
    if (encoding === undefined || new TextDecoder().decode(encoding) !== 'json/plain') {
      return malformed('the argument is not encoded as json/plain');
    }
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(data);
    return { text, reading: readDecisionText(text, data.length) };
  } catch {
    return malformed('the argument is not UTF-8 text');
  }
}

function malformed(problem: string): SignalReading {
  return { text: '', reading: { ok: false, code: 'malformed', problem } };
}
