// The demo with a person: one run asks, the person decides by curl, and sees what became of it.
import type { Demo } from './demo-parts.ts';
import { ask, type Show } from './demo-steps.ts';
import { trailTable } from './trail-table.ts';
import { forPeople, until } from './until.ts';

export async function waitForPerson(demo: Demo, show: Show): Promise<void> {
  show.title('A refund is asked for');
  const asked = await ask(demo, show, 'ord-1001', '25.00');
  const { key, runId, payloadHash } = asked;
  const [started] = await demo.anna.trail(runId);
  const { url } = demo.anna;
  const lines = [
    '',
    'Look at the run in the Temporal Web UI:',
    '',
    `  ${demo.temporal.uiUrl}/namespaces/default/workflows/${runId}/${started?.temporalRunId ?? ''}/history`,
    '',
    'Approve it as Anna:',
    '',
    `  curl -X POST ${url}/approvals/${key}/approve \\`,
    `    -H 'Authorization: Bearer ${demo.anna.token}' \\`,
    `    -H 'If-Match: "${payloadHash}"'`,
    '',
    'or reject it as Ben:',
    '',
    `  curl -X POST ${url}/approvals/${key}/reject \\`,
    `    -H 'Authorization: Bearer ${demo.ben.token}' \\`,
    `    -H 'Content-Type: application/json' -d '{"reason": "The amount is wrong"}'`,
    '',
    'The run waits for you, for seven days if need be. Ctrl-C ends the demo.',
  ];
  for (const line of lines) show.say(line);

  const ending = await until('a decision', () => demo.anna.ending(runId), forPeople);
  show.title(`The run is ${ending}`);
  show.say(`the ledger: ${await demo.ledger.counts('ord-1001')}`);
  show.say('');
  for (const line of trailTable(await demo.anna.trail(runId))) show.say(line);
  show.say('');
  show.say('Send the other curl now: it is refused, and told who was first. Ctrl-C ends the demo.');
}
