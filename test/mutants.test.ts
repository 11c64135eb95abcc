// The mutants as patches: each fits today's source, breaks what it says, and is pinned to what catches it. That it is
// caught is shown by mutants/pinned.server.test.ts, by command.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { mutantNames, mutatedFiles, readPins } from './chaos/mutants.ts';
import { readOnly } from './chaos/plan.ts';
import { applyPatch } from './support/unified-diff.ts';

/** Issue 5, part 4. */
const wanted = [
  '2xx-before-the-signal',
  'approval-key-without-root',
  'child-root-not-handed-down',
  'counters-not-carried',
  'grant-not-checked',
  'key-from-run-id',
  'late-decision-wins',
  'no-hash-check-at-admission',
  'no-hash-check-in-the-activity',
  'random-key',
  'two-local-activities-at-once',
];

describe('mutants', () => {
  test('there is one for each promise that the harness must see broken', () => {
    assert.deepEqual(mutantNames(), wanted);
  });

  for (const name of mutantNames()) {
    test(`${name} fits the source and is pinned`, () => {
      for (const [path, text] of mutatedFiles(name)) {
        assert.match(path, /^src\//);
        assert.notEqual(text, readFileSync(path, 'utf8'));
      }
      const pin = readPins()[name];
      assert.ok(pin !== undefined && pin.invariants.length > 0 && !pin.invariants.includes('N7'));
      assert.deepEqual(readOnly(pin.only.join()), pin.only);
    });
  }

  test('the README tells of each', () => {
    const readme = readFileSync('test/mutants/README.md', 'utf8');
    assert.deepEqual(
      mutantNames().filter((name) => !readme.includes(`\`${name}\``)),
      [],
    );
  });
});

describe('a patch', () => {
  const text = 'one\ntwo\nthree\nfour\n';
  const patch = ['--- a/file', '+++ b/file', '@@ -9,3 +9,3 @@', ' two', '-three', '+drei', ' four', ''].join(
    '\n',
  );

  test('changes the lines that it names, wherever they stand', () => {
    assert.equal(applyPatch(patch, () => `zero\n${text}`).get('file'), 'zero\none\ntwo\ndrei\nfour\n');
  });

  test('that fits no more, or fits twice, fails with its lines', () => {
    assert.throws(() => applyPatch(patch, () => 'one\n'), /file has these lines 0 times.*\ntwo\nthree\nfour/);
    assert.throws(() => applyPatch(patch, () => text + text), /2 times/);
    assert.throws(() => applyPatch('', () => text), /changes no file/);
  });
});
