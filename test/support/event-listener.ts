// A listener of server-sent events: reads what comes, and can go away.
import assert from 'node:assert/strict';

export interface HeardEvent {
  id: string;
  type: string;
  data: Record<string, unknown>;
}

/** A test that waits longer than this waits for nothing. */
const patienceMs = 10_000;

export function listen(response: Response) {
  assert.ok(response.body !== null);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  let comments = 0;

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
      if (found.startsWith(':')) comments += 1;
      else return parse(found);
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
    leave: () => reader.cancel(),
  };
}

function parse(text: string): HeardEvent {
  const fields = new Map(
    text.split('\n').map((line) => {
      const colon = line.indexOf(': ');
      return [line.slice(0, colon), line.slice(colon + 2)] as const;
    }),
  );
  const data = JSON.parse(fields.get('data') ?? '') as Record<string, unknown>;
  return { id: fields.get('id') ?? '', type: fields.get('event') ?? '', data };
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
