// The environment of the processes around an embedded server.
import { fileURLToPath } from 'node:url';

/** Never there: it stands in for the profile file that every Temporal tool reads, as an empty one cannot. */
const noProfiles = fileURLToPath(new URL('./no-profiles.toml', import.meta.url));

/** Without anything that tells of another Temporal, by variable or by profile. */
export function withoutTemporalSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const others = Object.entries(env).filter(([name]) => !name.startsWith('TEMPORAL_'));
  return { ...Object.fromEntries(others), TEMPORAL_CONFIG_FILE: noProfiles };
}
