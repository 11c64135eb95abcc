// The hash of a spec: over the spec as written (no defaults applied) and, of each tool that it names, what
// a change of would make an approval mean something else. Changing what goes in here changes every hash:
// then `format` goes up. The text is composed of canonical pieces, so that no size limit of one applies to all.
import { z } from 'zod';
import { canonicalize } from '../canonical.ts';
import type { Idempotency } from '../case.ts';
import { hashText } from '../hash.ts';
import type { Spec } from './spec.ts';

const format = 1;

/** What the loader and the hash see of a tool. */
export interface SpecTool {
  name: string;
  arguments: z.ZodType;
  idempotency: Idempotency;
  requiresApproval?: boolean;
}

/** `sha256:<hex>`. Tools that are not there are left out; the loader refuses such a spec. */
export function specHash(spec: Spec, tools: readonly SpecTool[]): string {
  const named = new Set(spec.steps.flatMap((step) => ('tool' in step ? [step.tool] : [])));
  const facts = tools
    .filter(({ name }) => named.has(name))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map((tool) => `${JSON.stringify(tool.name)}:${toolFacts(tool)}`);
  return hashText(`{"format":${format},"spec":${canonicalize(spec)},"tools":{${facts.join(',')}}}`);
}

const factsOfTools = new WeakMap<SpecTool, string>();

/**
 * Canonical JSON of {idempotency, requiresApproval?, schema}. The schema is that of the input (what a
 * proposal has to be), in JSON Schema 2020-12; what that cannot express, such as a refinement or a
 * transform, is not in it. @throws Error when the schema has no JSON Schema at all
 */
export function toolFacts(tool: SpecTool): string {
  const known = factsOfTools.get(tool);
  if (known !== undefined) return known;
  const { $schema: _, ...schema } = z.toJSONSchema(tool.arguments, {
    target: 'draft-2020-12',
    io: 'input',
    unrepresentable: 'any',
  });
  const facts = canonicalize({
    // Drops what zod adds beside the schema.
    schema: JSON.parse(JSON.stringify(schema)) as unknown,
    idempotency: tool.idempotency,
    ...(tool.requiresApproval === true ? { requiresApproval: true } : {}),
  });
  factsOfTools.set(tool, facts);
  return facts;
}
