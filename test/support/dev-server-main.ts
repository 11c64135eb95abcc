// A process that starts a dev server in the folder it is given and then ends, by the exit that it is given:
// for the test that no server outlives the process that started it.
import { findTemporalCli } from '../../src/embedded/find-temporal-cli.ts';
import { startDevServer } from '../../src/embedded/dev-server.ts';
import { reportReady } from './processes.ts';

const folder = process.argv[2];
if (folder === undefined) throw new Error('usage: dev-server-main.ts <folder>');
const server = await startDevServer({ cli: await findTemporalCli(), folder, ownProcessGroup: true });
process.once('SIGTERM', () => process.exit(0));
reportReady({ server: server.pid });
