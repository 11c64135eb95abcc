// One table of errors: what the code answers is what docs/errors.md says, both ways.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { errorCodes, errorOfRefusal, errorTable, type ErrorCode } from '../src/core/errors.ts';
import type { RefusalCode } from '../src/core/verdict.ts';

const text = readFileSync(new URL('../docs/errors.md', import.meta.url), 'utf8');

function rowsUnder(header: string): string[][] {
  const lines = text.split('\n');
  const at = lines.findIndex((line) => line.startsWith(`| ${header}`));
  assert.notEqual(at, -1, `docs/errors.md has a table with the column "${header}"`);
  const table = lines.slice(at + 2);
  const end = table.findIndex((line) => !line.startsWith('|'));
  return table.slice(0, end === -1 ? undefined : end).map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

const refusals: Record<RefusalCode, true> = {
  malformed: true,
  unknown_key: true,
  not_open: true,
  payload_changed: true,
  spec_changed: true,
  unproven: true,
  not_allowed: true,
  self_approval: true,
  invalid_edit: true,
  already_resolved: true,
  expired: true,
  too_large: true,
  check_failed: true,
};

test('docs/errors.md says of every code what the table says, and of no other code', () => {
  const documented = new Map(rowsUnder('code').map(([code = '', ...rest]) => [code, rest]));
  assert.deepEqual([...documented.keys()].sort(), errorCodes.map((code) => `\`${code}\``).sort());
  for (const code of errorCodes) {
    const { status, title, remedy, retryAfter } = errorTable[code];
    const retry = retryAfter === undefined ? '' : `${retryAfter} s`;
    assert.deepEqual(documented.get(`\`${code}\``), [String(status), title, remedy, retry]);
  }
});

test('docs/errors.md says how every refusal of a gate reaches HTTP', () => {
  const documented = Object.fromEntries(rowsUnder("verdict's code"));
  const codes = Object.keys(refusals) as RefusalCode[];
  const expected = codes.map((code) => [`\`${code}\``, `\`${errorOfRefusal(code)}\``]);
  assert.deepEqual(documented, Object.fromEntries(expected));
});

test('statuses are those of the contract', () => {
  const contract: [number, ErrorCode[]][] = [
    [400, ['invalid_request']],
    [401, ['unauthenticated']],
    [403, ['not_allowed', 'self_approval', 'unproven']],
    [404, ['approval_not_found']],
    [409, ['already_resolved', 'not_open', 'spec_changed', 'idempotency_in_flight', 'ambiguous_approval']],
    [412, ['payload_changed']],
    [413, ['too_large']],
    [415, ['unsupported_media_type']],
    [422, ['idempotency_key_reused', 'invalid_edit']],
    [428, ['payload_hash_required']],
    [429, ['rate_limited']],
    [503, ['temporal_unavailable', 'check_failed']],
  ];
  for (const [status, codes] of contract) {
    for (const code of codes) assert.equal(errorTable[code].status, status, code);
  }
});

test('whoever is to come back is told when', () => {
  for (const code of [
    'not_open',
    'idempotency_in_flight',
    'rate_limited',
    'temporal_unavailable',
    'check_failed',
  ] as const) {
    assert.ok((errorTable[code].retryAfter ?? 0) > 0, code);
  }
});
