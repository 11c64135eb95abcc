// P10 on a real server with real processes: thirty secrets are planted, of every kind that countersign is given
// as one. Those in placeholders reach their targets; and whatever a target does with them, none stands
// afterwards in a history, memo, search attribute, log, answer or trail.
import assert from 'node:assert/strict';
import { createServer as createHttpServer, type ServerResponse } from 'node:http';
import { createServer as createTcpServer, type AddressInfo, type Server } from 'node:net';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { sha256Hex } from '../src/core/hash.ts';
import { addToken } from '../src/secrets.ts';
import { closeAfterFile } from './support/cleanup.ts';
import { eventually } from './support/eventually.ts';
import { allBytes, createSecretSearch, plantedSecret } from './support/planted.ts';
import { ready, skipWithoutCache } from './support/project.ts';
import { startScript } from './support/script.ts';
import { makeSecrets } from './support/secrets.ts';
import { openTemporal } from './support/temporal.ts';
import { temporaryFolder } from './support/temporary-folder.ts';
import { signWebhook, signingSecret } from './support/webhook.ts';

/** What a target does with the header that it got; the secret's name is that of the way. */
type Way = (response: ServerResponse, sent: string) => void;

const json = { 'content-type': 'application/json' };
const encodings = (sent: string): string[] => {
  const bare = sent.replace('Bearer ', '');
  return [sent, bare].flatMap((text) => [
    ...[
      encodeURIComponent(text),
      JSON.stringify(text),
      text.replaceAll('&', '&amp;').replaceAll('<', '&lt;'),
    ],
    ...(['base64', 'base64url', 'hex'] as const).map((encoding) => Buffer.from(text).toString(encoding)),
  ]);
};

const ways: Record<string, Way> = {
  ECHO: (response, sent) => response.writeHead(200, { ...json, 'x-request-id': sent }).end(JSON.stringify({ got: sent, [sent]: 1 })),
  TEXT: (response, sent) => response.writeHead(200).end(`you sent ${sent}`),
  ENCODED: (response, sent) => response.writeHead(200).end(encodings(sent).join('\n')),
  REFUSED: (response, sent) => response.writeHead(401, json).end(JSON.stringify({ error: `unknown key ${sent}` })),
  REFUSED_ENCODED: (response, sent) => response.writeHead(403).end(encodings(sent).slice(-3).join(' ')),
  BROKEN: (response, sent) => response.writeHead(500, json).end(JSON.stringify({ headers: { authorization: sent } })),
  LATER: (response, sent) => response.writeHead(429, { 'retry-after': '1' }).end(`too many of ${sent}`),
  MOVED: (response, sent) => response.writeHead(302, { location: `/next?key=${encodeURIComponent(sent)}` }).end(sent),
  UNPARSABLE: (response, sent) => response.writeHead(200, json).end(`{"got": "${sent}", oops`),
  TWICE: (response, sent) => response.writeHead(200, json).end(`{"${sent}": 1, "${sent}": 2}`),
  LARGE: (response, sent) => response.writeHead(200).end(sent.repeat(5000)),
  CUT: (response, sent) => {
    response.writeHead(200, { ...json, 'content-length': '9999' }).write(`{"got": "${sent}`, () => response.destroy());
  },
  // nothing of HTTP comes back from that one: see `garbage`
  GARBAGE: () => assert.fail('another server'),
  // that name is nowhere; the same secret is also sent to a target
  NOWHERE: (response) => response.writeHead(204).end(),
}; // prettier-ignore

const placeholders = Object.fromEntries(
  Object.keys(ways).map((way, at) => {
    // some with what encodings change
    const around = at % 2 === 0 ? { before: 'sk/a+b&<"', after: '"/+=&<' } : {};
    return [`PLANTED_${way}`, plantedSecret(way, around)];
  }),
);
const droppedHeaders = Object.fromEntries(
  ['Authorization', 'Cookie', 'X-Api-Key', 'X-Gitlab-Token', 'X-Hub-Signature-256', 'Proxy-Authorization', 'X-Shop-Pass', 'X-Note'].map(
    (name) => [name, `${name === 'X-Note' ? 'Bearer ' : ''}${plantedSecret(name)}`],
  ),
); // prettier-ignore

