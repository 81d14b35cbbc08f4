import { guardedProcess } from "./guarded_process.ts";
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
 * Runs a {@linkcode guardedProcess} with its output and errors as lines. A command that cannot be
 * started is an outcome, too.
 * Rejects with the signal's reason if the signal ended it.
 */
export async function runCommand(
  argv: string[],
  { onLine, ...options }: RunOptions = {},
): Promise<CommandOutcome> {
  const lines: string[] = [];
  const take = async (stream: ReadableStream<Uint8Array>) => {
    for await (
      const line of stream.pipeThrough(new TextDecoderStream()).pipeThrough(new TextLineStream())
    ) {
      lines.push(line);
      if (lines.length > LINES_KEPT) lines.shift();
      onLine?.(line);
    }
  };
  const { stdout, stderr, code: ended } = guardedProcess(argv, options);
  const [code] = await Promise.all([ended, take(stdout), take(stderr)]);
  return { success: code === 0, code, lines };
}
