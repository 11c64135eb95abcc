// Whatever anybody sends to the running API, by what its OpenAPI document says and against it: no 5xx, and no
// status that the document does not name. Schemathesis makes the requests; API, worker and Temporal are real.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { startApi } from './support/api-server.ts';
import { clientOf, openGates } from './support/gates.ts';
import { startLedger } from './support/ledger.ts';
import { findSchemathesis } from './support/schemathesis.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { temporaryFolder } from './support/temporary-folder.ts';
import { startWorker } from './support/worker.ts';

const program = await findSchemathesis();
const isSecondPass = process.env['COUNTERSIGN_TEST_CACHE'] === '0';
// where pip could be had, its absence is a fault: CI has one
const isFault = 'missing' in program && process.env['CI'] !== undefined;
const reason = isSecondPass
  ? 'the requests are the same with and without a workflow cache'
  : 'missing' in program && !isFault && program.missing;

test(
  'no request that schemathesis can think of gets a 5xx, or a status that is not documented',
  { skip: reason },
  async () => {
    assert.ok(!('missing' in program), 'missing' in program ? program.missing : '');
    const temporal = await openTemporal();
    const { client, address, namespace, taskQueue } = temporal;
    const countersign = clientOf(temporal);
    const ledger = await startLedger();
    const { path: secretsFile, adminToken } = await makeSecrets();
    const api = await startApi(temporal, { secretsFile, receiptBudgetMs: 3_000 });
    await startWorker({ address, namespace, taskQueue, secretsFile, ledgerUrl: ledger.url });

    const runId = temporal.id('fuzz');
    const gates = Array.from({ length: 3 }, (_, index) => ({
      name: `gate-${index}`,
      tool: 'payments.refund',
      arguments: { order: `${runId}/${index}`, amount: '1.00' },
    }));
    await client.workflow.start('gatesSideBySide', { workflowId: runId, taskQueue, args: [{ gates }] });
    const [gate] = await openGates(countersign, runId, gates.length);
    const folder = temporaryFolder();

    // once with whatever ids it makes up, once with those of a run and a gate that are there
    for (const known of [{}, { 'path.id': runId, 'path.key': gate?.key }]) {
      const config = join(folder, 'schemathesis.toml');
      const parameters = Object.entries(known).map(([name, value]) => `"${name}" = ${JSON.stringify(value)}`);
      writeFileSync(config, ['[parameters]', ...parameters, ''].join('\n'));
      const { code, output } = await program.run([
        ...['--config-file', config, '--no-color', 'run', `${api.url}/openapi.json`],
        ...['--header', `Authorization: Bearer ${adminToken}`],
        ...['--phases', 'coverage,fuzzing', '--max-examples', '20', '--seed', '4', '--workers', '1'],
        ...(parameters.length === 0 ? [] : ['--include-path-regex', '[{]']),
        // each request of a phase is one of the document's operations: it must be answered as that says
        ...['--checks', 'not_a_server_error,status_code_conformance,content_type_conformance'],
        // streams do not end; test/all-events.server.test.ts and test/api-events.test.ts have them
        ...['--exclude-path-regex', 'events$', '--continue-on-failure'],
        ...['--generation-database', 'none', '--suppress-health-check', 'all', '--warnings', 'off'],
      ]);
      const said = output.slice(-20_000);
      assert.equal(code, 0, said);
      assert.match(output, /Test cases:\s+\d{3,} generated/, said);
    }
    assert.deepEqual(
      api.logged.filter(({ status }) => Number(status) >= 500),
      [],
    );
    // it did something: decisions reached the gates, and runs and approvals were started
    assert.ok((await countersign.readTrail(runId)).some(({ type }) => type === 'decision_refused'));
  },
);
