// UTF-8 to text, where bytes that are not UTF-8 are a finding with a place, never replaced by U+FFFD:
// two different byte sequences must not become one payload. A byte order mark is kept, for the reader.

/** The text, or that part of it before the first byte that is wrong. */
export function decodeUtf8(bytes: Uint8Array): { text: string } | { validPrefix: string } {
  try {
    return { text: decoder().decode(bytes) };
  } catch {
    return { validPrefix: validPrefix(bytes) };
  }
}

/** By bisection, since the decoder does not tell where it failed. */
function validPrefix(bytes: Uint8Array): string {
  let good = 0;
  let bad = bytes.length + 1;
  while (bad - good > 1) {
    const middle = (good + bad) >> 1;
    if (decodePrefix(bytes, middle) === undefined) bad = middle;
    else good = middle;
  }
  return decodePrefix(bytes, good) ?? '';
}

/** `stream`: a character that is only begun at the end is no error yet. */
function decodePrefix(bytes: Uint8Array, length: number): string | undefined {
  try {
    return decoder().decode(bytes.subarray(0, length), { stream: true });
  } catch {
    return undefined;
  }
}

function decoder() {
  return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
}
