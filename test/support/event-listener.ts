// A listener of server-sent events: reads what comes, and can go away.
import assert from 'node:assert/strict';

export interface HeardEvent {
  id: string;
  type: string;
  data: Record<string, unknown>;
}

/** A test that waits longer than this waits for nothing; a sweep over a thousand runs of a busy server takes its time. */
const patienceMs = 180_000;

export function listen(response: Response) {
  assert.ok(response.body !== null);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  let comments = 0;
  let place = '';

  /** The next block between blank lines; undefined at the end of the stream. */
  async function block(): Promise<string | undefined> {
    for (;;) {
      const end = text.indexOf('\n\n');
      if (end !== -1) {
        const found = text.slice(0, end);
        text = text.slice(end + 2);
        return found;
      }
      const { done, value } = await withPatience(reader.read());
      if (done) return undefined;
      text += value;
    }
  }

  async function next(): Promise<HeardEvent | undefined> {
    for (let found = await block(); found !== undefined; found = await block()) {
      if (found.startsWith(':')) {
        comments += 1;
        continue;
      }
      const { id, data, type } = parse(found);
      // as WHATWG HTML, 9.2 has it: an event without an id leaves the place, one without data only moves it
      if (id !== undefined) place = id;
      if (data !== undefined) return { id: id ?? '', type, data };
    }
    return undefined;
  }

  return {
    /** undefined: the stream has ended */
    next,
    async take(count: number): Promise<HeardEvent[]> {
      const heard: HeardEvent[] = [];
      while (heard.length < count) {
        const event = await next();
        assert.ok(event !== undefined, `the stream ended after ${heard.length} of ${count} events`);
        heard.push(event);
      }
      return heard;
    },
    /** all until the end */
    async rest(): Promise<HeardEvent[]> {
      const heard: HeardEvent[] = [];
      for (let event = await next(); event !== undefined; event = await next()) heard.push(event);
      return heard;
    },
    async heartbeat(): Promise<void> {
      const found = await block();
      assert.equal(found, ':');
    },
    comments: () => comments,
    /** what a browser would send as Last-Event-ID */
    place: () => place,
    leave: () => reader.cancel(),
  };
}

function parse(text: string) {
  const fields = new Map(
    text.split('\n').map((line) => {
      const colon = line.indexOf(': ');
      return [line.slice(0, colon), line.slice(colon + 2)] as const;
    }),
  );
  const data = fields.get('data');
  return {
    id: fields.get('id'),
    type: fields.get('event') ?? '',
    data: data === undefined ? undefined : (JSON.parse(data) as Record<string, unknown>),
  };
}

async function withPatience<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`nothing came within ${patienceMs} ms`)), patienceMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
