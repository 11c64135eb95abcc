// A node:test reporter that writes one JSON line a test, for the totals of `npm test` (its shape is
// CountedTest in run-test-files.ts). A file that ran no test at all counts as failed: node itself lets it
// pass. JavaScript, because node loads reporters before tsx is there.

function countedTest({ type, data }) {
  if (type !== 'test:pass' && type !== 'test:fail') return undefined;
  const { name, file, skip, todo, details } = data;
  // A suite fails with a test in it, and that one is counted.
  if (details?.type === 'suite') return undefined;
  if (name === file) {
    const note = type === 'test:pass' ? 'the file holds no test' : 'the file did not run to its end';
    return { name, file, result: 'failed', note };
  }
  const reason = skip ?? todo;
  if (reason !== undefined && reason !== false) {
    return { name, file, result: 'skipped', ...(typeof reason === 'string' ? { note: reason } : {}) };
  }
  return { name, file, result: type === 'test:pass' ? 'passed' : 'failed' };
}

export default async function* countReporter(source) {
  for await (const event of source) {
    const counted = countedTest(event);
    if (counted) yield `${JSON.stringify(counted)}\n`;
  }
}
