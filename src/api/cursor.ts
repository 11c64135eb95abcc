// Cursors of lists. Temporal's page tokens are opaque, and a bad one is not told from an unreachable server;
// so a cursor carries a check over itself and the filters that it continues. It guards nothing secret.
import { canonicalize } from '../core/canonical.ts';
import { sha256Hex } from '../core/hash.ts';
import { ApiProblem } from './problem.ts';

type Filters = Record<string, string | undefined>;

/** 40 bits: enough for a typing error or a cut. */
const checkLength = 10;

export function cursorMember(token: string | undefined, filters: Filters): { cursor?: string } {
  return token === undefined ? {} : { cursor: `${checkOf(token, filters)}.${token}` };
}

/** The page token in `cursor`, as what a list takes. @throws ApiProblem invalid_request */
export function readCursor(cursor: string | undefined, filters: Filters): { cursor?: string } {
  if (cursor === undefined) return {};
  const token = cursor.slice(checkLength + 1);
  if (cursor === `${checkOf(token, filters)}.${token}`) return { cursor: token };
  const detail = 'cursor is not one of an earlier answer to the same filters';
  throw new ApiProblem('invalid_request', detail, { problems: [detail] });
}

function checkOf(token: string, filters: Filters): string {
  const given = Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== undefined));
  return sha256Hex(canonicalize([token, given])).slice(0, checkLength);
}
