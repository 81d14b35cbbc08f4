import { TextLineStream } from "./text_line_stream.ts";

export type CommandOutcome = { success: boolean; code: number; lines: string[] };

type RunOptions = {
  env?: Record<string, string>;
  /** `env` is the whole environment. */
  clear_env?: boolean;
  signal?: AbortSignal;
  /**
   * In a separate process group, which the terminal's Ctrl-C does not reach. The signal ends the
   * whole group immediately, and so does the end of this process, however it ends.
   */
  own_group?: boolean;
  onLine?: (line: string) => void;
};

/**
 * Runs its arguments as a command until that ends, or until its own standard input does: a process
 * that is gone has closed the other end.
 */
const GUARDED = `exec 3<&0
"$@" </dev/null 3<&- &
child=$!
{ read -r _ <&3; kill -KILL 0; } </dev/null >/dev/null 2>&1 &
guard=$!
wait $child
code=$?
kill -KILL $guard
exit $code`;

/** Lines that an outcome keeps; pip may write thousands. */
const LINES_KEPT = 400;

/**
 * Runs a short-lived command with its output and errors as lines. A command that cannot be started
 * is an outcome, too.
 * Rejects with the signal's reason if the signal ended it.
 */
export async function runCommand(
  argv: string[],
  options: RunOptions = {},
): Promise<CommandOutcome> {
  const lines: string[] = [];
  const { env, clear_env: clearEnv, signal, own_group: ownGroup = false } = options;
  const [command, ...args] = ownGroup ? ["/bin/sh", "-c", GUARDED, "sh", ...argv] : argv;
  const take = async (stream: ReadableStream<Uint8Array>) => {
    for await (
      const line of stream.pipeThrough(new TextDecoderStream()).pipeThrough(new TextLineStream())
    ) {
      lines.push(line);
      if (lines.length > LINES_KEPT) lines.shift();
      options.onLine?.(line);
    }
  };
  try {
    signal?.throwIfAborted();
    const streams = { stdout: "piped", stderr: "piped" } as const;
    const how = ownGroup
      ? { ...streams, stdin: "piped" as const, detached: true }
      : { ...streams, stdin: "null" as const, signal };
    const child = new Deno.Command(command!, { args, env, clearEnv, ...how }).spawn();
    const end = () => endGroup(child.pid);
    if (ownGroup) signal?.addEventListener("abort", end, { once: true });
    const [status] = await Promise.all([child.status, take(child.stdout), take(child.stderr)]);
    signal?.removeEventListener("abort", end);
    if (ownGroup) await child.stdin.close().catch(() => {}); // Open until here: see `GUARDED`.
    if (!status.success) signal?.throwIfAborted(); // The signal ended it.
    return { success: status.success, code: status.code, lines };
  } catch (error) {
    if (options.signal?.aborted) throw options.signal.reason;
    return {
      success: false,
      code: 127,
      lines: [...lines, error instanceof Error ? error.message : String(error)],
    };
  }
}

function endGroup(leader: number): void {
  try {
    Deno.kill(-leader, "SIGKILL");
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error; // It has just ended.
  }
}
