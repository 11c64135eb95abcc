// The specs of a folder, in memory: `get` is asked while a decision is admitted, so it reads no file. The
// folder is read again when it changes; file events only make that quicker than the poll, since network
// and container file systems send none. A file that is bad has no spec: its starts are refused, and for
// waiting approvals it counts as changed, until it is restored.
import { watch, type FSWatcher } from 'node:fs';
import { formatSpecProblem, type LoadedSpec, type SpecProblem } from './core/spec/load.ts';
import type { Spec } from './core/spec/spec.ts';
import { type FileState, readFolder, signatureOf } from './spec-folder.ts';
import type { Tool } from './tool.ts';

export interface SpecRegistry {
  /** The current spec of that name, from memory. */
  get(name: string): { spec: Spec; hash: string } | undefined;
  names(): string[];
  /** All that is wrong in the folder now, by file and position. */
  problems(): SpecProblem[];
  /** What is wrong with the spec of that name, when it went bad; undefined when nothing is, or there is none. */
  problemOf(name: string): string | undefined;
  /** Reads every file again now; afterwards `get` tells what is in the folder. */
  refresh(): Promise<void>;
  close(): void;
}

export interface SpecRegistryOptions {
  folder: string;
  tools: readonly Tool[];
  log: (message: string, fields?: Record<string, unknown>) => void;
  /** Default 1,000. */
  pollMs?: number;
}

/** One second: soon enough for a person who has just saved, and a stat a file costs nothing. */
const defaultPollMs = 1000;
/** An editor's save is several events; 50 ms after the last one the file is whole. */
const settleMs = 50;

interface Current {
  specs: Map<string, LoadedSpec>;
  files: FileState[];
  problems: SpecProblem[];
}

/** Reads the folder. Problems are not thrown: a caller that starts up looks at `problems()` and ends. */
export async function openSpecRegistry(options: SpecRegistryOptions): Promise<SpecRegistry> {
  const { folder, tools, log } = options;
  let current: Current = { specs: new Map(), files: [], problems: [] };
  let signature = '';
  let opened = false;
  let closed = false;
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;

  async function read(): Promise<void> {
    let taken = await signatureOf(folder);
    let files = await readFolder(folder, tools, current.files);
    // A file that was being written meanwhile may have been read half: again, and then by the next poll.
    for (let again = 0; again < 3; again += 1) {
      const seen = await signatureOf(folder);
      if (seen === taken) break;
      taken = seen;
      files = await readFolder(folder, tools, current.files);
    }
    if (closed) return;
    const before = current;
    current = combine(files);
    signature = taken;
    if (opened) logChanges(before, current, log);
  }

  // One read at a time; whoever asks during one waits for a read that starts after it.
  function refresh(): Promise<void> {
    if (running === undefined) {
      running = read().finally(() => (running = undefined));
      return running;
    }
    next ??= running
      .catch(() => undefined)
      .then(() => {
        next = undefined;
        return refresh();
      });
    return next;
  }

  function refreshQuietly(): void {
    refresh().catch((error: unknown) =>
      log('the spec folder could not be read', { folder, error: String(error) }),
    );
  }

  await refresh();
  opened = true;

  const watcher = watchFolder(folder, refreshQuietly);
  const poll = setInterval(() => {
    signatureOf(folder).then(
      (seen) => {
        if (!closed && seen !== signature) refreshQuietly();
      },
      () => undefined,
    );
  }, options.pollMs ?? defaultPollMs);
  poll.unref();

  return {
    get: (name) => {
      const found = current.specs.get(name);
      return found === undefined ? undefined : { spec: found.spec, hash: found.hash };
    },
    names: () => [...current.specs.keys()].sort(),
    problems: () => current.problems,
    problemOf: (name) => problemOf(current, name),
    refresh,
    close: () => {
      closed = true;
      clearInterval(poll);
      watcher.close();
    },
  };
}

/** Two files of one spec name: neither counts, since nobody can tell which was meant. */
function combine(files: FileState[]): Current {
  const holders = new Map<string, { file: string; loaded: LoadedSpec }[]>();
  for (const state of files) {
    if (!('loaded' in state)) continue;
    const { name } = state.loaded.spec;
    holders.set(name, [...(holders.get(name) ?? []), state]);
  }
  const checked = files.map((state): FileState => {
    if (!('loaded' in state)) return state;
    const { name } = state.loaded.spec;
    const others = (holders.get(name) ?? [])
      .filter(({ file }) => file !== state.file)
      .map(({ file }) => file);
    if (others.length === 0) return state;
    const message = `name: "${name}" is also the name of the spec in ${others.join(', ')}; each spec has its own`;
    return {
      file: state.file,
      problems: [{ file: state.file, ...state.loaded.nameAt, message }],
      lastName: name,
    };
  });
  return {
    files: checked,
    specs: new Map(
      checked.flatMap((state) => ('loaded' in state ? [[state.loaded.spec.name, state.loaded]] : [])),
    ),
    problems: checked.flatMap((state) => ('problems' in state ? state.problems : [])),
  };
}

function problemOf({ specs, files }: Current, name: string): string | undefined {
  if (specs.has(name)) return undefined;
  const problems = files.flatMap((state) =>
    'problems' in state && state.lastName === name ? state.problems : [],
  );
  const [first] = problems;
  if (first === undefined) return undefined;
  return `${formatSpecProblem(first)}${problems.length > 1 ? ` (and ${problems.length - 1} more)` : ''}`;
}

/** Each change once: a problem that stays is not told again. */
function logChanges(before: Current, after: Current, log: SpecRegistryOptions['log']): void {
  const known = new Set(before.problems.map(formatSpecProblem));
  for (const problem of after.problems.map(formatSpecProblem)) {
    if (!known.has(problem)) log(`spec problem, its starts are refused: ${problem}`);
  }
  for (const name of new Set([...before.specs.keys(), ...after.specs.keys()])) {
    const [from, to] = [before.specs.get(name)?.hash, after.specs.get(name)?.hash];
    if (from === to) continue;
    const what = from === undefined ? 'is there' : to === undefined ? 'is gone' : 'changed';
    log(`spec "${name}" ${what}`, {
      ...(from === undefined ? {} : { from }),
      ...(to === undefined ? {} : { to }),
    });
  }
}

function watchFolder(folder: string, changed: () => void): { close(): void } {
  let timer: NodeJS.Timeout | undefined;
  let watcher: FSWatcher | undefined;
  try {
    watcher = watch(folder, { persistent: false }, () => {
      clearTimeout(timer);
      timer = setTimeout(changed, settleMs);
      timer.unref();
    });
    // A folder that was deleted, or no watches left: the poll goes on.
    watcher.on('error', () => watcher?.close());
  } catch {
    watcher = undefined;
  }
  return {
    close: () => {
      clearTimeout(timer);
      watcher?.close();
    },
  };
}