const temporal = await openTemporal();
const { client, namespace, taskQueue } = temporal;
const { path: secretsFile, adminToken } = await makeSecrets();
const annToken = await addToken(secretsFile, { id: 'ann', name: 'Ann', roles: [] });
const { signingKeys, grantKeys } = JSON.parse(readFileSync(secretsFile, 'utf8')) as {
  signingKeys: { privateJwk: { d: string } }[];
  grantKeys: { secret: string }[];
};
const signing = {
  NEW: signingSecret(plantedSecret('hook new')),
  OLD: signingSecret(plantedSecret('hook old')),
};
const planted: Record<string, string> = {
  ...placeholders,
  ...droppedHeaders,
  'X-Note': droppedHeaders['X-Note']?.replace('Bearer ', '') ?? '',
  'new signing secret': plantedSecret('hook new'),
  'old signing secret': plantedSecret('hook old'),
  'admin token': adminToken.replace(/^csn_/, ''),
  'token of ann': annToken.replace(/^csn_/, ''),
  'wrong token': plantedSecret('wrong token'),
  'signing key': signingKeys[0]?.privateJwk.d ?? assert.fail(),
  'grant key': grantKeys[0]?.secret ?? assert.fail(),
  'base64 of a signing secret': signing.NEW.replace('whsec_', ''),
};
const find = createSecretSearch(planted);

/** Everything that was left behind, by where it stands; what is the same is looked through once. */
const left = new Map<string, Buffer[]>();
const known = new Set<string>();
function leave(where: string, bytes: Uint8Array | string): void {
  const buffer = Buffer.from(bytes);
  const print = sha256Hex(where + buffer.toString('latin1'));
  if (known.has(print)) return;
  known.add(print);
  left.set(where, [...(left.get(where) ?? []), buffer]);
}
const received = new Set<string>();

function listen(server: Server): Promise<string> {
  closeAfterFile(() => new Promise((resolve) => server.close(() => resolve())));
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve(`127.0.0.1:${(server.address() as AddressInfo).port}`));
  });
}

const target = await listen(
  createHttpServer((request, response) => {
    const sent = request.headers.authorization ?? '';
    received.add(sent);
    request.resume().on('end', () => ways[(request.url ?? '').slice(1)]?.(response, sent));
  }),
);
const garbage = await listen(
  createTcpServer((socket) => {
    socket.once('data', (data) => {
      const sent = /^authorization: (.*)$/im.exec(data.toString())?.[1]?.trim() ?? '';
      received.add(sent);
      socket.end(`HTTP/1.1 ${sent}\r\n${sent}\r\n\r\n`);
    });
    socket.on('error', () => undefined);
  }),
);

function makeProject(): { config: string; env: Record<string, string | undefined> } {
  const folder = temporaryFolder();
  const source = (file: string) => JSON.stringify(pathToFileURL(file).href);
  const hosts = [target, garbage, 'nowhere.invalid'];
  const secrets = Object.fromEntries(Object.keys(placeholders).map((name) => [name, { hosts }]));
  const tool = (more: object) =>
    `httpTool(${JSON.stringify({ allowHosts: hosts, allowPrivate: ['127.0.0.1'], attempts: 2, maxResponseBytes: 65_536, secrets, ...more })})`;
  const trigger = {
    spec: 'call',
    secrets: ['${HOOK_NEW}', '${HOOK_OLD}'],
    input: { url: 'url', auth: 'auth', ref: 'ref' },
  };
  writeFileSync(
    join(folder, 'countersign.config.ts'),
    `import { httpTool } from ${source('src/tools/http-tool.ts')};
export const config = {
  tools: [${tool({ targetTakesKey: true })}, ${tool({ name: 'http.gated', requiresApproval: true })}],
  triggers: ${JSON.stringify({ shop: trigger })},
  dropHeaders: ['x-shop-*'],
};\n`,
  );
  const call = (tool: string) => `tool: ${tool}
    with: { method: POST, url: '\${{ input.url }}', headers: { authorization: 'Bearer \${{ input.auth }}' }, body: { ref: '\${{ input.ref }}' } }`;
  mkdirSync(join(folder, 'specs'));
  writeFileSync(
    join(folder, 'specs', 'call.yaml'),
    `version: 1\nname: call\nsteps:\n  - id: call\n    ${call('http')}\noutput: { got: '\${{ steps.call.output }}' }\n`,
  );
  writeFileSync(
    join(folder, 'specs', 'gated.yaml'),
    `version: 1\nname: gated\nsteps:\n  - id: pay\n    ${call('http.gated')}\n    before: { approve: { title: 'Call \${{ input.url }}' } }\n`,
  );
  return {
    config: join(folder, 'countersign.config.ts'),
    env: {
      TEMPORAL_ADDRESS: temporal.address,
      TEMPORAL_NAMESPACE: namespace,
      COUNTERSIGN_TASK_QUEUE: taskQueue,
      COUNTERSIGN_DATA_DIR: join(folder, 'data'),
      COUNTERSIGN_SECRETS_FILE: secretsFile,
      COUNTERSIGN_PORT: '0',
    },
  };
}

