// Sandbox. Collects the garbage of the thread that workflows run in, which nothing else can reach: its heap is
// another than the main thread's. `node --expose-gc` gives every context the function.

/** False where the process was started without `--expose-gc`: then nothing was collected. */
export async function collect(): Promise<boolean> {
  const { gc } = globalThis as { gc?: () => void };
  gc?.();
  gc?.();
  return gc !== undefined;
}
