import { TextLineStream } from "./text_line_stream.ts";

export type CommandOutcome = { success: boolean; code: number; lines: string[] };

type RunOptions = {
  env?: Record<string, string>;
  /** `env` is the whole environment. */
  clear_env?: boolean;
  signal?: AbortSignal;
  onLine?: (line: string) => void;
};

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
  const [command, ...args] = argv;
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
    const { env, clear_env: clearEnv, signal } = options;
    const streams = { stdin: "null", stdout: "piped", stderr: "piped" } as const;
    const child = new Deno.Command(command!, { args, env, clearEnv, signal, ...streams }).spawn();
    const [status] = await Promise.all([child.status, take(child.stdout), take(child.stderr)]);
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
