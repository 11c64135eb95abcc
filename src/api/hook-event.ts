// What a delivery says: JSON as it is, or a CloudEvent 1.0 in either mode of its HTTP binding. Its identity is
// made only of what was signed: the body and webhook-id. Headers are not, the content type no more than those of
// binary mode, so a body that is a CloudEvent is one whatever they say.
import type { Json, JsonObject } from '../core/json.ts';
import { checkMediaType, parseBody } from './body.ts';
import { ApiProblem } from './problem.ts';

export interface HookEvent {
  /** of the event, the same however often it is delivered */
  id: string;
  /** of a body that is a CloudEvent: its id is one only together with its source */
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
  const problems = bodyProblems(content);
  if (problems.length === 0) {
    const { id, source } = content as JsonObject & { id: string; source: string };
    return { id, source, content };
  }
  if ((headers.get('content-type') ?? '').trim().toLowerCase().startsWith(structured))
    throw noEvent(problems);
  if (!required.some((name) => headers.has(`ce-${name}`))) return { id: deliveryId, content };
  const missing = attributeProblems((name) => headers.get(`ce-${name}`) ?? undefined, 'header ce-');
  if (missing.length > 0) throw noEvent(missing);
  return { id: deliveryId, content: { data: content } };
}

/** What keeps the signed body from being a CloudEvent. */
function bodyProblems(content: Json): string[] {
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    return ['a CloudEvent is a JSON object with specversion, id, source and type'];
  }
  return attributeProblems((name) => (Object.hasOwn(content, name) ? content[name] : undefined), '');
}

function attributeProblems(read: (name: string) => Json | undefined, prefix: string): string[] {
  return required.flatMap((name) => {
    const value = read(name);
    if (typeof value !== 'string' || value === '' || value.length > maxAttributeLength) {
      return [`${prefix}${name}: must be a text of 1 to ${maxAttributeLength} characters`];
    }
    return name === 'specversion' && value !== '1.0' ? [`${prefix}specversion: must be "1.0"`] : [];
  });
}

function noEvent(problems: string[]): ApiProblem {
  return new ApiProblem('invalid_request', `not a CloudEvent: ${problems.join('; ')}`, { problems });
}
