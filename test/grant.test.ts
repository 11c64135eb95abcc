// P3, P4: a grant is the right to one effect of one run; whatever was altered, made up or signed with a
// key that was removed is refused, and nothing that is presented as a grant makes the check throw.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Grant } from '../src/core/case.ts';
import { grantProblem, issueGrant, type GrantKey } from '../src/core/grant.ts';

const makeKey = (kid: string): GrantKey => ({ kid, secret: randomBytes(32).toString('base64url') });
const oldKey = makeKey('g1');
const newKey = makeKey('g2');
const place = { namespace: 'default', workflowId: 'refund-ord-1001' };
const content: Omit<Grant, 'kid' | 'mac'> = {
  v: 1,
  ...place,
  key: 'refund-ord-1001.refund.046acc729732',
  root: '019d2b1a-7f3e-7c11-9d55-046acc729732',
  position: 'refund',
  tool: 'payments.refund',
  payloadHash: `sha256:${'a'.repeat(64)}`,
  decisionId: 'd-1',
};
const grant = issueGrant(content, [oldKey]);

test('P4: a grant holds where it was issued for, and survives JSON', () => {
  assert.equal(grantProblem(grant, place, [oldKey]), undefined);
  assert.equal(grantProblem(JSON.parse(JSON.stringify(grant)) as Grant, place, [oldKey]), undefined);
  assert.equal(grant.kid, 'g1');
});

test('P3: a grant with any one field changed, added or taken away is refused (case 55)', () => {
  const strings = Object.keys(grant).filter((name) => name !== 'v') as (keyof Grant)[];
  assert.equal(strings.length, 10);
  for (const name of strings) {
    const value = String(grant[name]);
    for (const changed of [`${value}x`, value.slice(0, -1), '', undefined, null, 1]) {
      const problem = grantProblem({ ...grant, [name]: changed }, place, [oldKey]);
      assert.match(problem ?? 'it was accepted', /HMAC does not match|not known here|not a grant/, name);
    }
    const { [name]: _gone, ...rest } = grant;
    assert.notEqual(grantProblem(rest as Grant, place, [oldKey]), undefined, `without ${name}`);
  }
  for (const added of [{ rule: 'below-10' }, { amount: 1 }, { v: 2 }]) {
    assert.match(grantProblem({ ...grant, ...added } as Grant, place, [oldKey]) ?? '', /HMAC/);
  }
});

test('P3: two letters swapped anywhere in the HMAC are refused', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: grant.mac.length - 2 }), (at) => {
      const letters = [...grant.mac];
      [letters[at], letters[at + 1]] = [letters[at + 1] ?? '', letters[at] ?? ''];
      const mac = letters.join('');
      fc.pre(mac !== grant.mac);
      assert.match(grantProblem({ ...grant, mac }, place, [oldKey]) ?? '', /HMAC does not match/);
    }),
  );
});

test("P4: another run's grant is refused, by workflow id and by namespace", () => {
  const elsewhere = { ...place, workflowId: 'refund-ord-1002' };
  assert.match(
    grantProblem(grant, elsewhere, [oldKey]) ?? '',
    /is for run "refund-ord-1001" in.*not for "refund-ord-1002"/,
  );
  assert.notEqual(grantProblem(grant, { ...place, namespace: 'staging' }, [oldKey]), undefined);
});

test('P4: after a rotation the new key signs, the old grants hold until their key is removed', () => {
  const rotated = [newKey, oldKey];
  assert.equal(issueGrant(content, rotated).kid, 'g2');
  assert.equal(grantProblem(grant, place, rotated), undefined);
  assert.match(grantProblem(grant, place, [newKey]) ?? '', /grant key "g1", which is not known here/);
  const impostor = { ...newKey, kid: 'g1' };
  assert.match(grantProblem(grant, place, [impostor]) ?? '', /HMAC does not match/);
  assert.notEqual(grantProblem(grant, place, []), undefined);
});

test('P4: without a grant key no grant is issued', () => {
  assert.throws(() => issueGrant(content, []), /no grant key/);
});

test('P8: whatever is presented as a grant, the check answers and never throws', () => {
  for (const made of [null, undefined, 1, 'grant', [], {}, { kid: 'g1' }, { ...grant, mac: {} }]) {
    assert.equal(typeof grantProblem(made as never, place, [oldKey]), 'string', JSON.stringify(made));
  }
  const almost = fc.record({ kid: fc.constant('g1'), mac: fc.anything(), root: fc.anything() });
  fc.assert(
    fc.property(fc.oneof(fc.anything(), almost), (made) => {
      assert.equal(typeof grantProblem(made as never, place, [oldKey]), 'string');
    }),
  );
});
