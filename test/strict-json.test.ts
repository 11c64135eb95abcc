// The strict reader: what two JSON readers could understand differently is refused, with its place.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import { JsonProblemError, parseStrictJson } from '../src/core/strict-json.ts';

interface Vector {
  name: string;
  json: string;
}

const { accept, refuse } = JSON.parse(
  readFileSync(new URL('./vectors/canonical.json', import.meta.url), 'utf8'),
) as { accept: Vector[]; refuse: Vector[] };

function problemOf(text: string | Uint8Array): JsonProblemError {
  try {
    parseStrictJson(text);
  } catch (error) {
    assert.ok(error instanceof JsonProblemError, String(error));
    assert.equal(error.code, 'invalid_json');
    return error;
  }
  assert.fail(`not refused: ${String(text).slice(0, 80)}`);
}

test('case 50: every text that the vectors refuse is refused, as text and as bytes', () => {
  assert.ok(refuse.length >= 17, 'vectors are missing');
  for (const { name, json } of refuse) {
    assert.ok(problemOf(json).message.length > 20, name);
    assert.ok(problemOf(Buffer.from(json)).message.length > 20, name);
  }
});

test('case 50: every text that the vectors accept is read as JSON.parse reads it', () => {
  assert.ok(accept.length >= 12, 'vectors are missing');
  for (const { name, json } of accept) {
    assert.equal(JSON.stringify(parseStrictJson(json)), JSON.stringify(JSON.parse(json)), name);
  }
});

test('a problem names line, column, pointer and remedy', () => {
  const problem = problemOf('{\n  "a": [0, {"amount": 1,\n    "amount": 1000000}]\n}');
  assert.equal(problem.message, 'line 3, column 5, at /a/1/amount: duplicate key "amount"; keep one');
  assert.deepEqual([problem.line, problem.column, problem.pointer], [3, 5, '/a/1/amount']);
  assert.match(
    problemOf('{"id": 9007199254740993}').message,
    /^line 1, column 8, at \/id: .*9007199254740993.*send it as a string$/,
  );
  assert.equal(problemOf('').message, 'line 1, column 1: the text is empty; a JSON value is needed');
  assert.equal(problemOf('{"a/b~c": x}').pointer, '/a~1b~0c');
});

test('numbers are compared by decimal value, not by spelling', () => {
  const accepted: [string, number][] = [
    ['1.0', 1], ['100', 100], ['1e2', 100], ['0.1', 0.1], ['1E+2', 100], ['10.50e-1', 1.05], ['-0', 0], ['-0.0e5', 0],
    ['0e999999999999', 0], ['1e21', 1e21], ['1e23', 1e23], ['5e-324', 5e-324], ['1.7976931348623157e308', Number.MAX_VALUE],
    ['9007199254740991', 9007199254740991], ['-9007199254740991', -9007199254740991], ['9007199254740992.0', 2 ** 53],
    [`0.${'0'.repeat(400)}1e401`, 1],
  ]; // prettier-ignore
  for (const [text, value] of accepted) assert.equal(parseStrictJson(text), value, text);
  const refused = [
    '9007199254740992', '-9007199254740992', '9007199254740993.0', '9.007199254740993e15', '100000000000000000000',
    '1e400', '-1e400', '1e-400', '2e-324', '0.10000000000000001', '0.1000000000000000055511151231257827',
    '1e99999999999999999999', '1e-99999999999999999999', '333333333.33333329',
  ]; // prettier-ignore
  for (const text of refused) assert.match(problemOf(text).message, /send it as a string$/, text);
});

test('-0 is read as 0, so that a value is the same before and after it is recorded', () => {
  assert.ok(Object.is(parseStrictJson('-0'), 0));
});

test('a long run of zeros in a number is read in linear time', () => {
  const zeros = '0'.repeat(200_000);
  problemOf(`1.${zeros}1`);
  assert.equal(parseStrictJson(`1.${zeros}`), 1);
});

test('64 levels and 10,000 values are read, one more is not', () => {
  const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);
  parseStrictJson(nested(64));
  assert.match(problemOf(nested(65)).message, /deeper than 64/);
  problemOf('{"a":'.repeat(100_000));
  const list = (length: number): string => `[${Array(length).fill('0').join(',')}]`;
  parseStrictJson(list(9_999)); // and the list itself
  assert.match(problemOf(list(10_000)).message, /more than 10000 values/);
});

