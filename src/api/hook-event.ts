// What a delivery says: JSON as it is, or a CloudEvent 1.0 in either mode of its HTTP binding. Its identity is
// made only of what was signed: in binary mode the attributes are headers, and the signature covers the body.
import type { Json, JsonObject } from '../core/json.ts';
import { checkMediaType, parseBody } from './body.ts';
import { ApiProblem } from './problem.ts';

export interface HookEvent {
  /** of the event, the same however often it is delivered */
  id: string;
  /** of a CloudEvent in structured mode: its id is one only together with its source */
  source?: string;
  /** what paths are followed in: the signed JSON, in binary mode as `{data}` */
  content: Json;
}

const json = 'application/json';
const structured = 'application/cloudevents+json';
const required = ['specversion', 'id', 'source', 'type'] as const;

/** Longer than URNs and URLs get; it stands in the trigger of the run. */
const maxAttributeLength = 2048;

/** @throws ApiProblem unsupported_media_type, invalid_request */
export function readEvent(headers: Headers, body: Uint8Array, deliveryId: string): HookEvent {
  checkMediaType(headers, [json, structured]);
  const content = parseBody(body);
  if ((headers.get('content-type') ?? '').trim().toLowerCase().startsWith(structured)) {
    return structuredEvent(content);
  }
  const isEvent = required.some((name) => headers.has(`ce-${name}`));
  if (!isEvent) return { id: deliveryId, content };
  checkAttributes((name) => headers.get(`ce-${name}`) ?? undefined, 'header ce-');
  return { id: deliveryId, content: { data: content } };
}

function structuredEvent(content: Json): HookEvent {
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    throw new ApiProblem(
      'invalid_request',
      'a CloudEvent is a JSON object with specversion, id, source and type',
    );
  }
  checkAttributes((name) => (Object.hasOwn(content, name) ? content[name] : undefined), '');
  const { id, source } = content as JsonObject & { id: string; source: string };
  return { id, source, content };
}

function checkAttributes(read: (name: string) => Json | undefined, prefix: string): void {
  const problems = required.flatMap((name) => {
    const value = read(name);
    if (typeof value !== 'string' || value === '' || value.length > maxAttributeLength) {
      return [`${prefix}${name}: must be a text of 1 to ${maxAttributeLength} characters`];
    }
    return name === 'specversion' && value !== '1.0' ? [`${prefix}specversion: must be "1.0"`] : [];
  });
  if (problems.length === 0) return;
  throw new ApiProblem('invalid_request', `not a CloudEvent: ${problems.join('; ')}`, { problems });
}
