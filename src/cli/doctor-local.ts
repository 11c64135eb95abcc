// What doctor finds on this machine and at the API: Node, config and specs, secrets, token, clock.
import { loadConfig, type Config } from '../config.ts';
import { formatSpecProblem } from '../core/spec/load.ts';
import { signingKeyAt } from '../secret-keys.ts';
import { readSecretsFile } from '../secrets-file.ts';
import { openSpecRegistry } from '../spec-registry.ts';
import { connectApi, apiUrl } from './api-client.ts';
import type { Finding } from './doctor.ts';
import { CliProblem } from './exit-codes.ts';
import type { Terminal } from './terminal.ts';

/** `engines` of package.json. */
const leastNode = [20, 19] as const;

export function checkNode(version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const isOld = major < leastNode[0] || (major === leastNode[0] && minor < leastNode[1]);
  const text = isOld ? `${version} is too old: install ${leastNode.join('.')} or newer` : version;
  return { check: 'node', result: isOld ? 'fail' : 'ok', text };
}

export async function checkConfig(
  path: string | undefined,
  env: NodeJS.ProcessEnv,
): Promise<{ config?: Config; finding: Finding }> {
  try {
    const config = await loadConfig({ env, ...(path === undefined ? {} : { path }) });
    const problems = await specProblems(config);
    if (problems.length > 0) {
      return { config, finding: { check: 'config', result: 'fail', text: problems.join('; ') } };
    }
    return { config, finding: { check: 'config', result: 'ok', text: config.file } };
  } catch (error) {
    return { finding: { check: 'config', result: 'fail', text: messageOf(error) } };
  }
}

async function specProblems({ specsFolder, tools }: Config): Promise<string[]> {
  if (specsFolder === undefined) return [];
  const specs = await openSpecRegistry({ folder: specsFolder, tools, log: () => undefined });
  try {
    return specs.problems().map(formatSpecProblem);
  } finally {
    specs.close();
  }
}

export async function checkSecrets(
  config: Config | undefined,
  { env, now }: { env: NodeJS.ProcessEnv; now: number },
): Promise<Finding[]> {
  const path = config?.secretsFile ?? env['COUNTERSIGN_SECRETS_FILE'];
  if (!path) return [];
  try {
    const file = readSecretsFile(path);
    const { tokens, signingKeys, grantKeys } = file;
    signingKeyAt(file, now); // throws where none may sign
    const counts = `${tokens.length} tokens, ${signingKeys.length} signing keys, ${grantKeys.length} grant keys`;
    return [{ check: 'secrets', result: 'ok', text: `${path}: ${counts}` }];
  } catch (error) {
    return [{ check: 'secrets', result: 'fail', text: messageOf(error) }];
  }
}

/** A machine that only has Temporal and a worker has no API: that is a warning. */
export async function checkApi(terminal: Terminal): Promise<Finding[]> {
  const url = apiUrl(terminal.env);
  const asked = terminal.now();
  let response: Response;
  try {
    response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(5000), redirect: 'manual' });
    await response.arrayBuffer();
  } catch {
    const text = `nothing answers at ${url}: start it, or set COUNTERSIGN_URL`;
    return [{ check: 'api', result: 'warn', text }];
  }
  const reached: Finding = response.ok
    ? { check: 'api', result: 'ok', text: `${url} is ready` }
    : { check: 'api', result: 'fail', text: `${url} answers ${response.status}: its log says why` };
  const skew = clockFinding('clock (api)', response.headers.get('date'), asked, terminal.now());
  return [reached, ...(skew === undefined ? [] : [skew]), await checkToken(terminal)];
}

async function checkToken(terminal: Terminal): Promise<Finding> {
  try {
    await connectApi(terminal).request({ path: '/approvals', query: { limit: '1' } });
    return { check: 'token', result: 'ok', text: 'COUNTERSIGN_TOKEN is taken' };
  } catch (error) {
    if (!(error instanceof CliProblem)) throw error;
    const unset = !terminal.env['COUNTERSIGN_TOKEN'];
    // known, and for other things: a service that only starts runs needs no more
    if (error.fields['code'] === 'not_allowed') {
      return { check: 'token', result: 'ok', text: 'COUNTERSIGN_TOKEN is taken; it has no scope "read"' };
    }
    return { check: 'token', result: unset ? 'warn' : 'fail', text: error.message };
  }
}

/** A decision's proof is sent within 5 s of signing, and deadlines are the server's: 2 s is worth a word. */
const skewBoundMs = 2000;

/** A Date header counts whole seconds: the clocks differ by what is beyond that and the way there. */
export function clockFinding(
  check: string,
  date: string | null,
  askedAt: number,
  answeredAt: number,
  resolutionMs = 1000,
): Finding | undefined {
  const theirs = Date.parse(date ?? '');
  if (Number.isNaN(theirs)) return undefined;
  const ahead = Math.max(0, theirs - answeredAt);
  const behind = Math.max(0, askedAt - (theirs + resolutionMs));
  const skew = Math.max(ahead, behind);
  if (skew <= skewBoundMs) return { check, result: 'ok', text: 'agrees with this machine within 2 s' };
  const text = `${skew / 1000} s ${ahead > 0 ? 'ahead of' : 'behind'} this machine: set both by NTP`;
  return { check, result: 'fail', text };
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