test(
  'P10: thirty planted secrets: those in placeholders reach their targets, and none is left anywhere',
  { skip: skipWithoutCache },
  async () => {
    assert.equal(Object.keys(planted).length, 30);
    const { config, env } = makeProject();
    const api = startScript('src/cli/main.ts', {
      args: ['api', '--config', config],
      env: { ...env, HOOK_NEW: signing.NEW, HOOK_OLD: signing.OLD },
    });
    const worker = startScript('src/cli/main.ts', {
      args: ['worker', '--config', config],
      env: { ...env, ...placeholders },
    });
    const { url = '' } = await ready(api);
    await ready(worker);

    /** An answer, which is kept for the search. */
    async function call(
      method: string,
      path: string,
      body?: object | string,
      headers: Record<string, string> = {},
    ) {
      const response = await fetch(url + path, {
        method,
        headers: { authorization: `Bearer ${annToken}`, ...json, ...headers },
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      });
      const text = await response.text();
      leave(`answer to ${method} ${path}`, `${JSON.stringify([...response.headers])}\n${text}`);
      return {
        status: response.status,
        body: (text.startsWith('{') ? JSON.parse(text) : {}) as Record<string, unknown>,
      };
    }

    const runs: string[] = [];
    async function start(spec: string, host: string, way: string): Promise<string> {
      const input = { url: `${host}/${way}`, auth: `\${PLANTED_${way}}`, ref: `ref-${way}` };
      const { status, body } = await call('POST', '/runs', {
        spec,
        id: temporal.id(`planted-${way}`),
        input,
      });
      assert.equal(status, 201, JSON.stringify(body));
      runs.push(String(body['id']));
      return String(body['id']);
    }

    // by webhook: one with each signing secret, and two that are refused
    async function deliver(id: string, secret: string, way: string, trigger = 'shop') {
      const content = JSON.stringify({
        url: `http://${target}/${way}`,
        auth: `\${PLANTED_${way}}`,
        ref: `ref-${way}`,
      });
      const signed = signWebhook({ id, at: Math.floor(Date.now() / 1000), body: content, secrets: [secret] });
      return call('POST', `/hooks/${trigger}`, content, {
        ...signed,
        ...droppedHeaders,
        'x-kept': 'kept-header',
      });
    }
    for (const [id, secret, way] of [['m1', signing.NEW, 'ECHO'], ['m2', signing.OLD, 'TEXT']] as const) {
    const { status, body } = await deliver(temporal.id(id), secret, way);
    assert.equal(status, 200, JSON.stringify(body));
    runs.push(String(body['id']));
  } // prettier-ignore
    assert.equal((await deliver('m3', signingSecret('foreign'), 'ECHO')).status, 401);
    assert.equal((await deliver('m3', signing.NEW, 'ECHO', 'nobody')).status, 404);
    assert.equal(
      (await call('GET', '/runs', undefined, { authorization: `Bearer ${planted['wrong token']}` })).status,
      401,
    );
    assert.equal(
      (await call('GET', '/runs', undefined, { authorization: `Bearer ${adminToken}` })).status,
      200,
    );

    for (const way of Object.keys(ways)) {
      if (way === 'NOWHERE') await start('call', 'https://nowhere.invalid', way);
      await start('call', `http://${way === 'GARBAGE' ? garbage : target}`, way);
    }
    // gates hold memos; a target without keys that ends unclear asks a person
    for (const way of ['ECHO', 'BROKEN', 'CUT']) await start('gated', `http://${target}`, way);

    /** What Temporal itself says of the run now: memo, search attributes, what is pending and how it failed. */
    async function describe(workflowId: string): Promise<boolean> {
      const described = await client.workflowService.describeWorkflowExecution({
        namespace,
        execution: { workflowId },
      });
      leave(`description of ${workflowId}`, allBytes(described));
      return Number(described.workflowExecutionInfo?.status) !== 1;
    }

    // each gate is decided as it opens, until all runs have ended
    const seenStates = new Set<string>();
    await eventually(
      async () => {
        const open: string[] = [];
        for (const runId of runs) if (!(await describe(runId))) open.push(runId);
        for (const runId of open) {
          const { body } = await call('GET', `/approvals?run=${runId}`);
          for (const { key, phase, payloadHash } of body['approvals'] as Record<string, string>[]) {
            await call('GET', `/approvals/${key}`);
            seenStates.add(String(phase));
            if (phase === 'in-doubt') await call('POST', `/approvals/${key}/reject`, { reason: 'given up' });
            else await call('POST', `/approvals/${key}/approve`, { payloadHash });
          }
        }
        return open.length === 0;
      },
      { message: 'the end of all runs', timeoutMs: 120_000 },
    );
    assert.deepEqual([...seenStates].sort(), ['before', 'in-doubt']);

    for (const runId of runs) {
      await call('GET', `/runs/${runId}`);
      await call('GET', `/runs/${runId}/trail`);
      await call('GET', `/approvals?run=${runId}`);
      await describe(runId);
      const { history } = await client.workflowService.getWorkflowExecutionHistory({
        namespace,
        execution: { workflowId: runId },
      });
      leave(`history of ${runId}`, allBytes(history));
    }
    for (const path of ['/runs', '/decisions', '/openapi.json', '/readyz']) await call('GET', path);
    await call('GET', `/runs/${runs[0]}/nothing`);
    for (const [name, script] of [['api', api], ['worker', worker]] as const) {
    script.signal('SIGTERM');
    await script.ended;
    leave(`what ${name} wrote`, script.stdout() + script.stderr());
  } // prettier-ignore

    // they reached their targets
    for (const [name, secret] of Object.entries(placeholders)) {
      assert.ok(received.has(`Bearer ${secret}`), `${name} reached no target`);
    }
    // what is looked through is really there, with what stands beside the secrets
    const all = (kind: string) =>
      [...left].filter(([where]) => where.startsWith(kind)).flatMap(([, bytes]) => bytes);
    const told = (kind: string, text: string) => all(kind).some((bytes) => bytes.includes(text));
    for (const way of Object.keys(ways)) {
      for (const kind of ['history of', 'answer to GET /runs/']) {
        assert.ok(told(kind, `ref-${way}`) && told(kind, `\${PLANTED_${way}}`), `${kind}: nothing of ${way}`);
      }
    }
    for (const [kind, text] of [
      ['history of', 'kept-header'],
      ['answer to GET /runs/', 'kept-header'],
      ['description of', 'approval/pay'],
      ['description of', 'CountersignStatus'],
      ['what worker', 'effect started'],
      ['what api', 'invalid_signature'],
      ...['401', '403', '302', '429', '500'].map((status) => ['history of', `answered ${status}`] as const),
    ] as const) {
      assert.ok(told(kind, text), `${kind}: nothing of "${text}"`);
    }
    // and a secret would be found in it
    for (const [name, secret] of Object.entries(planted)) {
      for (const text of [
        `x${secret}`,
        Buffer.from(`Bearer ${secret}`).toString('base64'),
        secret.slice(0, 15),
      ]) {
        assert.ok(
          find(`…${text}…`).some((found) => found.startsWith(`${name} (`)),
          `${name} would not be found in ${text}`,
        );
      }
    }
    const found = [...left].flatMap(([where, bytes]) =>
      bytes.flatMap((one) => find(one).map((what) => `${what} in ${where}`)),
    );
    assert.deepEqual([...new Set(found)], []);
  },
);
