const SIGNALS = ["SIGINT", "SIGTERM"] as const;

/** Does work that only watches: SIGINT (Ctrl-C) and SIGTERM abort `stop`, and end nothing else. */
export async function interruptible<T>(work: (stop: AbortSignal) => Promise<T>): Promise<T> {
  const stop = new AbortController();
  const listener = () => stop.abort();
  for (const name of SIGNALS) Deno.addSignalListener(name, listener);
  try {
    return await work(stop.signal);
  } finally {
    for (const name of SIGNALS) Deno.removeSignalListener(name, listener);
  }
}
