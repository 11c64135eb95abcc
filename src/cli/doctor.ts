// `countersign doctor`: one line a finding, each with what to do about it. It changes nothing, except for
// search attributes with --fix.
import { searchAttributes } from '../core/names.ts';
import { connectTemporal, temporalAddress } from '../temporal-connection.ts';
import { checkApi, checkConfig, checkNode, checkSecrets } from './doctor-local.ts';
import { checkTemporal } from './doctor-temporal.ts';
import { exitCodes, type ExitCode } from './exit-codes.ts';
import { labelled, printJson, printTable, printText } from './show.ts';
import type { Terminal } from './terminal.ts';

export interface Finding {
  check: string;
  /** `warn`: works, or cannot be told from here */
  result: 'ok' | 'warn' | 'fail';
  text: string;
}

/** Findings of one check; what it throws is a finding too. */
export type Check = () => Promise<Finding | Finding[]>;

export interface DoctorOptions {
  config?: string;
  json?: boolean;
  fix?: boolean;
  ui?: string;
}

export async function runDoctor(terminal: Terminal, options: DoctorOptions): Promise<ExitCode> {
  const { config, finding } = await checkConfig(options.config, terminal.env);
  const findings: Finding[] = [checkNode(process.versions.node), finding];
  const { connection, namespace } = connectTemporal({ env: terminal.env });
  try {
    const taskQueue = config?.taskQueue ?? terminal.env['COUNTERSIGN_TASK_QUEUE'];
    findings.push(
      ...(await checkSecrets(config, { env: terminal.env, now: terminal.now() })),
      ...(await checkApi(terminal)),
      ...(await checkTemporal({
        connection,
        namespace,
        address: temporalAddress({ env: terminal.env }),
        fix: options.fix ?? false,
        now: terminal.now,
        ...(taskQueue ? { taskQueue } : {}),
      })),
    );
  } finally {
    await connection.close();
  }
  const views = savedViews(options.ui ?? 'http://localhost:8233', namespace);
  if (options.json === true) printJson(terminal, { findings, views });
  else {
    // what to run stands in lines of its own, to be copied
    const lines = findings.map(({ check, result, text }) => [`${result.padEnd(4)}  ${check}`, text] as const);
    if (terminal.outIsTty) printText(terminal, labelled(lines));
    else
      printTable(terminal, findings, [
        { title: 'result', of: ({ result }) => result },
        { title: 'check', of: ({ check }) => check },
        { title: 'finding', of: ({ text }) => text },
      ]);
    terminal.err('\nViews for the Temporal Web UI (open one, and save it there):');
    for (const { name, url } of views) terminal.err(`  ${name.padEnd(18)} ${url}`);
  }
  if (findings.every(({ result }) => result !== 'fail')) return exitCodes.ok;
  return findings.some(({ check, result }) => check === 'temporal' && result === 'fail')
    ? exitCodes.unavailable
    : exitCodes.invalid;
}

/** Lists of runs in the Temporal Web UI, by our own search attributes. */
export function savedViews(ui: string, namespace: string): { name: string; url: string }[] {
  const open = 'ExecutionStatus="Running"';
  const queries = {
    'awaiting approval': `${searchAttributes.status}="awaiting_approval" AND ${open}`,
    'in doubt': `${searchAttributes.status}="in_doubt" AND ${open}`,
    rejected: `${searchAttributes.status}="rejected"`,
    failed: 'ExecutionStatus="Failed" AND WorkflowType IN ("runSpec","requestApproval")',
  };
  const base = `${ui.replace(/\/+$/, '')}/namespaces/${encodeURIComponent(namespace)}/workflows`;
  return Object.entries(queries).map(([name, query]) => ({
    name,
    url: `${base}?query=${encodeURIComponent(query)}`,
  }));
}
