import { EXIT } from "./exit.ts";

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

/**
 * Does work that only watches: SIGINT (Ctrl-C) and SIGTERM abort `stop`, and end nothing else. A
 * second one ends the process: the work may wait for a store that does not answer.
 */
export async function interruptible<T>(
  work: (stop: AbortSignal) => Promise<T>,
  exit: (code: number) => void = Deno.exit,
): Promise<T> {
  const stop = new AbortController();
  const listener = () => stop.signal.aborted ? exit(EXIT.interrupted) : stop.abort();
  for (const name of SIGNALS) Deno.addSignalListener(name, listener);
  try {
    return await work(stop.signal);
  } finally {
    for (const name of SIGNALS) Deno.removeSignalListener(name, listener);
  }
}
