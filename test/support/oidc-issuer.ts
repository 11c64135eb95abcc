// An OIDC issuer on this machine: a discovery document, a key set, and tokens signed with keys of its own. A test
// turns it off, lets it answer nonsense, or changes its keys.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWK } from 'jose';
import { closeAfterFile } from './cleanup.ts';

export interface IssuerKey {
  kid: string;
  alg: string;
  privateKey: CryptoKey;
  publicJwk: JWK;
}

export interface TestIssuer {
  url: string;
  /** paths that were asked for */
  asked: string[];
  /** what the key set has */
  keys: IssuerKey[];
  /** in place of what it answers: a status, or a body */
  answer: { status?: number; discovery?: unknown; jwks?: unknown };
  /** Its connections are cut and refused from now on, or taken again on the same port. */
  stop(): Promise<void>;
  start(): Promise<void>;
  /** A JWT; by its first key, for the audience `countersign`, valid for five minutes from `now`, unless told else. */
  token(claims?: Record<string, unknown>, header?: Record<string, unknown>, key?: IssuerKey): Promise<string>;
}

export async function makeIssuerKey(kid: string, alg = 'ES256'): Promise<IssuerKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  return { kid, alg, privateKey, publicJwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } };
}

export async function startIssuer(now: () => number): Promise<TestIssuer> {
  const key = await makeIssuerKey('first');
  const server = createServer((request, response) => {
    const { url: path = '' } = request;
    issuer.asked.push(path);
    const { status = 200, discovery, jwks } = issuer.answer;
    const usual = { issuer: issuer.url, jwks_uri: `${issuer.url}/keys` };
    const body =
      path === '/keys'
        ? (jwks ?? { keys: issuer.keys.map(({ publicJwk }) => publicJwk) })
        : (discovery ?? usual);
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  let port = 0;
  const issuer: TestIssuer = {
    url: '',
    asked: [],
    keys: [key],
    answer: {},
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
    async start() {
      server.listen(port, '127.0.0.1');
      await once(server, 'listening');
      port = (server.address() as AddressInfo).port;
    },
    async token(claims = {}, header = {}, { kid, alg, privateKey } = key) {
      const seconds = Math.floor(now() / 1000);
      const usual = { iss: issuer.url, aud: 'countersign', sub: 'u-1', iat: seconds, exp: seconds + 300 };
      const all = Object.entries({ ...usual, ...claims }).filter(([, value]) => value !== undefined);
      return new SignJWT(Object.fromEntries(all))
        .setProtectedHeader({ alg, kid, typ: 'JWT', ...header })
        .sign(privateKey);
    },
  };
  await issuer.start();
  issuer.url = `http://127.0.0.1:${port}`;
  closeAfterFile(async () => {
    server.closeAllConnections();
    server.close();
  });
  return issuer;
}
