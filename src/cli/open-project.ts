// What `dev`, `worker` and `api` have in common: the config, its specs checked, and the secrets. A bad spec
// folder ends them before anything is started.
import { loadConfig, type Config } from '../config.ts';
import { formatSpecProblem } from '../core/spec/load.ts';
import { openSecrets, type Secrets } from '../secrets.ts';
import { openSpecRegistry, type SpecRegistry } from '../spec-registry.ts';
import { log } from './talk.ts';

/** Something that the user has to mend; printed without a stack, exit code 1. */
export class UsageProblem extends Error {
  override readonly name = 'UsageProblem';
}

export interface Project {
  config: Config;
  specs: SpecRegistry;
}

/** @throws UsageProblem naming every problem in the spec folder as file:line:col */
export async function openProject(options: { config?: string }): Promise<Project> {
  const config = await loadConfig(options.config === undefined ? {} : { path: options.config });
  const { tools, specsFolder } = config;
  const specs =
    specsFolder === undefined ? noSpecs : await openSpecRegistry({ folder: specsFolder, tools, log });
  const problems = [...specs.problems().map(formatSpecProblem), ...triggerProblems(config, specs)];
  if (problems.length > 0) {
    specs.close();
    throw new UsageProblem(problems.join('\n'));
  }
  return { config, specs };
}

function triggerProblems({ file, triggers = {} }: Config, specs: SpecRegistry): string[] {
  return Object.entries(triggers)
    .filter(([, { spec }]) => !specs.names().includes(spec))
    .map(([name, { spec }]) => {
      const known = specs.names().join(', ') || 'none';
      return `${file}: config.triggers.${name}.spec is "${spec}", and there is no such spec; there are: ${known}`;
    });
}

/** For a project that has only workflows of its own. */
const noSpecs: SpecRegistry = {
  get: () => undefined,
  names: () => [],
  problems: () => [],
  problemOf: () => undefined,
  refresh: () => Promise.resolve(),
  close: () => undefined,
};

export async function openProjectSecrets(
  config: Config,
  create: boolean,
): Promise<{ secrets: Secrets; token?: string }> {
  const warn = (message: string) => log(message);
  const { secrets, createdToken } = await openSecrets({ path: config.secretsFile, create, warn });
  return { secrets, ...(createdToken === undefined ? {} : { token: createdToken.token }) };
}
