// Server-sent events (WHATWG HTML, 9.2): one event a fact, heartbeats while nothing happens. It takes the next
// event only when the listener has room, so a slow one costs no memory, and stops with the listener, or when the
// listener may listen no more.
import type { TrailFact } from '../core/trail-fact.ts';

/** Without an id a listener's place stays where it was; without a fact only its place moves. */
export interface ServerEvent {
  id?: string;
  fact?: TrailFact & { runId?: string };
}

/** 15 s: proxies cut a silent connection after 30 to 60. */
export const defaultHeartbeatMs = 15_000;

export function eventStream(
  follow: (signal: AbortSignal) => AsyncIterable<ServerEvent>,
  options: {
    heartbeatMs?: number;
    /** Asked with each heartbeat: whether the listener may still listen. Never rejects. */
    mayGoOn(): Promise<boolean>;
    onBug(error: unknown): void;
  },
): Response {
  const stop = new AbortController();
  const encoder = new TextEncoder();
  let events: AsyncIterator<ServerEvent> | undefined;
  let heartbeat: NodeJS.Timeout | undefined;
  const end = () => {
    clearInterval(heartbeat);
    stop.abort();
  };
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      // at once: the listener learns that it is connected, and a proxy passes the headers on
      controller.enqueue(encoder.encode(': connected\n\n'));
      const beat = async () => {
        const goesOn = await options.mayGoOn();
        if (stop.signal.aborted) return;
        if (!goesOn) {
          end();
          controller.close();
        } else if ((controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(':\n\n'));
      };
      heartbeat = setInterval(() => void beat(), options.heartbeatMs ?? defaultHeartbeatMs);
      events = follow(stop.signal)[Symbol.asyncIterator]();
    },
    async pull(controller) {
      try {
        const next = await events?.next();
        if (stop.signal.aborted) return;
        if (next === undefined || next.done === true) {
          end();
          controller.close();
        } else {
          controller.enqueue(encoder.encode(eventText(next.value)));
        }
      } catch (error) {
        end();
        options.onBug(error);
        controller.error(error);
      }
    },
    cancel: end,
  });
  const headers = { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' };
  return new Response(body, { headers });
}

function eventText({ id, fact }: ServerEvent): string {
  const place = id === undefined ? '' : `id: ${id}\n`;
  // JSON has no line breaks of its own
  return fact === undefined ? `${place}\n` : `${place}event: ${fact.type}\ndata: ${JSON.stringify(fact)}\n\n`;
}