test('__proto__ becomes a member and changes no prototype', () => {
  const value = parseStrictJson('{"__proto__": {"admin": true}}') as Record<string, unknown>;
  assert.deepEqual(Object.keys(value), ['__proto__']);
  assert.equal(Object.getPrototypeOf(value), Object.prototype);
  assert.equal(value['admin'], undefined);
  assert.match(problemOf('{"__proto__": 1, "__proto__": 2}').message, /duplicate key "__proto__"/);
  assert.deepEqual(parseStrictJson('{"toString": 1, "hasOwnProperty": 2}'), {
    toString: 1,
    hasOwnProperty: 2,
  });
});

test('texts that are almost JSON are refused with a word on what to change', () => {
  const cases: [string, RegExp][] = [
    ['[1,]', /comma before "]"/], ['{"a":1,}', /comma before "}"/], ['[1 2]', /"2" where "," or "]" is needed/],
    ['{"a" 1}', /":" is needed/], ['{a: 1}', /key in double quotes/], ["{'a': 1}", /only double quotes/],
    ['{"a": 1 // x\n}', /no comments/], ['[NaN]', /"NaN" is not JSON/], ['[-Infinity]', /"-" where a value/],
    ['[undefined]', /"undefined" is not JSON/], ['[True]', /"True" is not JSON/], ['01', /"1" after the end/],
    ['+1', /"\+" where a value/], ['.5', /"\." where a value/], ['1.', /"\." after the end/], ['[', /the text ends/],
    ['{', /the text ends/], ['{"a":', /the text ends/], ['"abc', /does not end/], ['"a\nb"', /in a string/],
    ['"\\x"', /unknown escape/], ['"\\u12g4"', /unknown escape/], ['[1]]', /after the end/], ['\u00a01', /where a value/],
    ['nullx', /"nullx" is not JSON/], ['\ufeff1', /byte order mark/], ['   ', /empty/],
  ]; // prettier-ignore
  for (const [text, message] of cases) assert.match(problemOf(text).message, message, text);
});

test('bytes that are not UTF-8 are refused where they are', () => {
  const bad = Buffer.concat([Buffer.from('{"é":\n "'), Buffer.from([0xc3, 0x28]), Buffer.from('"}')]);
  assert.match(problemOf(bad).message, /^line 2, column 3: the bytes are not UTF-8/);
  for (const bytes of [
    [0xff],
    [0x22, 0xed, 0xa0, 0x80, 0x22],
    [0x22, 0xc0, 0x80, 0x22],
    [0x22, 0xe2, 0x82],
  ]) {
    assert.match(problemOf(Uint8Array.from(bytes)).message, /not UTF-8/, bytes.join());
  }
});

test('a message never carries control or direction characters, and stays short', () => {
  const { message } = problemOf(`{"\u202eevil\\n${'x'.repeat(100_000)}": tru}`);
  assert.ok(!/[\n\u202e]/.test(message));
  assert.ok(message.length < 500, `${message.length} characters`);
});

test('property: whatever JSON.stringify writes of a JSON value is read back the same', () => {
  fc.assert(
    fc.property(
      fc.jsonValue({ stringUnit: 'binary' }),
      fc.constantFrom(undefined, 2, '\t'),
      (value, indent) => {
        const text = JSON.stringify(value, undefined, indent);
        const bigInteger = /(?<![\d.e"])\d{16,}(?!\d*[.e])/.test(text);
        if (bigInteger) return;
        assert.deepEqual(parseStrictJson(text), JSON.parse(text));
        assert.deepEqual(parseStrictJson(Buffer.from(text)), JSON.parse(text));
      },
    ),
  );
});

test('property: of any text, what is accepted is what JSON.parse says, and all else is a JsonProblemError', () => {
  const piece = fc.constantFrom(
    ...'{}[],:"\\ \n-+.eE0123456789/', 'null', 'true', '"a"', '"b"', '\\u0061', '\\ud800', '{"a":', '[1', '1e2', '\ud83d', '\ufeff',
  ); // prettier-ignore
  let accepted = 0;
  fc.assert(
    fc.property(fc.array(piece, { minLength: 1, maxLength: 8 }), (pieces) => {
      const text = pieces.join('');
      let value;
      try {
        value = parseStrictJson(text);
      } catch (error) {
        assert.ok(error instanceof JsonProblemError, `${text}: ${String(error)}`);
        return;
      }
      accepted += 1;
      assert.equal(JSON.stringify(value), JSON.stringify(JSON.parse(text)));
    }),
    { numRuns: 5000 },
  );
  assert.ok(accepted > 100, `only ${accepted} of 5000 texts were JSON`);
});
