// How a process of ours ends: by SIGTERM, by Ctrl-C, or because whoever started it is gone.

/** Resolves with the first wish to stop. A second signal ends the process at once. */
export function stopWish(): Promise<string> {
  return new Promise((resolve) => {
    let wished = false;
    const wish = (why: string) => () => {
      if (wished) process.exit(130);
      wished = true;
      resolve(why);
    };
    process.on('SIGTERM', wish('SIGTERM'));
    process.on('SIGINT', wish('SIGINT'));
    process.on('SIGHUP', wish('SIGHUP'));
    // `dev`, the demo and the tests hold our stdin open as long as they live, even if they die by SIGKILL.
    if (process.env['COUNTERSIGN_END_WITH_STDIN'] === '1') process.stdin.on('end', wish('stdin')).resume();
  });
}
