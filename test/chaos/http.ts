// A person at the API: a request, and what a careful client does when the answer is missing or says "not yet".
// Everything that is asked and answered becomes evidence.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Call } from './evidence.ts';
import { clock, isOver, type Stage } from './stage.ts';

export interface Request {
  method: 'GET' | 'POST';
  path: string;
  person: string;
  headers?: Record<string, string>;
  body?: unknown;
}

export interface Answer {
  status: number;
  body: Record<string, unknown>;
  location: string | null;
}

/** Longer than the API's own bounds (5 s a call to Temporal, 3 s for a receipt), and short for a run. */
const answerBoundMs = 12_000;
const pauseMs = 250;

/** Undefined: no answer came, and nobody knows. */
export async function send(stage: Stage, request: Request): Promise<Answer | undefined> {
  const { method, path, person, headers = {}, body } = request;
  try {
    const response = await fetch(stage.world.apiUrl + path, {
      method,
      headers: {
        authorization: `Bearer ${stage.world.tokens.get(person) ?? ''}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(answerBoundMs),
    });
    const text = await response.text();
    const isJson = /json$/.test(response.headers.get('content-type') ?? '');
    const parsed = isJson ? (JSON.parse(text) as Record<string, unknown>) : { text };
    return { status: response.status, body: parsed, location: response.headers.get('location') };
  } catch {
    return undefined;
  }
}

export type CallFields = Omit<Call, 'id' | 'begun' | 'ended' | 'answer' | 'final'>;

export function openCall(stage: Stage, fields: CallFields): Call {
  const now = clock();
  const call: Call = { id: stage.calls.length + 1, ...fields, begun: now, ended: now };
  stage.calls.push(call);
  return call;
}

export function noteAnswer(call: Call, answer: { status: number; body: unknown } | undefined): void {
  call.ended = clock();
  if (answer !== undefined) call.answer = { status: answer.status, body: answer.body };
}

/**
 * Asks, and asks again as the answer tells: at `Location` after a 202, the same once more where no answer came or
 * it was 5xx or "in flight". Gives the last answer.
 */
export async function insist(
  stage: Stage,
  call: Call,
  request: Request,
  again: (answer: Answer) => boolean = () => false,
): Promise<Answer | undefined> {
  const first = await send(stage, request);
  noteAnswer(call, first);
  let last = first;
  let next = request;
  while (!isOver(stage)) {
    if (last !== undefined && !isPassing(last) && !again(last)) return last;
    // a 202 is recorded: from then on it is only asked what became of it
    if (last?.status === 202) {
      const location = last.location ?? linkOf(last);
      if (location === undefined) return last;
      next = { method: 'GET', path: location.replace(/^https?:\/\/[^/]+/, ''), person: request.person };
    }
    await sleep(pauseMs);
    const answer = await send(stage, next);
    if (answer === undefined) continue;
    last = answer;
    call.final = { status: answer.status, body: answer.body };
    call.finalEnded = clock();
  }
  return last;
}

function isPassing({ status, body }: Answer): boolean {
  return status === 202 || status >= 500 || body['code'] === 'idempotency_in_flight';
}

function linkOf({ body }: Answer): string | undefined {
  const { decision } = (body['links'] ?? {}) as { decision?: unknown };
  return typeof decision === 'string' ? decision : undefined;
}
