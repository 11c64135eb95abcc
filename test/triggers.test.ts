// What an API or a worker says of its triggers before it starts.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openProject, UsageProblem } from '../src/cli/open-project.ts';
import { startScript } from './support/script.ts';
import { makeSecrets } from './support/secrets.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

function projectWith(spec: string): string {
  const folder = temporaryFolder();
  mkdirSync(join(folder, 'specs'));
  const text = `version: 1\nname: refund\nsteps: [{ id: ok, approval: { title: 'Go?' } }]\n`;
  writeFileSync(join(folder, 'specs', 'refund.yaml'), text);
  const trigger = { spec, secrets: ['${SHOP_NEW}', '${SHOP_OLD}'], input: {} };
  const config = join(folder, 'countersign.config.mjs');
  writeFileSync(
    config,
    `export const config = ${JSON.stringify({ tools: [], triggers: { shop: trigger } })};\n`,
  );
  return config;
}

test('a trigger whose spec is not there ends worker, API and dev at their start, by name', async () => {
  const { specs } = await openProject({ config: projectWith('refund') });
  specs.close();
  const config = projectWith('refunds');
  await assert.rejects(openProject({ config }), (error) => {
    assert.ok(error instanceof UsageProblem);
    const says = 'config.triggers.shop.spec is "refunds", and there is no such spec; there are: refund';
    assert.equal(error.message, `${config}: ${says}`);
    return true;
  });
});

test('an API whose signing secrets are not set, or are none, ends at its start and shows no value', async () => {
  const { path } = await makeSecrets();
  const config = projectWith('refund');
  for (const [env, says] of [
    [{}, /trigger "shop": no signing secret is set; set SHOP_NEW or SHOP_OLD/],
    [{ SHOP_OLD: 'PLANTED' }, /trigger "shop": SHOP_OLD is no signing secret: it must be whsec_ and base64/],
  ] as const) {
    const api = startScript('src/cli/main.ts', {
      args: ['api', '--config', config],
      env: { ...env, COUNTERSIGN_SECRETS_FILE: path, COUNTERSIGN_PORT: '0' },
    });
    assert.equal(await api.ended, 1);
    assert.match(api.stderr(), says);
    assert.doesNotMatch(api.stdout() + api.stderr(), /PLANTED|\n\s+at /);
  }
});
