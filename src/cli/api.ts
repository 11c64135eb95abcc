// `countersign api`: one API process.
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { Client } from '@temporalio/client';
import { buildApp } from '../api/app.ts';
import { createAuthenticate } from '../api/authenticate.ts';
import { createOidc } from '../api/oidc.ts';
import { createClient } from '../client.ts';
import type { Config } from '../config.ts';
import { signProof } from '../core/proof.ts';
import { inputProblems } from '../core/spec/input.ts';
import { checkSpecObject } from '../core/spec/load.ts';
import { createFreezeRequest } from '../freeze-request.ts';
import { connectTemporal } from '../temporal-connection.ts';
import { openTriggers, type HookTrigger } from '../triggers.ts';
import { openProject, openProjectSecrets, UsageProblem } from './open-project.ts';
import { stopWish } from './stop.ts';
import { log, reportReady } from './talk.ts';

export async function runApi(options: { config?: string; createSecrets?: boolean }): Promise<void> {
  const stop = stopWish();
  const { config, specs } = await openProject(options);
  const { secrets, token } = await openProjectSecrets(config, options.createSecrets ?? false);
  if (token !== undefined) log('made an API token; it is shown only here', { token });
  const triggers = hookTriggers(config);
  const { connection, namespace } = connectTemporal();
  const client = createClient({
    client: new Client({ connection, namespace }),
    namespace,
    taskQueue: config.taskQueue,
  });
  const logFields = ({ message, ...fields }: Record<string, unknown>) =>
    log(typeof message === 'string' ? message : 'api', fields);
  const oidc = config.oidc && createOidc(config.oidc, { log: logFields, now: Date.now });
  // not waited for: tokens of the file are taken without it
  void oidc?.warmUp();
  const app = buildApp({
    client,
    specs,
    checkInlineSpec: (value) => {
      const checked = checkSpecObject(value, { tools: config.tools });
      return 'problems' in checked
        ? { problems: checked.problems.map(({ pointer, message }) => `${pointer} ${message}`) }
        : checked;
    },
    checkInput: (spec, input) => inputProblems(spec.input, input),
    freezeRequest: createFreezeRequest({ tools: config.tools, approvalTtlMs: config.approvalTtlMs }),
    authenticate: createAuthenticate({ tokens: secrets.tokens, oidc }),
    sign: (decision, { workflowId }) => signProof(decision, { namespace, workflowId }, secrets.signingKey()),
    triggers,
    ...(config.dropHeaders === undefined ? {} : { dropHeaders: config.dropHeaders }),
    ...(config.baseUrl === undefined ? {} : { baseUrl: config.baseUrl }),
    log: logFields,
    now: () => Date.now(),
  });
  const server = createAdaptorServer({ fetch: app.fetch });
  server.listen(config.port, config.host);
  await once(server, 'listening').catch((error: unknown) => listenProblem(error, config));
  const { port } = server.address() as AddressInfo;
  const url = `http://${config.host.includes(':') ? `[${config.host}]` : config.host}:${port}`;
  log('API listens', { url });
  reportReady({ url });
  await stop;
  server.close();
  if ('closeAllConnections' in server) server.closeAllConnections();
  specs.close();
  await connection.close();
}

function hookTriggers({ file, triggers = {} }: Config): ReadonlyMap<string, HookTrigger> {
  try {
    return openTriggers(triggers, process.env, (message) => log(message));
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new UsageProblem(`${file}: ${error.message}`);
  }
}

function listenProblem(error: unknown, { host, port }: { host: string; port: number }): never {
  if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
  throw new UsageProblem(
    `port ${port} of ${host} is in use; set COUNTERSIGN_PORT to another one, or to 0 for any`,
  );
}
