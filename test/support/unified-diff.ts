// Applies a unified diff to texts. The lines of a hunk must stand in the file exactly once; their numbers do not
// count, so that a patch outlives changes around it, and one that fits no more fails by name.

interface Hunk {
  before: string;
  after: string;
}

/** @returns the new text of each file that the patch changes. @throws Error naming the hunk that does not fit */
export function applyPatch(patch: string, read: (path: string) => string): Map<string, string> {
  const changed = new Map<string, string>();
  for (const [path, hunks] of readPatch(patch)) {
    let text = read(path);
    for (const { before, after } of hunks) {
      const count = text.split(before).length - 1;
      if (count !== 1)
        throw new Error(`${path} has these lines ${count} times, the patch wants them once:\n${before}`);
      text = text.replace(before, () => after);
    }
    changed.set(path, text);
  }
  if (changed.size === 0) throw new Error('the patch changes no file');
  return changed;
}

function readPatch(patch: string): Map<string, Hunk[]> {
  const files = new Map<string, Hunk[]>();
  let hunks: Hunk[] | undefined;
  for (const line of patch.split('\n')) {
    const [, path] = /^\+\+\+ b\/(.+)$/.exec(line) ?? [];
    if (path !== undefined) {
      hunks = [];
      files.set(path, hunks);
    } else if (line.startsWith('@@')) {
      hunks?.push({ before: '', after: '' });
    } else {
      const hunk = hunks?.at(-1);
      if (hunk === undefined || !/^[ +-]/.test(line) || line.startsWith('--- ')) continue;
      const text = `${line.slice(1)}\n`;
      if (!line.startsWith('+')) hunk.before += text;
      if (!line.startsWith('-')) hunk.after += text;
    }
  }
  return files;
}
