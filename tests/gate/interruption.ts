import { endCarrying } from "../processes.ts";
import { Running } from "./job.ts";
import { runningLines } from "./run_jobs.ts";

/** Every process that a gate starts carries this variable, however far it moves away. */
const MARK = "HOLDFAST_GATE";

const SIGNALS = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;

/**
 * Calls `work` and returns its exit code. A signal ends it: what ran is said, and every process
 * that it started is ended, as they are after it.
 */
export async function untilInterrupted(
  work: (running: Running) => Promise<number>,
): Promise<number> {
  const mark = `${MARK}=${crypto.randomUUID()}`;
  Deno.env.set(MARK, mark.slice(MARK.length + 1));
  const running = new Running();
  const signalled = Promise.withResolvers<number>();
  for (const [signal, code] of Object.entries(SIGNALS)) {
    Deno.addSignalListener(signal as Deno.Signal, () => {
      running.interrupted = true;
      console.log(
        [`Interrupted by ${signal}.`, ...runningLines(running)].join("\n"),
      );
      signalled.resolve(code);
    });
  }
  const code = await Promise.race([work(running), signalled.promise]);
  await endCarrying(mark);
  return code;
}
