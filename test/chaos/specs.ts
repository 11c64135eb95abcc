// What the runs of chaos are told to do: the one named spec, and what inline specs and own workflows are started
// with. Each payment's order names its run and gate, so that a line of the ledger can be told to its gate.
import type { Json, JsonObject } from '../../src/core/json.ts';
import { callHash } from './check/independent.ts';
import type { PlannedGate } from './plan-runs.ts';
import type { StartOperation } from './plan.ts';

/** Two gates and three effects: also the reference run. */
export const namedSpec = `version: 1
name: chaos
input:
  type: object
  required: [order]
  properties: { order: { type: string } }
steps:
  - id: note
    tool: note.send
    with: { order: '\${{ input.order }}:note' }
  - id: pay-1
    tool: pay.keyed
    with: { order: '\${{ input.order }}:pay-1', amount: '10.00' }
    before: { approve: { title: 'Pay \${{ input.order }}', ttl: 1h } }
  - id: pay-2
    tool: pay.keyed
    with: { order: '\${{ input.order }}:pay-2', amount: '10.00' }
    before: { approve: { title: 'Pay \${{ input.order }} again', ttl: 1h } }
`;

/** Another amount: the same gate, and not the spec that a run was started with. */
export const editedSpec = namedSpec.replaceAll("'10.00'", "'11.00'");

export function orderOf(runId: string, gate: PlannedGate): string {
  // the rounds of a gate are about one order
  return `${runId}:${gate.name.replace(/#\d+$/, '')}`;
}

export function argumentsOf(runId: string, gate: PlannedGate): JsonObject {
  return { order: orderOf(runId, gate), amount: gate.amount };
}

/** The body of POST /runs. */
export function specStart(start: StartOperation, id: string): JsonObject {
  if (start.shape === 'named') return { id, spec: 'chaos', input: { order: id } };
  const steps = start.gates.map((gate): JsonObject => ({
    id: gate.name,
    tool: gate.tool,
    with: argumentsOf(id, gate),
    before: { approve: { title: `Pay at ${gate.name} — „é“`, ttl: ttlText(gate) } },
  }));
  const note = { id: 'note', tool: 'note.send', with: { order: `${id}:note` } };
  return { id, spec: { version: 1, name: 'inline', steps: [note, ...steps] }, input: {} };
}

/** The body of POST /approvals; its run is named by the API. */
export function approvalStart(start: StartOperation, id: string): JsonObject {
  const [gate] = start.gates;
  if (gate === undefined) throw new TypeError('an approval has a gate');
  return { tool: gate.tool, arguments: argumentsOf(id, gate), policy: { ttl: gate.ttlMs } };
}

export interface WorkflowStart {
  type: string;
  args: [JsonObject];
}

/** What a workflow of the test bundle is started with. */
export function workflowStart(start: StartOperation, id: string, lingerMs: number): WorkflowStart {
  const gates = start.gates.map((gate) => oneGate(id, gate));
  if (start.shape === 'forged') return { type: 'performForged', args: [{ calls: forgedCalls(id) }] };
  const [first, second] = gates;
  if (first === undefined) throw new TypeError('every run has a gate');
  switch (start.shape) {
    case 'one':
      return { type: 'oneGated', args: [first] };
    case 'row':
      return { type: 'gatesInARow', args: [{ gates }] };
    case 'side':
      return { type: 'gatesSideBySide', args: [{ gates }] };
    case 'effects':
      return {
        type: 'effectsThenGate',
        args: [{ before: [note(id, 'note-1'), note(id, 'note-2')], gate: first }],
      };
    case 'child':
      return { type: 'parentOf', args: [{ child: 'gatesInARow', args: [{ gates }] }] };
    case 'children': {
      const child = { before: note(id, 'note-2'), gate: second ?? first };
      return { type: 'gateAndChild', args: [{ before: note(id, 'note-1'), gate: first, child }] };
    }
    case 'carried':
      return { type: 'carriedGates', args: [{ gates, lingerMs }] };
    case 'rounds':
      return { type: 'gateEachRound', args: [{ gate: first, rounds: gates.length }] };
    case 'misused': {
      const change = { arguments: { ...(first['arguments'] as JsonObject), amount: '999.99' } };
      return { type: 'misuseOfAGrant', args: [{ gate: first, change }] };
    }
    case 'named':
    case 'inline':
    case 'request':
      throw new TypeError(`"${start.shape}" is started by HTTP`);
  }
}

/** What nobody was asked about: without a grant, and with one of somebody's own making. */
function forgedCalls(id: string): JsonObject[] {
  return ['none', 'made up'].map((grant, index) => {
    const name = `pay-${index + 1}`;
    const args = { order: `${id}:${name}`, amount: '13.00', currency: 'EUR' };
    return { name, tool: 'pay.keyed', arguments: args, payloadHash: callHash('pay.keyed', args), grant };
  });
}

function oneGate(id: string, gate: PlannedGate): JsonObject {
  const { name, tool, ttlMs } = gate;
  return { name, tool, arguments: argumentsOf(id, gate), ttl: ttlMs };
}

function note(id: string, name: string): JsonObject {
  return { name, tool: 'note.send', arguments: { order: `${id}:${name}` } };
}

function ttlText({ ttlMs }: PlannedGate): Json {
  return ttlMs % 60_000 === 0 ? `${ttlMs / 60_000}m` : `${Math.ceil(ttlMs / 1_000)}s`;
}
